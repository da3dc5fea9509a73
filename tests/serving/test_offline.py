"""The offline responder finds the sentence that answers, in whatever shape the text and the question come."""

import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from zlclient.serving.responders.base import Ask, Turn
from zlclient.serving.responders.offline import NOT_STATED, answer, asked_count
from zlclient.serving.responders.reading import read, sentences, split, untagged
from zlclient.serving.responders.talk import refusal, small_talk, without_text

FOLDER = Path(__file__).parent / "cases"
# Share of right answers each set must keep. The lexicon was tuned on the first. The second got 25 of 33 at first and gave
# rise to general changes (single characters count, one fitting sentence needs less); the third was written after them.
PASS_MARKS = {"offline.yaml": 0.95, "offline_held_out.yaml": 0.85, "offline_third.yaml": 0.85}
CASES: dict[str, list[dict[str, Any]]] = {
    name: yaml.safe_load((FOLDER / name).read_text("utf-8")) for name in PASS_MARKS
}
ASKS = {
    name: [(case["text"], ask["question"], ask["holds"]) for case in cases for ask in case["asks"]]
    for name, cases in CASES.items()
}
NEWS = (
    "The council approved the new tram line on Monday. The line will run from the harbour to the airport. It will cost "
    "90 million euros. Construction of the tram line starts in May. Residents had asked for the tram line for years."
)
CHINESE = "市政府周一批准了新的电车线路。线路从港口通往机场。工程造价九千万元。电车线路五月开工。居民多年来一直呼吁修建电车线路。"


def text(value: str) -> dict[str, Any]:
    return {"type": "text", "text": value}


def ask(*contents: str | list[dict[str, Any]], system: str = "") -> Ask:
    turns = [
        Turn(("user", "assistant")[at % 2], (text(content),) if isinstance(content, str) else tuple(content))
        for at, content in enumerate(contents)
    ]
    return Ask(wire="anthropic", model="m", turns=tuple(turns), system=system)


