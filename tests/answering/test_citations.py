"""What supports a statement: exact spans, the right article, and nothing where there is nothing."""

import tomllib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zlclient import Document
from zlclient.answering.citations import cite
from zlclient.answering.coverage import Coverage
from zlclient.answering.wording import instruction, not_stated, states_nothing
from zlclient.checking.sentences import sentences
from zlclient.serving.responders.offline import NOT_STATED

CASES = tomllib.loads((Path(__file__).parent / "support_cases.toml").read_text("utf-8"))


def cited(answer, document, question="", unread=()):
    return cite(answer, document, Coverage.of(document.segments(500), dict.fromkeys(unread)), question)


@pytest.fixture(scope="session")
def documents(shared):
    inline = CASES["documents"]
    names = {case[0] for kind, cases in CASES.items() if kind != "documents" for case in cases}
    return {
        name: Document.from_text(inline[name]) if name in inline else Document.from_path(shared / "documents" / name)
        for name in names
    }


@pytest.mark.shared
class TestCases:
    def test_most_supported_statements_get_their_own_article(self, documents):
        right = 0
        for name, statement, place in CASES["supported"]:
            found = cited(statement, documents[name])[0]
            if found.supported:
                assert place in found.path[-1], statement
                right += 1
        assert right >= 30  # of 32

    @pytest.mark.parametrize("kind", ["fact", "elsewhere", "denied"])
    def test_no_other_statement_gets_any(self, documents, kind):
        assert [case for case in CASES[kind] if cited(case[1], documents[case[0]])[0].supported] == []

    def test_a_documents_own_sentences_are_supported(self, documents):
        law = documents["劳动合同法(2012-12-28).md"]
        told = [law.source[start:end] for start, end in sentences(law.source) if law.source[end - 1] not in ":："]
        found = cited("\n".join(told), law)
        assert len(found) > 200
        assert [citation.statement for citation in found if not citation.supported] == []

    def test_a_wrong_fact_is_named(self, documents):
        found = cited("自权利受到损害之日起超过三十年的，人民法院不予保护。", documents["总则.md"])[0]
        assert not found.supported
        assert (found.start, found.end, found.path, found.segment) == (None, None, (), None)
        assert found.missing == ("三十年",)


LAW = Document.from_text(
    "第一章 总则\n"
    "第一条 诉讼时效期间为三年。法律另有规定的，依照其规定。\n"
    "第二条 合同的违约金不得超过合同金额的百分之三十。\n"
    "第二章 期限\n"
    "第三条 租赁期限为三年。租金每月3,200元，于每月五日前支付。\n"
    "第四条 承租人应当妥善保管租赁物。承租人未经同意不得转租。\n"
)


