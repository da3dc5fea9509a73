import json
import pickle
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, field_validator

from zlclient.checking import FormatSpec, OutputError, check_format, parse_output
from zlclient.checking.sentences import sentences
from zlclient.errors import InputError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("第一句。第二句！第三句？", ["第一句。", "第二句！", "第三句？"]),
        ("先做这个；再做那个。", ["先做这个；再做那个。"]),
        ("增长3.5%。下降2.1%。", ["增长3.5%。", "下降2.1%。"]),
        ("他说：“走吧。”然后离开了。", ["他说：“走吧。”", "然后离开了。"]),
        ("真的吗？！好的。", ["真的吗？！", "好的。"]),
        ("等等……好吧。", ["等等……好吧。"]),
        ("没有句号的一行\n另一行", ["没有句号的一行", "另一行"]),
        (
            "Dr. Smith lives in the U.S. He works for Acme Inc. in Ohio.",
            ["Dr. Smith lives in the U.S.", "He works for Acme Inc. in Ohio."],
        ),
        (
            "The U.S. Senate met at 3 p.m. Monday. It rose 3.5 points.",
            ["The U.S. Senate met at 3 p.m. Monday.", "It rose 3.5 points."],
        ),
        ("See e.g. Figure 2. J. R. Tolkien wrote it.", ["See e.g. Figure 2.", "J. R. Tolkien wrote it."]),
        ("Wait... no. Wait... No!", ["Wait... no.", "Wait...", "No!"]),
        ('She said "Stop." Then she left.', ['She said "Stop."', "Then she left."]),
        ("Read https://example.com/a.b now. Done.", ["Read https://example.com/a.b now.", "Done."]),
        ("1. 第一点\n2. 第二点。\n- 第三点", ["第一点", "第二点。", "第三点"]),
        ("完成.下一步.", ["完成.", "下一步."]),
        ("  \n---\n", []),
    ],
)
def test_sentences(text, expected):
    assert [text[start:end] for start, end in sentences(text)] == expected


TABLE = "| 季度 | 交付 |\n|---|---:|\n| Q1 | 386,810 |\n| Q2 | 443,956 |\n"


@pytest.mark.parametrize(
    ("answer", "spec", "broken"),
    [
        ("一。二。三。", {"sentences": 3}, []),
        ("一。二。", {"sentences": 3}, ["sentences"]),
        ("一。二。", {"min_sentences": 3}, ["min_sentences"]),
        ("一。二。", {"max_sentences": 1}, ["max_sentences"]),
        ("这是很长的一句话，超过了十个字。短句。", {"max_chars_per_sentence": 10}, ["max_chars_per_sentence"]),
        ("It is a long sentence of eight words.", {"max_words_per_sentence": 7}, ["max_words_per_sentence"]),
        ("It costs 3.5% and doesn't grow.", {"max_words_per_sentence": 6}, []),
        ("一二三，四五六。", {"max_chars": 6}, []),
        ("一二三，四五六七。", {"max_chars": 6}, ["max_chars"]),
        ("one two three", {"max_words": 2}, ["max_words"]),
        ("- a\n- b\n  - c\n- d", {"list": "bullet", "items": 3}, []),
        ("1. a\n2、b\n（3）c\n④ d", {"list": "numbered", "items": 4}, []),
        ("一、甲\n二、乙", {"list": "numbered", "items": 2}, []),
        ("- a\n1. b", {"list": "bullet"}, ["list"]),
        ("- a\n1. b", {"list": "any", "items": 2}, []),
        ("prose", {"list": "any"}, ["list"]),
        ("1. a\n2. b", {"list": "numbered", "max_items": 1}, ["max_items"]),
        (TABLE, {"table": True, "columns": 2, "rows": 2}, []),
        ("前言\n\n" + TABLE + "\n后记", {"table": True, "columns": ["季度", "交付"]}, []),
        (TABLE, {"table": True, "columns": ("季度", "增长")}, ["columns"]),
        (TABLE, {"table": True, "columns": 3, "min_rows": 3}, ["columns", "min_rows"]),
        (TABLE + "| Q3 |\n", {"table": True}, ["columns"]),
        ("| a | b |", {"table": True}, ["table"]),
        ("# 标题\n一。\n" + TABLE + "\n```\n二。三。\n```\n", {"sentences": 1}, []),
        ('{"a": 1}', {"json": True}, []),
        ("```json\n[1, 2]\n```", {"json": True}, []),
        ('好的：{"a": 1}', {"json": True}, ["json"]),
        ("NaN", {"json": True}, ["json"]),
        ("[" * 5000, {"json": True}, ["json"]),
        ("", {"json": True}, ["json"]),
    ],
)
def test_format(answer, spec, broken):
    report = check_format(answer, FormatSpec(**spec))
    assert [problem.rule for problem in report.problems] == broken
    assert report.ok == (not broken)
    assert pickle.loads(pickle.dumps(report)) == report
    json.dumps(report.as_dict())


def test_the_offending_sentence_is_located():
    answer = "# 题\n短句。这一句实在是太长了。"
    (problem,) = check_format(answer, {"max_chars_per_sentence": 5}).problems
    assert answer[problem.start : problem.end] == "这一句实在是太长了。"
    assert (problem.expected, problem.actual) == ("at most 5", "9")


def test_a_fence_is_noted():
    assert check_format("```json\n{}\n```", FormatSpec(json=True)).notes == ("fenced_json",)
    assert check_format("{}", FormatSpec(json=True)).notes == ()