def document(value: str) -> dict[str, Any]:
    return {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": value}}


SHAPES = {
    "question, then text": lambda t, q: ask(f"{q}\n\n{t}"),
    "text, then question": lambda t, q: ask(f"{t}\n\n{q}"),
    "labels": lambda t, q: ask(f"文本：{t}\n问题：{q}"),
    "English labels": lambda t, q: ask(f"Text: {t}\n\nQuestion: {q}"),
    "a label in one paragraph": lambda t, q: ask(f"{q} 文本：{t}"),
    "a domain tag": lambda t, q: ask(f"【财经数据】{q}\n\n文本：{t}"),
    "a tag before the text": lambda t, q: ask(f"{q}\n\n【第3章｜实验方法】{t}"),
    "a fence": lambda t, q: ask(f"<document>\n{t}\n</document>\n\n{q}"),
    "quotes": lambda t, q: ask(f'{q}\n"""{t}"""'),
    "a document block": lambda t, q: ask([document(t), text(q)]),
    "a text block": lambda t, q: ask([text(t), text(q)]),
    "an earlier turn": lambda t, q: ask(f"请先阅读：\n{t}", "好的。", q),
    "the system text": lambda t, q: ask(q, system=f"You are a careful assistant.\n\n{t}\n\n请保持数字原样。"),
    "a fence in the system text": lambda t, q: ask(q, system=f"Answer from the document.\n<document>{t}</document>"),
}


def right(made: str, holds: str | None) -> bool:
    return made in NOT_STATED.values() if holds is None else holds in made


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", PASS_MARKS)
def test_questions_are_answered(name: str, shape: str):
    asks = ASKS[name]
    made = [(question, holds, answer(SHAPES[shape](passage, question))) for passage, question, holds in asks]
    wrong = [(question, given) for question, holds, given in made if not right(given, holds)]
    assert 1 - len(wrong) / len(asks) >= PASS_MARKS[name], wrong


def test_the_answer_is_one_sentence_of_the_text():
    for passage, question, _ in ASKS["offline.yaml"]:
        made = answer(ask(f"{passage}\n\n{question}"))
        assert made in sentences(passage) or made in NOT_STATED.values()


@pytest.mark.parametrize(
    ("request_", "passage", "count"),
    [
        ("请用三句话总结以下内容：", CHINESE, 3),
        ("用2句话概括：", CHINESE, 2),
        ("请写一个摘要", CHINESE, 3),
        ("【新闻】一句话总结这段新闻：", CHINESE, 1),
        ("Summarize the text in two sentences.", NEWS, 2),
        ("Give me a 4-sentence summary:", NEWS, 4),
        ("Give me the key points", NEWS, 3),
        ("tl;dr in one sentence", NEWS, 1),
        ("Summarise this in twenty sentences", NEWS, 3),
    ],
)
def test_summaries_have_the_asked_number_of_sentences(request_: str, passage: str, count: int):
    for made in (answer(ask(f"{request_}\n\n{passage}")), answer(ask(f"{passage}\n\n{request_}"))):
        told = sentences(made.replace("- ", ""))
        assert len(told) == count
        assert [sentence for sentence in sentences(passage) if sentence in told] == told


def test_a_summary_holds_what_the_text_is_about():
    assert "tram line" in answer(ask(f"Summarize in one sentence:\n{NEWS}"))


@pytest.mark.parametrize(
    ("question", "plain"),
    [
        ("hello there", small_talk("hello", "en")),
        ("写一首关于大海的诗", refusal("写诗", "zh")),
        ("", without_text("en")),
        ("What is the capital of France?", without_text("en")),
    ],
)
def test_without_a_text_it_says_what_it_is(question: str, plain: str):
    assert answer(ask(question)) == plain


def test_the_language_is_the_questions():
    assert answer(ask(f"{NEWS}\n\n谁是总统？")) == NOT_STATED["zh"]
    assert answer(ask(f"{CHINESE}\n\nWho is the president?")) == NOT_STATED["en"]


def test_a_tools_result_is_the_answer():
    result = {"type": "tool_result", "tool_use_id": "t", "content": [text("21 degrees")]}
    use = {"type": "tool_use", "id": "t", "name": "look", "input": {}}
    assert answer(ask("weather?", [use], [result])) == "21 degrees"
    assert answer(ask("weather?", [use], [{**result, "content": ""}])) == without_text("en")


def test_nothing_asked_about_nothing():
    assert answer(Ask(wire="chat", model="m", turns=())) == without_text("en")


@pytest.mark.parametrize(
    ("given", "cut"),
    [
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        (
            "Dr. Lee paid $4.2 million. J. Smith left at 9 a.m. today.",
            ["Dr. Lee paid $4.2 million.", "J. Smith left at 9 a.m. today."],
        ),
        ("一。二！三？“四。”五", ["一。", "二！", "三？", "“四。”", "五"]),
        ("Shoes are required in hall B. Forklifts go first.", ["Shoes are required in hall B.", "Forklifts go first."]),
        ("a\n\nb\n", ["a", "b"]),
        ("", []),
    ],
)
def test_sentences(given: str, cut: list[str]):
    assert sentences(given) == cut


@pytest.mark.parametrize(
    ("request_", "question"),
    [
        (
            "下面是一本书的信息，转换成JSON格式，键为书名、页数。\n书名：雨巷里的修表匠\n页数：312",
            "下面是一本书的信息，转换成JSON格式，键为书名、页数。",
        ),
        (
            "需要报修人、电话这几项，原文在下面：\n\n我是七号楼的费凯，电话17788203345。",
            "需要报修人、电话这几项，原文在下面",
        ),
        (
            "Maria works in Sales. Kofi works in Legal.\n\n-> table with name, department",
            "-> table with name, department",
        ),
        (
            "Context: The deposit is two months' rent.\n\nQ1: How much is it?\nQ2: Who pays?",
            "How much is it?\nWho pays?",
        ),
    ],
)
def test_a_request_is_told_from_its_text(request_: str, question: str):
    reading = read(ask(request_))
    assert (reading.question, bool(reading.passage)) == (question, True)


def test_lines_that_only_divide_are_no_part_of_a_text():
    assert (
        read(ask("Summarize this.\n\n---\nOne.\n* * *\nTwo - or - three.\n=====")).passage == "One.\nTwo - or - three."
    )


def test_tags_are_taken_off():
    assert untagged("【财经数据】【第3章｜实验方法】 正文【注】") == "正文【注】"


@pytest.mark.parametrize(
    ("question", "count"),
    [("三句话", 3), ("in two sentences", 2), ("5 bullet points", 5), ("十句", 10), ("a single sentence", 1), ("", 3)],
)
def test_the_asked_count(question: str, count: int):
    assert asked_count(question) == count


PIECES = st.sampled_from(
    ["【标签】", "文本：", "Text: ", "问题：", "Q: ", "<document>", "</document>", '"""', "```\n", "总结", "Who was it?", "多少？", "。", ". ", "\n", "\n\n", "A cat sat.", "猫在睡觉。", "1.5", "："]
)  # fmt: skip
TEXTS = st.one_of(st.text(max_size=60), st.lists(PIECES, max_size=14).map("".join))


@given(contents=st.lists(TEXTS, min_size=1, max_size=3), system=TEXTS)
@settings(max_examples=400, deadline=None)
def test_any_request_gets_the_same_answer_twice(contents: list[str], system: str):
    asked = ask(*contents, system=system)
    made = answer(asked)
    assert made == answer(asked)
    assert made.strip()


@given(given_=TEXTS)
@settings(max_examples=300, deadline=None)
def test_sentences_lose_nothing_but_space(given_: str):
    assert "".join("".join(sentences(given_)).split()) == "".join(given_.split())


def characters(value: str) -> Counter[str]:
    return Counter("".join(value.split()))


@given(given_=TEXTS)
@settings(max_examples=200, deadline=None)
def test_splitting_invents_nothing(given_: str):
    question, passages = split(given_)
    assert characters("".join((question, *passages))) <= characters(given_)


def test_reading_is_quick_on_long_texts():
    long = NEWS * 400
    begun = time.process_time()
    answer(ask(f"{long}\n\nWhat will the line cost?"))
    read(ask("x" * 100_000 + "?"))
    read(ask("。" * 50_000 + "【" * 20_000))
    assert time.process_time() - begun < 3