class TestPlaces:
    def test_spans_are_exact_and_within_one_division(self):
        found = cited("诉讼时效期间为三年。租金为每月3200元，每月五日前支付。", LAW)
        assert [LAW.source[c.start : c.end] for c in found] == [
            "第一条 诉讼时效期间为三年。",
            "租金每月3,200元，于每月五日前支付。",
        ]
        assert [c.path for c in found] == [("第一章 总则", "第一条"), ("第二章 期限", "第三条")]
        assert [c.statement for c in found] == ["诉讼时效期间为三年。", "租金为每月3200元，每月五日前支付。"]

    def test_a_statement_over_two_sentences_gets_both(self):
        found = cited("承租人应当妥善保管租赁物，未经同意不得转租。", LAW)[0]
        assert LAW.source[found.start : found.end] == "第四条 承租人应当妥善保管租赁物。承租人未经同意不得转租。"

    def test_the_number_of_an_article_is_part_of_what_it_says(self):
        right, wrong = cited("根据第三条，租金每月3200元。\n根据第二条，租金每月3200元。", LAW)
        assert right.supported
        assert not wrong.supported
        assert wrong.missing == ("第二条",)

    def test_its_form_does_not_matter_and_its_paragraph_is_not_checked(self):
        assert cited("根据第3条第二款，租金每月3200元。", LAW)[0].supported

    def test_a_short_answer_is_read_with_its_question(self):
        rent = cited("三年。", LAW, "租赁期限为几年？")[0]
        period = cited("三年。", LAW, "诉讼时效期间为几年？")[0]
        assert LAW.source[rent.start : rent.end] == "第三条 租赁期限为三年。"
        assert LAW.source[period.start : period.end] == "第一条 诉讼时效期间为三年。"
        assert not cited("三年。", LAW, "专利保护多久？")[0].supported
        assert not cited("是。", LAW, "租赁期限为几年？")[0].supported
        assert cited("租金每月3200元。", LAW, "一共要付给出租人多少钱？")[0].supported

    def test_of_near_equals_the_one_with_the_number_is_found(self):
        source = "".join(f"The fee of office {n} is {n * 1000} euros a year.\n" for n in range(1, 60))
        document = Document.from_text(source)
        found = cited("The fee of office 47 is 47,000 euros a year.", document)[0]
        assert source[found.start : found.end] == "The fee of office 47 is 47000 euros a year."

    def test_what_was_not_read_supports_nothing(self):
        segments = LAW.segments(60)
        unread = {at: None for at, s in enumerate(segments) if "第三条" in s.text}
        found = cite("租赁期限为三年。", LAW, Coverage.of(segments, unread))
        assert [c.supported for c in found] == [False]

    @pytest.mark.parametrize(
        "answer", ["", "。", "文中没有提到这一点。", "The text does not state this", "**文中没有提到这一点**"]
    )
    def test_saying_nothing_needs_no_support(self, answer):
        assert cited(answer, LAW) == ()

    def test_a_lead_in_is_no_statement(self):
        assert [c.statement for c in cited("规定如下：\n- 租赁期限为三年。", LAW)] == ["租赁期限为三年。"]
        assert [c.supported for c in cited("第三条 租赁期限为三年：", LAW)] == [True]

    @pytest.mark.parametrize(
        ("told", "supported"),
        [
            ("违约金不超过合同金额的30%。", True),
            ("承租人未经同意不能转租。", True),
            ("诉讼时效期间不是三年。", False),
            ("租赁期限并非三年。", False),
        ],
    )
    def test_a_denial_needs_one_like_it(self, told, supported):
        assert cited(told, LAW)[0].supported is supported


hostile = st.text(alphabet=st.sampled_from("第一二三条章 。，！？\n.ab'’İẞ0123%年不未【】\\\u200b🙂"), max_size=300)


@settings(max_examples=150)
@given(hostile, hostile, hostile)
def test_any_text_is_cited_by_exact_spans(source, answer, question):
    document = Document.from_text(f"{source}。")
    segments = document.segments(200)
    citations = cite(answer, document, Coverage.of(segments, {}), question)
    for found in citations:
        assert answer[found.text_start : found.text_end] == found.statement
        assert 0 <= found.score <= 1
        assert found.supported == (found.start is not None)
        if found.supported:
            assert 0 <= found.start < found.end <= len(document.source)
            segment = next(s for s in segments if s.index == found.segment)
            assert segment.start <= found.start < segment.end


@given(st.lists(st.integers(1, 12), unique=True))
def test_coverage_adds_up(unread):
    document = Document.from_text("".join(f"# Part {n}\n\nText of part {n}, some of it.\n\n" for n in range(1, 13)))
    segments = document.segments(40)
    coverage = Coverage.of(segments, {at: "ServerError" for at in unread if at < len(segments)})
    assert coverage.characters == len(document.source)
    assert coverage.read == len(segments) - sum(at < len(segments) for at in unread)
    assert sum(end - start for start, end in coverage.spans()) == coverage.characters_read
    assert coverage.share == pytest.approx(coverage.characters_read / coverage.characters)
    assert coverage.as_dict()["share"] == coverage.share


@pytest.mark.parametrize("question", ["费用多少？", "How much is it?"])
def test_models_are_told_the_sentence_that_is_recognised(question):
    told = not_stated(question)
    assert told in NOT_STATED.values()
    assert states_nothing(told)
    for task in ("one", "part"):
        for mode in ("answer", "extract"):
            assert told in instruction(task, mode, question)
