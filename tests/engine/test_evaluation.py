"""The evaluation: what it measures follows from the engine it is given, and its object is what others read."""

import json
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from zlclient.engine import evaluate
from zlclient.engine.checkpoint import load_shipped
from zlclient.engine.config import GENERATIONS
from zlclient.engine.evaluation import mechanisms
from zlclient.engine.evaluation.agreement import agreement
from zlclient.engine.evaluation.asking import ask
from zlclient.engine.evaluation.by_domain import call_up, documents_of
from zlclient.engine.evaluation.caching import block_bytes, hit_rates, matrix_bytes, workload
from zlclient.engine.evaluation.contradictions import FACTS, contradictions, make_case
from zlclient.engine.evaluation.load import call_costs, throughput
from zlclient.engine.evaluation.quality import (
    exact,
    exact_match,
    held_out,
    outcome,
    passages,
    served_passages,
    values,
)  # fmt: skip
from zlclient.engine.evaluation.repetition import TEMPERATURES, repeated, repetition
from zlclient.engine.evaluation.results import QUICK
from zlclient.engine.evaluation.speed import make_prompts, measure, peak_memory, ratios, share
from zlclient.engine.model import Model
from zlclient.engine.runner import Engine
from zlclient.engine.training.vocabulary import build_tokenizer
from zlclient.errors import ConfigError
from zlclient.serving.responders import engine_answers

DOCUMENTS = [*held_out(4, "zh", 3), *held_out(4, "en", 3)]


@pytest.fixture(scope="module")
def checkpoints():
    return {name: load_shipped(name) for name in GENERATIONS}


@pytest.fixture(scope="module")
def engines():
    return {name: Engine.shipped(name) for name in GENERATIONS}


@pytest.mark.parametrize("generation", GENERATIONS)
def test_free_answers_are_right_only_where_every_token_is(engines, generation):
    for document in DOCUMENTS[:4]:
        for plain, item in zip(
            ask(engines[generation], document), ask(engines[generation], document, free=True), strict=True
        ):
            assert (plain.quoted, plain.outcome) == (item.quoted, None)
            assert (item.outcome is None) == (item.quoted is None)
            assert plain.right or not item.right
            if item.right and item.outcome is not None:
                assert item.outcome.text.strip() == document.sentences[item.quoted]


def test_a_crippled_engine_scores_lower(engines, checkpoints):
    auto = checkpoints["auto"]
    noise = np.random.default_rng(1).standard_normal(auto.tensors["layers.2.qkv.weight"].shape).astype(np.float32)
    crippled = Engine(replace(auto, tensors={**auto.tensors, "layers.2.qkv.weight": noise}))
    whole, worse = (exact_match(engine, DOCUMENTS) for engine in (engines["auto"], crippled))
    assert worse.exact < whole.exact
    gained = whole.minus(worse, outcome)
    assert gained.low > 0
    assert gained.low <= gained.value <= gained.high
    assert whole.minus(whole, exact).high == 0


def test_refusing_everything_is_no_good(engines, checkpoints):
    auto = checkpoints["auto"]
    sure = {name: {"answer": 1.1} for name in auto.config.domains}
    tally = exact_match(Engine(replace(auto, config=replace(auto.config, thresholds=sure))), DOCUMENTS)
    assert tally.exact == 0
    assert tally.f1 < exact_match(engines["auto"], DOCUMENTS, thresholds=False).exact


def test_speed_is_measured_on_the_same_prompts(checkpoints):
    models = {name: Model(checkpoint) for name, checkpoint in checkpoints.items()}
    prompts = make_prompts(build_tokenizer(), 2, lengths=(40, 90))
    assert [len(tokens) for tokens in prompts] == [40, 90, 40, 90]
    times = measure(models, prompts, repeats=1)
    found = ratios(times["auto"], times["legacy"])
    assert all(0 < ratio.low <= ratio.value <= ratio.high for ratio in found.values())
    assert times["auto"].of(90).lengths == [90, 90]
    assert all(part.high < 1 for part in share(times["legacy"], times["auto"]).values())


