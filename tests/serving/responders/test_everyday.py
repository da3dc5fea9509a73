"""Everyday requests: fields, all values of a kind, a text in another form, small talk, and what cannot be done."""

import json
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from everyday import misses
from hypothesis import given
from hypothesis import strategies as st

from zlclient.serving.responders.base import Ask, Turn
from zlclient.serving.responders.everyday import settled
from zlclient.serving.responders.forms import Form, form_of
from zlclient.serving.responders.offline import answer
from zlclient.serving.responders.reading import Reading, read
from zlclient.serving.responders.records import records
from zlclient.serving.responders.rewriting import items_of, rewritten
from zlclient.serving.responders.stated import stated_value

FOLDER = Path(__file__).parents[1] / "cases"
# Share of right answers that each set must keep. The rules were made on the first six: 50, 50, 80, 50, 60 and 64 requests, of
# which 19, 13, 25, 19, 37 and 38 were met when they were new. The last was written apart and never looked at, only counted.
PASS_MARKS = {
    "everyday.yaml": 0.86, "everyday_second.yaml": 0.8, "everyday_third.yaml": 0.74, "everyday_fourth.yaml": 0.5,
    "everyday_fifth.yaml": 0.7, "everyday_sixth.yaml": 0.7, "everyday_held_out.yaml": 0.5,
}  # fmt: skip
BOOKING = "We confirm the reservation for Samuel Whitlock. Check-in is on 5 October from 3 pm, check-out on 9 October."
LEASE = (
    "This lease is made between Harold Whitcombe (the landlord) and Ines Ferreira (the tenant). It begins on 1 March 2025. "
    "The monthly rent is 940 pounds."
)


def ask(text: str) -> Ask:
    return Ask(wire="chat", model="m", turns=(Turn("user", ({"type": "text", "text": text},)),))


@pytest.mark.parametrize("name", PASS_MARKS)
def test_everyday_requests(name: str):
    cases = yaml.safe_load((FOLDER / name).read_text("utf-8"))
    wrong = {case["id"]: found for case in cases if (found := misses(answer(ask(case["prompt"])), case["expect"]))}
    assert 1 - len(wrong) / len(cases) >= PASS_MARKS[name], wrong


@pytest.mark.parametrize(
    ("field", "text", "value"),
    [
        ("landlord", LEASE, "Harold Whitcombe"),
        ("tenant", LEASE, "Ines Ferreira"),
        ("start_date", LEASE, "1 March 2025"),
        ("rent", LEASE, "940 pounds"),
        ("deposit", LEASE, None),
        ("guarantor", LEASE, None),
        ("员工总数", "公司净利润为1.1亿元。员工总数3200人。", "3200人"),
        ("董事长", "公司净利润为1.1亿元。员工总数3200人。", None),
        ("Model", "Model: Aero 300\nColor: slate grey", "Aero 300"),
        ("登机口", "登机口为C17，请提前到达。", "C17"),
        ("net income", "Teru Bank's net income is 41 million euros.", "41 million euros"),
        ("check-in date", BOOKING, "5 October"),
        ("check-out date", BOOKING, "9 October"),
        ("guest name", "Thank you for choosing Hotel Alderney! " + BOOKING, "Samuel Whitlock"),
        ("product name", BOOKING, None),
        ("地点", "会议定于4月17日下午2点半召开，地点在研发楼五层蓝厅，请准时。", "研发楼五层蓝厅"),
        ("时间", "会议定于4月17日下午2点半召开，地点在研发楼五层蓝厅，请准时。", "4月17日下午2点半"),
        ("学历", "我叫骆嘉怡，硕士学历，毕业于东澜大学。", "硕士"),
        ("毕业院校", "我叫骆嘉怡，硕士学历，毕业于东澜大学。", "东澜大学"),
        ("colour", "The coat is dark green and has two pockets.", "dark green"),
        ("会议的日期", "The briefing is on 19 March at 10:45 in room D-417, not on 14 March.", "19 March"),
        ("房间号", "The briefing is on 19 March at 10:45 in room D-417, not on 14 March.", "D-417"),
        ("size", "64 m2 with a small balcony. Rent is £1,150 per month.", None),
        ("sender's name", "Hi Rosalind,\nthanks!\nKind regards\nDr Emeka Adeyemi\nHead of Testing", "Dr Emeka Adeyemi"),
        ("专业", "我叫江若彤，2020年本科毕业于南屏师范大学汉语言文学专业。", "汉语言文学"),
        ("毕业院校", "我叫江若彤，2020年本科毕业于南屏师范大学汉语言文学专业。", "南屏师范大学"),
        ("guest", "Welcome to the Gilded Heron Hotel. We expect Nuala Halloran on 8 August.", "Nuala Halloran"),
        ("year joined", "Kofi Asante (extension 4427) joined in 2019.", "2019"),
    ],
)
def test_a_field_is_read_where_it_is_plainly_stated(field: str, text: str, value: str | None):
    assert stated_value(field, text) == value


