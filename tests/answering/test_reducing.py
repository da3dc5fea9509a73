"""Merging ends for any number and length of answers, and never sends more than the room."""

from hypothesis import given
from hypothesis import strategies as st

from zlclient.answering.reducing import LEAST_ROOM, Finding, cost, grouped, held, lines, listed, merged

texts = st.text(alphabet=st.sampled_from("ab 。.\n中文数字12,【】\\🙂"), max_size=400)
anchors = st.lists(st.text(alphabet="【】章节｜ab", max_size=60), max_size=2).map(tuple)
findings = st.lists(st.tuples(anchors, texts), max_size=40).map(
    lambda pairs: [Finding(anchor, text, (at,)) for at, (anchor, text) in enumerate(pairs)]
)
rooms = st.integers(LEAST_ROOM, 2000)
models = st.sampled_from(["claude-sonnet-5-5", "gpt-6.1-sol", "somebody's"])


@given(findings, rooms, models)
def test_what_is_held_takes_at_most_half_the_room(found, room, model):
    for finding in found:
        cut = held(finding, room, model)
        assert cost(f"{cut.rendered}\n\n", model) <= room // 2
        assert finding.text.startswith(cut.text)
        assert cut.segments == finding.segments


@given(findings, rooms, models)
def test_groups_keep_order_and_fit_and_halve(found, room, model):
    fitting = [held(finding, room, model) for finding in found]
    groups = grouped(fitting, room, model)
    assert [finding for group in groups for finding in group] == fitting
    assert all(len(group) >= 2 for group in groups[:-1])
    assert len(groups) <= (len(found) + 1) // 2
    assert all(sum(cost(f"{finding.rendered}\n\n", model) for finding in group) <= room for group in groups)


@given(findings, rooms, models, texts)
def test_rounds_end_whatever_the_model_answers(found, room, model, answer):
    levels = 0
    found = [held(finding, room, model) for finding in found]
    while len(groups := grouped(found, room, model)) > 1:
        levels += 1
        found = [group[0] if len(group) == 1 else held(merged(group, answer), room, model) for group in groups]
    assert levels <= 6  # 40 halved
    assert [at for finding in found for at in finding.segments] == list(range(sum(len(f.segments) for f in found)))


def test_a_long_answer_is_cut_at_a_sentences_end():
    finding = Finding(("【甲】",), "第一句说了很多很多的话。" * 30, (0,))
    cut = held(finding, 200, "claude-sonnet-5-5")
    assert cut.text.endswith("。")
    assert 0 < len(cut.text) < len(finding.text)


def test_anchors_that_leave_no_room_are_left_out():
    assert held(Finding(("【" + "长" * 200 + "】",), "短。", (0,)), 128, None) == Finding((), "短。", (0,))


def test_a_merged_finding_names_its_first_and_last_place():
    one, two, three = (Finding((f"【{n}】",), n, (at,)) for at, n in enumerate("甲乙丙"))
    twice = merged([merged([one, two], "x"), three], "y")
    assert twice == Finding(("【甲】", "【丙】"), "y", (0, 1, 2))
    assert twice.rendered == "【甲】 – 【丙】\ny"
    assert listed([one, twice]) == "【甲】\n甲\n\n【甲】 – 【丙】\ny"


def test_extracts_join_line_by_line_each_once():
    found = [Finding(("a",), "一。\n二。", (0,)), Finding(("b",), " 二。\n\n三。", (1,))]
    assert lines(found) == "一。\n二。\n三。"
