"""The profile shows what each generation does, and a flame graph that any browser draws."""

import threading
import xml.etree.ElementTree as ET

import pytest

from zlclient.engine.flame import WIDTH, flame_graph
from zlclient.engine.profiling import Profiler, collapsed
from zlclient.engine.runner import Engine

SVG = "{http://www.w3.org/2000/svg}"


def profiled(engine: Engine) -> Profiler:
    """A profile of `engine` at work, with enough samples to see all that takes a part of the time."""
    prompts = iter(range(10_000))
    with Profiler(0.0005) as profiler:
        while sum(profiler.stacks.values()) < 300:
            list(engine.stream([70 + next(prompts) % 40] * 150, max_tokens=20))
    return profiler


@pytest.mark.parametrize("generation", ["legacy", "auto"])
def test_only_legacys_profile_shows_a_position_bias_and_a_check_loop(make_checkpoint, generation):
    profiler = profiled(Engine(make_checkpoint(generation), cache_blocks=0))
    frames = {frame for stack in profiler.stacks for frame in stack}
    assert {frame for frame in frames if frame.startswith("engine-")} == {f"engine-{generation}"}
    assert any("Scheduler._round" in frame for frame in frames)
    found = [any(part in frame for frame in frames) for part in ("PositionBias", "FidelityCheck")]
    assert found == [generation == "legacy"] * 2


def test_waiting_is_no_work(make_checkpoint):
    engine = Engine(make_checkpoint("auto"))
    list(engine.stream([80, 81]))  # its thread waits for more
    pause = threading.Event()
    for _ in range(1000):
        profiler = Profiler()
        profiler.sample()
        if not profiler.stacks:
            return
        pause.wait(0.001)
    raise AssertionError(profiler.stacks)


def test_a_profile_ends_its_thread():
    with Profiler(0.0005):
        assert "zlclient-profiler" in [thread.name for thread in threading.enumerate()]
    assert "zlclient-profiler" not in [thread.name for thread in threading.enumerate()]


STACKS = {("t", "a:<x>", "b"): 3, ("t", "a:<x>"): 1, ("t", "c"): 4}


def test_collapsed_stacks_are_one_line_each():
    assert collapsed(STACKS).splitlines() == ["t;a:<x> 1", "t;a:<x>;b 3", "t;c 4"]


def test_a_flame_graph_has_a_box_for_each_function_as_wide_as_its_share():
    root = ET.fromstring(flame_graph(STACKS))
    boxes = {
        group.findtext(f"{SVG}title"): float(group.find(f"{SVG}rect").get("width")) for group in root.iter(f"{SVG}g")
    }
    assert boxes == {
        "zlclient engine: 8 samples (8, 100.0 %)": WIDTH,
        "t (8, 100.0 %)": WIDTH,
        "a:<x> (4, 50.0 %)": WIDTH / 2,
        "b (3, 37.5 %)": WIDTH * 3 / 8,
        "c (4, 50.0 %)": WIDTH / 2,
    }


def test_a_flame_graph_of_nothing_is_drawn_as_well():
    assert "0 samples" in flame_graph({})
