"""The data is the seed's, a run goes on where it was killed, calibration and curves follow from what they are given."""

import json
import random
from dataclasses import replace

import numpy as np
import pytest

from zlclient.engine.checkpoint import SHIPPED, Checkpoint
from zlclient.engine.evaluation.intervals import median, paired_ratio, total
from zlclient.engine.model import Model
from zlclient.engine.prompt import Prompt
from zlclient.engine.training.calibrate import _threshold
from zlclient.engine.training.curves import draw_curves
from zlclient.engine.training.data import _Fact, _same, make_document
from zlclient.engine.training.vocabulary import build_tokenizer, chinese_characters
from zlclient.errors import ConfigError


def test_the_same_seed_gives_the_same_documents():
    made = [[make_document(random.Random(seed), 8, 8) for seed in seeds] for seeds in ((1, 2), (1, 2), (3, 4))]
    assert made[0] == made[1] != made[2]


@pytest.mark.parametrize("seed", range(40))
def test_questions_are_answered_by_sentences_that_are_there(seed: int):
    document = make_document(random.Random(seed), 6, 8)
    for question in document.questions:
        assert all(0 <= at < 6 for at in question.answers)
        assert len(question.answers) == {"fact": 1, "loose": 1, "unstated": 0}.get(question.kind, len(question.answers))
        if question.value:
            assert question.value.lower() in document.sentences[question.answers[0]].lower()
        if question.kind == "summary":
            assert question.answers[0] == 0
            assert list(question.answers) == sorted(set(question.answers))


def test_a_year_that_the_text_does_not_speak_of_is_not_answered():
    fact = _Fact("en", "Teru", "rent", "money", 2020)
    assert _same(fact, fact)
    assert not _same(replace(fact, year=2021), fact)
    assert _same(replace(fact, year=0), fact)
    assert not _same(replace(fact, name="Tavo"), fact)


def test_a_value_is_learned_as_the_part_of_its_sentence():
    prompt = Prompt(build_tokenizer())
    sentence = "In 2020, the rent of Teru was 41.5 million euros."
    (marker, *told), end = prompt.sentence(3, sentence), prompt.question("")[0]
    found = prompt.value(3, sentence, "41.5 million euros")
    assert found is not None
    assert end not in found
    assert build_tokenizer().decode(found) == "41.5 million euros"
    assert "".join(map(chr, found[1:-1])) in "".join(map(chr, told))  # markers and all, as it stands there
    assert found[0] == marker
    assert prompt.value(3, sentence, "42") is None


@pytest.mark.parametrize("generation", ["legacy", "auto"])
def test_the_network_in_training_is_the_model_that_runs(generation):
    """With several passages padded to one length, their questions beside them, anchors, positions and the gate."""
    torch = pytest.importorskip("torch", reason="PyTorch (the extra `train`) is not installed")
    from zlclient.engine.training.batches import document_batch
    from zlclient.engine.training.export import tensors_of
    from zlclient.engine.training.recipe import Run

    run = Run(generation, build_tokenizer(), steps=100, seed=0, log=lambda entry: None)
    with torch.no_grad():
        for name, weight in run.model.named_parameters():
            if "pos_encoder" in name or "conv" in name:
                weight.add_(torch.randn_like(weight) * 0.3)
    if generation == "auto":
        run.without_positions()
        run.close_heads(0.8)
    model = Model(Checkpoint(run.model.config, run.tokenizer, tensors_of(run.model), ""))
    batch, _ = document_batch(random.Random(1), run.tokenizer, documents=3, facts=4, questions=5)
    run.model.eval()
    with torch.no_grad():
        hidden = run.model(batch)
    compared = 0
    for asked, states in zip(batch.questions, hidden[1:], strict=True):
        for row, at in (asked.weights > 1).any(-1).nonzero().tolist():
            place = int((asked.weights[row, at] > 1).int().argmax())
            passage = batch.passages[row][batch.present[row]].tolist()
            state = model.start(run.model.config.domains[int(batch.domains[row])])
            found = model.forward([*passage, *asked.tokens[row, at, : place + 1].tolist()], state).logits
            meant = run.model.logits(states[row, at, place]).detach().numpy()
            far = np.sort(np.abs(found - meant))
            rescored = run.model.config.check_candidates * (run.model.config.check_rounds + 1)
            assert far[: -rescored or None].max() < 1e-4
            compared += 1
    assert compared == 15


