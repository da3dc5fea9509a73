"""The profile shows what each generation does, and a flame graph that any browser draws."""

import threading
import xml.etree.ElementTree as ET
from collections.abc import Callable

from zlclient.engine.flame import WIDTH, flame_graph
from zlclient.engine.profiling import Profiler, collapsed
from zlclient.engine.runner import Engine

SVG = "{http://www.w3.org/2000/svg}"


LEGACYS = ("position_bias", "FidelityCheck")


def frames_of(engine: Engine, enough: Callable[[int, set[str]], bool]) -> set[str]:
    """The functions in a profile of `engine` at work, once there are enough samples."""
    with Profiler(0.0005) as profiler:
        for at in range(10_000):
            list(engine.stream([70 + at % 40] * 300, max_tokens=20))
            frames = {frame for stack in profiler.stacks.copy() for frame in stack}
            if enough(sum(profiler.stacks.values()), frames):
                return frames
    raise AssertionError("never enough")


def shown(frames: set[str]) -> list[str]:
    return [part for part in LEGACYS if any(part in frame for frame in frames)]


def test_legacys_profile_shows_a_position_bias_and_a_check_loop(make_checkpoint):
    engine = Engine(make_checkpoint("legacy"), cache_blocks=0)
    frames_of(engine, lambda _, frames: shown(frames) == list(LEGACYS))


def test_autos_profile_shows_neither(make_checkpoint):
    frames = frames_of(Engine(make_checkpoint("auto"), cache_blocks=0), lambda count, _: count > 500)
    assert shown(frames) == []
    assert {frame for frame in frames if frame.startswith("engine-")} == {"engine-auto"}
    assert any("Scheduler._round" in frame for frame in frames)


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
