"""Values of a kind are found as they stand in a text, and a field's name says which kind it holds."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zlclient.serving.value_kinds import found, is_bare, kind_listed, kind_of

KINDS = (
    "email", "url", "phone", "percent", "code", "money", "time", "date", "organisation", "address", "department",
    "quantity", "person",
)  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "text", "values"),
    [
        ("email", "Write to a.b@x.example or 邮箱c@y.co.uk。", ["a.b@x.example", "c@y.co.uk"]),
        ("phone", "电话13800138000，或 (555) 123-4567, on 2024-09-18", ["13800138000", "(555) 123-4567"]),
        ("date", "from 3 January 2024 to March 5, 2025; 2026年3月5日 and Friday, 8 August.",
         ["3 January 2024", "March 5, 2025", "2026年3月5日", "Friday, 8 August"]),
        ("money", "$1,200.50, 84 million euros, 人民币58万元 and 5%", ["$1,200.50", "84 million euros", "人民币58万元"]),
        ("percent", "rose by 12% and 4.5 percent, 百分之三", ["12%", "4.5 percent", "百分之三"]),
        ("time", "At 9:00 and 2 pm, 下午三点半 or noon", ["9:00", "2 pm", "下午三点半", "noon"]),
        ("code", "Order A-2201, no. KX-77310, 订单号DD2024091, in 2024", ["A-2201", "KX-77310", "DD2024091"]),
        ("url", "See https://x.example/a?b=1. Or www.y.example!", ["https://x.example/a?b=1", "www.y.example"]),
        ("person", "Anne-Marie O'Neil met José Álvarez; Dr. Okafor left. The Bank closed.",
         ["Anne-Marie O'Neil", "José Álvarez", "Dr. Okafor"]),
        ("person", "评审由冯丽华主持，专家何志刚和卢敏分别点评了方案。", ["冯丽华", "何志刚", "卢敏"]),
        ("organisation", "甲方为上海云帆科技有限公司，由 Cobalt Print Services 承印", ["上海云帆科技有限公司", "Cobalt Print Services"]),
        ("address", "地址是南湖区翠竹路18号6栋302室。", ["南湖区翠竹路18号6栋302室"]),
        ("quantity", "库存120斤, 250 g and 40 minutes", ["120斤", "250 g", "40 minutes"]),
    ],
)  # fmt: skip
def test_the_values_of_a_kind(kind: str, text: str, values: list[str]):
    assert [span.text for span in found(kind, text) if not (kind == "code" and span.text == "2024")] == values


@pytest.mark.parametrize(
    ("field", "kind"),
    [
        ("due_date", "date"), ("Email address", "email"), ("订单号", "code"), ("实付金额", "money"), ("甲方", "organisation"),
        ("customerName", "person"), ("毛利率", "percent"), ("colour", "colour"), ("学历", "degree"), ("flavour", None), ("标题", None),
    ],
)  # fmt: skip
def test_a_fields_name_tells_its_kind(field: str, kind: str | None):
    assert kind_of(field) == kind


def test_a_bare_name_says_no_more_than_its_kind():
    assert is_bare("name")
    assert is_bare("日期")
    assert not is_bare("tenant")
    assert not is_bare("签订日期")


def test_a_request_for_all_values():
    assert kind_listed("List all email addresses") == "email"
    assert kind_listed("这段话提到了哪些人？") == "person"
    assert kind_listed("Where does Ann live?") is None


@given(st.sampled_from(KINDS), st.text(max_size=200) | st.text("甲公司赵日月年0123 :,.-@AbC有限路号元%", max_size=200))
def test_spans_are_parts_of_the_text_in_its_order(kind: str, text: str):
    spans = found(kind, text)
    assert all(text[span.start : span.end] == span.text != "" for span in spans)
    assert all(one.end <= other.start for one, other in pairwise(spans))