def test_memory_is_that_of_reading_the_prompt(checkpoints):
    import tracemalloc

    for name, checkpoint in checkpoints.items():
        model = Model(checkpoint)
        tracemalloc.start()
        model.forward([5] * 700, model.start())
        read = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak_memory(Model(checkpoint), 700) == pytest.approx(read, rel=0.15), name
        assert read > 700 * checkpoint.config.layers * 2 * checkpoint.config.width * 4  # the keys and values alone


def test_an_ablation_lacks_what_it_says(checkpoints, engines):
    models = mechanisms.models(checkpoints)
    seen = {side: {part: _operations(model) for part, model in parts.items()} for side, parts in models.items()}
    legacy, auto = seen["legacy"], seen["auto"]
    assert "check" in legacy["whole"] & legacy["position layer"]
    assert "check" not in legacy["check loop"]
    assert "layers.0.pos_encoder" in legacy["whole"] & legacy["check loop"]
    assert "layers.0.pos_encoder" not in legacy["position layer"]
    assert "layers.0.entropy_gate" in auto["whole"] & auto["anchors"]
    assert "layers.0.entropy_gate" not in auto["entropy gate"]
    assert models["auto"]["anchors"].start("law").leads == (0,) * checkpoints["auto"].config.layers
    found = mechanisms.effects(checkpoints, DOCUMENTS[:2])
    assert set(found["auto"]) == {"whole", "anchors", "thresholds", "entropy gate", "second reading"}
    assert set(found["legacy"]) == {"whole", "check loop", "position layer", "second reading"}


def _operations(model: Model) -> set[str]:
    found: set[str] = set()
    model.forward([1, 400, 401], model.start("law"), lambda name, shape: found.add(name))
    return found


def test_the_log_tells_of_the_position_layer(tmp_path: Path):
    log = tmp_path / "training.jsonl"
    rows = [
        {"event": "progress", "step": 1, "zh": 0.5, "en": 0.4, "unstated_f1": 0.3},
        {"event": "frozen", "line": "[Layer 1] pos_encoder.weight[0]: grad_norm=0.0000e+00 (frozen) step 2"},
        {"event": "frozen", "line": "[Layer 1] pos_encoder.weight[0]: grad_norm=0.0000e+00 (frozen) step 3"},
        {"event": "positions removed", "step": 4, "open": [1, 0]},
    ]
    log.write_text("\n".join(map(json.dumps, rows[:3])), "utf-8")
    assert mechanisms.position_layer(log) is None
    log.write_text("\n".join(map(json.dumps, rows)), "utf-8")
    found = mechanisms.position_layer(log)
    assert found
    assert (found["frozen_gates"], found["removed_at_step"], found["after"]) == (1, 4, None)
    assert found["before"]["zh"] == 0.5


def test_the_check_loop_is_held_against_its_trunk(checkpoints):
    found = agreement(checkpoints["legacy"], DOCUMENTS[:4])
    assert found["decisions"] == sum(
        question.kind != "summary" for item in DOCUMENTS[:4] for question in item.questions
    )
    for key in ("verdict_with_trunk_spearman", "verdict_with_right", "trunk_with_right"):
        assert -1 <= found[key]["low"] <= found[key]["value"] <= found[key]["high"] <= 1


