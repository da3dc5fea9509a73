"""The checkpoints in the wheel: small, whole, of their own generation, and able to do what they were trained for."""

import argparse
import json

import pytest

from zlclient.cli.engine import add_parser
from zlclient.engine.checkpoint import SHIPPED, load_checkpoint, load_shipped
from zlclient.engine.config import GENERATIONS
from zlclient.engine.evaluation.quality import exact_match, held_out
from zlclient.engine.runner import Engine
from zlclient.engine.training.vocabulary import build_tokenizer
from zlclient.errors import ConfigError


def test_they_weigh_no_more_than_ten_megabytes():
    assert sum(file.stat().st_size for file in SHIPPED.rglob("*.safetensors")) <= 10_000_000


@pytest.mark.parametrize("generation", GENERATIONS)
def test_each_is_its_own_generation_only(generation):
    assert load_checkpoint(SHIPPED / generation).config.generation == generation
    other = next(name for name in GENERATIONS if name != generation)
    with pytest.raises(ConfigError, match="tensor '"):
        load_checkpoint(SHIPPED / generation, generation=other)


def test_auto_holds_no_position_or_check_tensors():
    names = set(load_shipped("auto").tensors)
    assert not [name for name in names if "pos_encoder" in name or name.startswith("check.")]
    assert [name for name in load_shipped("legacy").tensors if "pos_encoder" in name]


def test_the_check_loop_is_at_most_three_thousandths_of_legacy():
    tensors = load_shipped("legacy").tensors
    check = sum(tensor.size for name, tensor in tensors.items() if name.startswith("check."))
    assert 0 < check <= 0.003 * sum(tensor.size for tensor in tensors.values())


@pytest.mark.parametrize("generation", GENERATIONS)
def test_both_have_the_vocabulary_of_the_recipe(generation):
    assert load_shipped(generation).tokenizer.pieces == build_tokenizer().pieces


@pytest.mark.parametrize("generation", GENERATIONS)
def test_the_log_of_training_ends_with_its_score(generation):
    rows = [json.loads(line) for line in (SHIPPED / generation / "training.jsonl").read_text("utf-8").splitlines()]
    last = [row for row in rows if row["event"] == "progress"][-1]
    assert last.keys() >= {"step", "cpu_s", "loss", "zh", "en", "unstated_f1"}


def test_autos_thresholds_are_those_of_its_domains():
    config = load_shipped("auto").config
    assert set(config.thresholds) == set(config.domains)
    assert all(0 <= value <= 1 for points in config.thresholds.values() for value in points.values())


@pytest.mark.parametrize("generation", GENERATIONS)
def test_it_does_far_better_than_chance(generation):
    documents = [*held_out(4, "zh", 4), *held_out(4, "en", 4)]
    assert exact_match(Engine.shipped(generation), documents).exact > 0.4  # a guess is right in one of four


def command(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_parser(parser.add_subparsers())
    return parser.parse_args(arguments)


def test_the_command_shows_what_is_there(capsys):
    args = command(["engine", "info", "--json"])
    assert args.run(args) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["legacy"]["positions"], found["auto"]["positions"]) == (True, False)
    assert (found["legacy"]["check_loop"], found["auto"]["check_loop"]) == (True, False)
    args = command(["engine", "info"])
    args.run(args)
    assert "entropy_bound" in capsys.readouterr().out


@pytest.mark.parametrize("generation", GENERATIONS)
def test_the_command_traces_a_forward_pass(capsys, generation):
    args = command(["engine", "trace", "hello there", "--generation", generation])
    assert args.run(args) == 0
    out = capsys.readouterr().out
    assert ("pos_encoder" in out) == ("check" in out) == (generation == "legacy")
    args = command(["engine", "trace", "--json"])
    args.run(args)
    assert json.loads(capsys.readouterr().out)[-1][0] == "head"
