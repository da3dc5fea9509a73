"""Tags once and never into quoted text; snippets sorted and stable; the density meter."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zlclient import Client, InputError
from zlclient.shaping.anchors import add_snippets, anchor_density, snippets, tag_messages, tag_text
from zlclient.shaping.domains import bundled_domains, find_domain, language_of

FINANCE = bundled_domains()["finance"]


@pytest.mark.parametrize(
    ("text", "tagged"),
    [
        ("交付量？", "【财经数据】交付量？"),
        ("How many?", "【Financial data】How many?"),
        ("【财经数据】交付量？", "【财经数据】交付量？"),
        ("【Financial data】How many?", "【Financial data】How many?"),
        ("【附件】交付量？", "【财经数据】【附件】交付量？"),
        ("> 【财经数据】引文", "【财经数据】\n> 【财经数据】引文"),
        ("“引文”是什么意思？", "【财经数据】\n“引文”是什么意思？"),
        ("- 第一项", "【财经数据】\n- 第一项"),
        ("```\n代码\n```", "【财经数据】\n```\n代码\n```"),
        ("<document>文</document>", "【财经数据】\n<document>文</document>"),
    ],
)
def test_a_text_gets_its_tag(text, tagged):
    assert tag_text(text, FINANCE) == tagged


@given(st.text(min_size=1))
def test_never_twice(text):
    once = tag_text(text, FINANCE)
    assert once.endswith(text)
    assert tag_text(once, FINANCE) is once


def test_only_the_first_user_text_is_tagged():
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "数据"}]}
    first = {"role": "user", "content": [{"type": "image", "source": {}}, {"type": "text", "text": "问"}]}
    later = {"role": "user", "content": "再问"}
    assistant = {"role": "assistant", "content": "答"}
    messages, note = tag_messages((assistant, result, first, later), FINANCE)
    assert note is not None
    assert messages[2]["content"][1]["text"] == "【财经数据】问"
    assert (messages[0], messages[1], messages[3]) == (assistant, result, later)
    assert first["content"][1]["text"] == "问"
    again, note = tag_messages(messages, FINANCE)
    assert (again, note) == (messages, None)


def test_every_domain_is_complete():
    for name in ("finance", "law", "medicine", "science", "technology", "support", "general"):
        domain = find_domain(name, {})
        assert domain.tag_zh.startswith("【")
        assert 0 < domain.threshold < 1
    assert "主诉" in bundled_domains()["medicine"].anchors
    assert "特此订立本协议" in bundled_domains()["law"].anchors
    with pytest.raises(InputError, match="finance"):
        find_domain("finanse", {})


def test_language():
    assert [language_of(text) for text in ("", "abc", "é", "中", "a中", "かな")] == ["en", "en", "en", "zh", "zh", "en"]


def test_snippets_are_sorted_added_once_and_in_the_language_of_the_text():
    system, notes = add_snippets("系统", ["format", "fidelity"], "zh")
    assert system == f"系统\n\n{snippets()['fidelity']['zh']}\n\n{snippets()['format']['zh']}"
    assert [note.rule for note in notes] == ["snippet-fidelity", "snippet-format"]
    assert add_snippets(system, ["fidelity"], "zh") == (system, ())
    cached = ({"type": "text", "text": "s", "cache_control": {"type": "ephemeral"}},)
    blocks, _ = add_snippets(cached, ["callup"], "en")
    assert blocks[0] is cached[0]
    assert blocks[1] == {"type": "text", "text": snippets()["callup"]["en"]}
    with pytest.raises(InputError, match="fidelity"):
        add_snippets(None, ["nope"], "en")


@pytest.mark.parametrize(
    ("text", "structured", "total"),
    [
        ("", 0, 0),
        ("You are kind.\nBe nice to people.", 0, 2),
        ("# Role\n\n- one\n1. two\n一、三\n（二）四\n【五】\n| a | b |\n角色：助手\nfree text here", 8, 9),
        ("<rules>\nx\n</rules>", 2, 3),
    ],
)
def test_density(text, structured, total):
    density = anchor_density(text)
    assert (density.structured, density.total) == (structured, total)
    assert 0 <= density.share <= 1


def test_reinforce_only_under_the_threshold_and_only_when_asked():
    loose, tight = "你是助手。\n请回答问题。", "- 一\n- 二\n- 三"
    with Client(provider="local") as client:
        assert client.prepare("问", system=loose).tuned.system == loose
        assert snippets()["reinforce"]["zh"] in client.prepare("问", system=loose, reinforce=True).tuned.system
        assert client.prepare("问", system=tight, reinforce=True).tuned.system == tight


def test_a_route_has_its_own_snippets():
    with Client(provider="local", routes={"careful": {"model": "local:auto", "anchors": ["callup"]}}) as client:
        assert snippets()["callup"]["en"] in client.prepare("hi", model="careful").tuned.system
        assert client.prepare("hi", model="careful", anchors=[]).tuned.system is None
        assert client.prepare("hi").tuned.system is None
