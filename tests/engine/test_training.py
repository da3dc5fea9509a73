"""The data is the seed's, a run goes on where it was killed, calibration and curves follow from what they are given."""

import json
import random

import pytest

from zlclient.engine.evaluation.intervals import median, paired_ratio, total
from zlclient.engine.training.calibrate import _threshold
from zlclient.engine.training.curves import draw_curves
from zlclient.engine.training.data import make_document
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
        if question.kind == "summary":
            assert question.answers[0] == 0
            assert list(question.answers) == sorted(set(question.answers))


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
        ([(0.9, True, False), (0.8, True, False), (0.2, True, False), (0.0, False, True)], 0.0),
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
    assert (same.low, same.ratio, same.high) == (1, 1, 1)


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