@pytest.mark.parametrize(
    ("options", "where"),
    [
        ({"sentence": 3}, "format.sentence"),
        ({"sentences": -1}, "format.sentences"),
        ({"sentences": True}, "format.sentences"),
        ({"sentences": 3, "max_sentences": 4}, "format.sentences"),
        ({"min_sentences": 3, "max_sentences": 2}, "format.min_sentences"),
        ({"list": "dotted"}, "format.list"),
        ({"items": 3}, "format.items"),
        ({"columns": 2}, "format.columns"),
        ({"table": True, "columns": []}, "format.columns"),
        ({"table": 1}, "format.table"),
        ({"json": True, "sentences": 2}, "format.sentences"),
        ({"json_schema": {"type": "objekt"}}, "format.json_schema"),
        ({"json_schema": "object"}, "format.json_schema"),
    ],
)
def test_wrong_options_fail_at_construction(options, where):
    with pytest.raises(InputError) as caught:
        FormatSpec(**options)
    assert caught.value.where == where


def test_a_spec_pickles():
    spec = FormatSpec(table=True, columns=["a", "b"])
    assert pickle.loads(pickle.dumps(spec)) == spec
    assert spec.columns == ("a", "b")


SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "items": {"type": "array", "items": {"$ref": "#/$defs/item"}}},
    "required": ["name", "items"],
    "additionalProperties": False,
    "$defs": {
        "item": {"type": "object", "properties": {"price": {"type": "number", "minimum": 0}}, "required": ["price"]}
    },
}


def test_json_schema():
    spec = FormatSpec(json_schema=SCHEMA)
    assert check_format('{"name": "甲", "items": [{"price": 3}]}', spec).ok
    report = check_format('{"items": [{"price": 3}, {"price": "SECRET"}, {"price": -1}]}', spec)
    found = sorted((problem.path, problem.actual) for problem in report.problems)
    assert found == [("$", "required"), ("items[1].price", "type"), ("items[2].price", "minimum")]
    assert "SECRET" not in str(report)


def test_a_schema_never_leaves_itself():
    spec = FormatSpec(json_schema={"$ref": "http://localhost:1/elsewhere.json"})
    assert [problem.actual for problem in check_format("{}", spec).problems] == ["$ref"]


class Item(BaseModel):
    price: float

    @field_validator("price")
    @classmethod
    def positive(cls, value: float) -> float:
        if value < 0:
            raise ValueError(f"SECRET {value}")
        return value


class Order(BaseModel):
    name: str
    items: list[Item]


def test_parse_output():
    text = '{"name": "甲", "items": [{"price": 3}]}'
    for answer in (text, f"```json\n{text}\n```", f"\n```\n{text}\n```  \n"):
        assert parse_output(answer, Order).items[0].price == 3
    assert check_format(text, FormatSpec(json_schema=Order)).ok


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("", "empty"),
        ("not json", "not_json"),
        ("{'name': 1}", "not_json"),
        ('Here it is:\n```json\n{"name": "a"}\n```', "prose_around_json"),
        ('{"name": "a"} Done.', "prose_around_json"),
        ('```json\n{"a": 1}\n```\n```json\n{"a": 2}\n```', "several_json"),
        ('{"name": 3, "items": [{"price": "x"}]}', "invalid"),
    ],
)
def test_what_is_no_output(answer, reason):
    with pytest.raises(OutputError) as caught:
        parse_output(answer, Order)
    assert caught.value.reason == reason
    assert pickle.loads(pickle.dumps(caught.value)).reason == reason


def test_problems_tell_place_and_rule_and_no_values():
    with pytest.raises(OutputError) as caught:
        parse_output('{"name": "a", "items": [{"price": 1}, {"price": -77}, {}]}', Order)
    assert [(problem.where, problem.rule) for problem in caught.value.problems] == [
        ("items[1].price", "value_error"),
        ("items[2].price", "missing"),
    ]
    assert "77" not in f"{caught.value} {caught.value.problems}"
    report = check_format('{"name": "a", "items": [{}]}', FormatSpec(json_schema=Order))
    assert [(problem.path, problem.actual) for problem in report.problems] == [("items[0].price", "missing")]


ALPHABET = "一二。！？.…”\"' \n|-*1#`~aZU.S{}[],:：（"
SPECS = [
    FormatSpec(sentences=2, max_chars_per_sentence=3, max_words_per_sentence=3),
    FormatSpec(list="numbered", items=2),
    FormatSpec(table=True, columns=2),
    FormatSpec(json=True),
    FormatSpec(json_schema=SCHEMA),
    FormatSpec(json_schema=Order),
]


@given(st.one_of(st.text(), st.text(alphabet=ALPHABET)), st.sampled_from(SPECS))
@settings(max_examples=400, deadline=None)
def test_no_answer_raises(answer, spec):
    report = check_format(answer, spec)
    json.dumps(report.as_dict())
    spans = sentences(answer)
    assert all(0 <= start < end <= len(answer) for start, end in spans)
    assert all(one[1] <= other[0] for one, other in pairwise(spans))


@given(
    st.lists(st.sampled_from(["今天下雨了", "气温3.5度", "He left", "价格是$4.20"]), min_size=1, max_size=9),
    st.sampled_from("。！？"),
)
def test_joined_sentences_come_apart(parts, mark):
    assert len(sentences("".join(part + mark for part in parts))) == len(parts)