def test_a_language_is_kept_to():
    for seed in range(20):
        document = make_document(random.Random(seed), 5, 5, language="en")
        assert all(sentence.isascii() for sentence in document.sentences)


def test_the_vocabulary_is_the_same_everywhere():
    tokenizer = build_tokenizer()
    assert len(set(tokenizer.pieces)) == len(tokenizer.pieces)
    assert set(chinese_characters()) <= set(tokenizer.pieces)
    assert tokenizer.size == build_tokenizer().size


@pytest.mark.parametrize(
    ("seen", "threshold"),
    [
        ([], 0.0),
        ([(0.9, True, False), (0.2, False, True)], 0.55),
        ([(0.9, True, False), (0.2, False, False)], 0.0),
        ([(0.9, True, False), (0.8, True, False), (0.2, True, False), (0.1, False, True)], 0.15),
        ([(0.9, True, False), (0.4, True, False), (0.3, False, True), (0.2, False, True), (0.0, False, True)], 0.35),
    ],
)
def test_a_threshold_makes_exact_match_and_refusal_largest_together(seen, threshold):
    assert _threshold(seen) == pytest.approx(threshold)


def test_curves_are_drawn_from_a_log(tmp_path):
    rows = [
        {"step": 1, "loss": 2.0, "zh": 0.1, "en": 0.2, "unstated_f1": 0.3, "gates": [4, 4]},
        {"event": "frozen"},
        {"step": 2, "loss": 1.0},
    ]
    log = tmp_path / "log.jsonl"
    log.write_text("\n".join(map(json.dumps, rows)))
    draw_curves(log, tmp_path / "curves.svg")
    svg = (tmp_path / "curves.svg").read_text()
    assert svg.count("<polyline") == 5
    assert "largest 8" in svg


def test_a_ratio_has_an_interval_around_it():
    rng = random.Random(0)
    below = [rng.uniform(1, 2) for _ in range(50)]
    ratio = paired_ratio([value * 0.5 * rng.uniform(0.9, 1.1) for value in below], below, median)
    assert ratio.low < 0.5 < ratio.high
    assert ratio.high - ratio.low < 0.2
    same = paired_ratio(below, below, total)
    assert (same.low, same.value, same.high) == (1, 1, 1)


@pytest.mark.parametrize("generation", ["legacy", "auto"])
def test_the_log_of_a_shipped_checkpoint_can_be_drawn(generation, tmp_path):
    draw_curves(SHIPPED / generation / "training.jsonl", tmp_path / "curves.svg")
    assert (tmp_path / "curves.svg").read_text().count("<polyline") == 5


def test_a_killed_run_goes_on_as_it_would_have(tmp_path):
    torch = pytest.importorskip("torch", reason="PyTorch (the extra `train`) is not installed")
    from zlclient.engine.training.runs import train

    torch.set_num_threads(1)
    whole = train("legacy", tmp_path / "whole", steps=4, documents=1)
    train("legacy", tmp_path / "cut", steps=4, save_every_s=-1, limit=2)
    cut = train("legacy", tmp_path / "cut", steps=4, documents=1)
    assert cut.step == whole.step == 4
    for name, weight in whole.model.state_dict().items():
        assert torch.equal(weight, cut.model.state_dict()[name]), name
    auto = train("auto", tmp_path / "auto", steps=6, stem=tmp_path / "whole", documents=1)
    assert auto.model.config.buckets == 0
    assert auto.model.config.entropy_bound is not None


def test_a_run_of_auto_needs_a_stem(tmp_path):
    pytest.importorskip("torch", reason="PyTorch (the extra `train`) is not installed")
    from zlclient.engine.training.runs import train

    with pytest.raises(ConfigError, match="half"):
        train("auto", tmp_path, steps=4)