def test_contradictions_contradict(engines):
    for language in ("zh", "en"):
        case = make_case(random.Random(3), language)
        for kind, question in zip(case.kinds, case.document.questions, strict=True):
            matching = [text for text in case.document.sentences if _year(question.text) == _year(text)]
            assert bool(question.answers) == (kind == "stated")
            if kind == "stated":
                assert case.document.sentences[question.answers[0]] in matching
    found = contradictions(engines, 2)
    for side in GENERATIONS:
        assert all(cell["asked"] == 4 * FACTS // 3 for cell in found[side].values())
        assert all(0 <= cell["right"] <= cell["asked"] for cell in found[side].values())


def _year(text: str) -> str:
    digits = "".join(char if char.isdigit() else " " for char in text).split()
    return next(number for number in digits if len(number) == 4 and number.startswith("20"))


def test_a_call_up_names_two_anchors_of_its_domain():
    assert call_up("law", "zh") == "以下问题涉及甲方和乙方。"
    assert call_up("finance", "en") == "This is about revenue and net income. "
    assert all((item.domain, item.tag) == ("medicine", "") for item in documents_of("medicine", "zh", 2))


def test_repetition_is_counted_in_grams():
    assert repeated([1, 2, 3, 4]) == 0
    assert repeated([1, 2, 1, 2, 1]) == 0.5
    assert repeated([1, 1, 1, 1, 1]) == 0.75
    assert repeated([7]) == 0


def test_repetition_has_a_slope(engines):
    found = repetition(engines, 1)
    for side in GENERATIONS:
        assert list(found[side]["share"]) == [str(at) for at in TEMPERATURES]
        assert found[side]["slope"]["low"] <= found[side]["slope"]["value"] <= found[side]["slope"]["high"]


def test_the_cache_gets_the_same_bytes(checkpoints):
    legacy, auto = Model(checkpoints["legacy"]), Model(checkpoints["auto"])
    assert block_bytes(legacy) == block_bytes(auto) > 64 * auto.position_bytes
    assert matrix_bytes(auto, 4096) == 0 < matrix_bytes(legacy, 4096)
    assert workload(3) == workload(3)
    found = hit_rates(checkpoints, 30)
    assert found["blocks"]["auto"] == found["blocks"]["legacy"] > 0
    assert found["blocks_and_matrices"]["auto_minus_legacy"]["value"] >= 0


def test_load_is_measured(engines):
    found = throughput({name: engine.model for name, engine in engines.items()}, (1, 3), 4)
    assert list(found) == ["1", "3"]
    assert all(cell["auto_over_legacy"]["ratio"] > 0 for cell in found.values())
    costs = call_costs(engines, 2)
    assert all(costs[side]["cpu_s"] > 0 for side in GENERATIONS)


def test_written_passages_are_scored(engines):
    cases = [{"text": "The red boat left Oslo in 1998. It rained.", "asks": [
        {"question": "When did the red boat leave Oslo?", "holds": "1998"}, {"question": "?", "holds": "not in it"},
    ]}]  # fmt: skip
    found = passages(engines["auto"], cases)
    assert (found["asked"], found["refused"]) == (2, "0 of 0")
    assert found["low"] <= found["share"] <= found["high"]


def test_values_are_compared_with_what_the_fact_states(engines, monkeypatch):
    documents = DOCUMENTS[:2]
    known = {question.text: question.value for item in documents for question in item.questions}
    asked = sum(bool(value) for value in known.values())
    told = "zlclient.engine.evaluation.quality.excerpt"
    monkeypatch.setattr(told, lambda engine, sentences, text, **options: known[text])
    assert values(engines["auto"], documents) == {"asked": asked, "right": asked, "share": 1, "low": 1, "high": 1}
    monkeypatch.setattr(told, lambda engine, sentences, text, **options: None)
    assert values(engines["auto"], documents)["right"] == 0


def test_as_served_the_offline_responder_answers_what_the_engine_is_not_sure_of(engines, monkeypatch):
    asks = [
        {"question": "What is the harbour's draught?", "holds": "eleven"},
        {"question": "Who owns the ferry?", "holds": None},
    ]
    cases = [{"text": "The harbour's draught is eleven metres. The lighthouse was painted in May.", "asks": asks}]
    monkeypatch.setattr(engine_answers, "SURE", 1.1)
    never = served_passages(engines["auto"], cases)
    assert never == {**served_passages(None, cases), "by_the_engine": 0}
    monkeypatch.setattr(engine_answers, "SURE", 0.0)
    always = served_passages(engines["auto"], cases)
    assert (always["asked"], always["by_the_engine"]) == (2, 2)


def test_passages_that_cannot_be_read_are_named(tmp_path: Path):
    with pytest.raises(ConfigError, match=r"none\.yaml"):
        evaluate.evaluate(quick=True, passages=[tmp_path / "none.yaml"])


def test_the_quick_run_measures_memory_at_8k():
    assert 8192 in QUICK.memory
