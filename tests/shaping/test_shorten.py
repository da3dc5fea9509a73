"""Half a request: what stays, what goes, and that nothing is lost by a split."""

from hypothesis import given
from hypothesis import strategies as st

from zlclient import Client, Settings
from zlclient.request import Request
from zlclient.shaping.shorten import shortened, split_request

SETTINGS = Settings.load(folder="/", env={})
LONG = "。".join(f"第{n}句话在这里" for n in range(100))


def tuned(messages):
    with Client(settings=SETTINGS) as client:
        return client.prepare(messages, provider="anthropic").tuned


def test_the_oldest_turns_go_first_and_a_tool_result_keeps_its_call():
    call = {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {}}]}
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "r"}]}
    answer = {"role": "assistant", "content": "a"}
    turns = [{"role": "user", "content": "1"}, answer, {"role": "user", "content": "2"}, call, result, answer]
    kept, note = shortened(tuned([*turns, {"role": "user", "content": "3"}]))
    assert [message["content"] for message in kept.messages] == ["3"]
    assert (note.before, note.after) == (7, 1)


def test_a_single_turn_loses_its_middle_in_a_string_or_a_block():
    for content in (LONG, [{"type": "image", "source": {"type": "url", "url": "u"}}, {"type": "text", "text": LONG}]):
        cut, note = shortened(tuned([{"role": "user", "content": content}]))
        left = cut.messages[0]["content"]
        text = left if isinstance(left, str) else left[1]["text"]
        assert text.startswith("第0句话")
        assert text.endswith("第99句话在这里")
        assert "[…]" in text
        assert len(text) < 0.6 * len(LONG)
        assert note.rule == "shorten"
    assert shortened(tuned("too short")) is None


@given(st.text(min_size=0, max_size=3000))
def test_a_split_loses_nothing_but_blanks(text):
    halves = split_request(Request.of([{"role": "user", "content": [{"type": "text", "text": text}]}]))
    if halves is not None:
        parts = [half.messages[0]["content"][0]["text"] for half in halves]
        assert "".join("".join(parts).split()) == "".join(text.split())


def test_both_halves_keep_the_instruction():
    prompt = f"请总结。\n\n{LONG}\n\n{LONG}\n\n三句话。"
    first, second = split_request(Request.of(prompt))
    for half in (first, second):
        assert half.messages[0]["content"].startswith("请总结。\n\n")
        assert half.messages[0]["content"].endswith("\n\n三句话。")