def test_records_have_a_row_each():
    text = "苹果每斤6元，库存120斤；香蕉每斤4元，库存85斤。"
    assert records(("水果", "单价", "库存"), text) == [["苹果", "6元", "120斤"], ["香蕉", "4元", "85斤"]]
    orders = (
        "Order A-2201 was placed by Lena Brandt and comes to $48.90. Order A-2207 from Owen Tully is worth $112.00."
    )
    assert records(("order number", "customer", "amount"), orders)[1] == ["A-2207", "Owen Tully", "$112.00"]
    assert records(("landlord", "tenant"), LEASE) == []
    plants = "The lavender is 30 cm tall and costs $7. The rosemary is 45 cm tall and costs $9."
    assert records(("Plant", "Height", "Price"), plants) == [
        ["The lavender", "30 cm", "$7"],
        ["The rosemary", "45 cm", "$9"],
    ]
    lamps = "We need 14 desk lamps at $32.50 each and 6 whiteboards at $119.00 each."
    assert records(("item", "quantity", "unit price"), lamps)[0] == ["desk lamps", "14", "$32.50"]
    teachers = "语文老师是季文博，办公室在A座203；数学老师是欧阳静，办公室在A座215。家长会定于周五。"
    assert records(("姓名", "科目", "办公室"), teachers)[1] == ["欧阳静", "数学老师", "A座215"]


def test_a_text_is_put_in_another_form():
    assert rewritten(Form("bullets"), "We need milk, eggs and bread.") == "- We need milk\n- eggs\n- bread"
    assert rewritten(Form("numbers"), "Open it.\nClose it.") == "1. Open it.\n2. Close it."
    assert json.loads(rewritten(Form("json"), "name: Ann, age: 30")) == {"name": "Ann", "age": "30"}
    assert rewritten(Form("table"), "Alpha costs $20. Beta costs $35.").splitlines()[2:] == [
        "| Alpha | $20 |",
        "| Beta | $35 |",
    ]


LINES = st.lists(st.text("ab 甲乙1，、；:", min_size=1, max_size=12).filter(str.strip), min_size=1, max_size=5)


@given(LINES, st.sampled_from(("bullets", "numbers", "table", "json")))
def test_another_form_loses_no_word(lines: list[str], kind: Any):
    text = "\n".join(lines)
    told = rewritten(Form(kind), text)
    words = "".join(json.loads(told)) if kind == "json" and told.startswith("[") else told
    for letter in "ab甲乙":
        assert words.count(letter) >= text.count(letter)
    assert items_of(text) or not text.strip()


@given(st.text(max_size=120), st.text(max_size=200))
def test_any_request_gets_an_answer_or_is_left_to_a_model(question: str, passage: str):
    reading = Reading(question, passage, "en")
    said = settled(reading, form_of(question))
    assert said is None or isinstance(said, str)


@given(st.sampled_from(["name", "总价", "due_date", "x", "a.b*c", "登机口"]), st.text(max_size=200))
def test_a_stated_value_stands_in_the_text(field: str, text: str):
    value = stated_value(field, text)
    assert value is None or value in text


@pytest.mark.parametrize(
    ("request_", "holds"),
    [
        ("Translate to French: Good morning, how are you today?", "can't translate"),
        ("帮我写一封请假邮件。", "不会写作"),
        ("2+2等于多少？", "不会计算"),
        ("Who are you?", "small local model"),
        ("What is the capital of France?", "holds"),
        ("List the dates: it began on 3 May 2024 and ended on 2 June 2025.", "- 3 May 2024\n- 2 June 2025"),
    ],
)
def test_what_is_said_without_a_model(request_: str, holds: str):
    assert holds in answer(ask(request_))


@pytest.mark.parametrize(
    "question", ["推荐剂量是多少？", "What advice does the doctor give?", "什么时候打开阀门？", "Is it cold?"]
)
def test_a_question_about_a_text_is_no_request_for_what_cannot_be_done(question: str):
    text = "The doctor advises rest. 推荐剂量是每日两片。三点打开阀门。It is cold outside today, and the weather may change."
    assert settled(read(ask(f"{text}\n\n{question}")), Form()) is None


def test_a_summary_is_never_taken_for_what_cannot_be_done():
    text = "The line will run from the harbour to the airport. It will cost 90 million euros. Work starts in May."
    assert settled(read(ask(f"Give me a short summary of this mail.\n\n{text}")), Form()) is None


@pytest.mark.parametrize(
    "text",
    [
        "word " * 100_000,
        "List all amounts: " + "1," * 100_000,
        "List all addresses: " + "路" * 100_000,
        "List all emails: " + "a.b+" * 50_000,
        "Extract cost, line and date as JSON:\n" + "It costs 5 euros on Monday. " * 4_000,
        "x: \n" * 50_000,
        "区" * 100_000,
    ],
    ids=lambda text: text[:20],
)
def test_the_time_of_an_answer_grows_with_the_request_not_with_its_square(text: str):
    begun = time.process_time()
    answer(ask(text))
    assert time.process_time() - begun < 20  # a second or so; minutes where a pattern starts over at each character
