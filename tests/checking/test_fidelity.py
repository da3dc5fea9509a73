import decimal
import json
import pickle
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zlclient.checking import SourceIndex, check_fidelity

CASES = tomllib.loads((Path(__file__).parent / "fidelity_cases.toml").read_text(encoding="utf-8"))["case"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['answer']} ← {case['source']}"[:60])
def test_case(case):
    report = check_fidelity(case["answer"], case["source"])
    found = [f"{fact.text} | {fact.verdict}{'~' if fact.rounded else ''}" for fact in report.facts]
    assert found == case["facts"]


def test_report_counts_and_places():
    source = "2024年Q1特斯拉交付量是386,810辆，同比下降8.5%。"
    report = check_fidelity("2024年Q1特斯拉交付量是400,000辆，同比下降8.5%，共3,217家门店。", source)
    assert (report.present, report.altered, report.absent, report.ok) == (2, 1, 1, False)
    altered = next(fact for fact in report.facts if fact.verdict == "altered")
    assert altered.nearest == "386,810辆"
    assert source[altered.source_start : altered.source_end] == altered.nearest
    assert report.count("present", "date") == 1
    assert pickle.loads(pickle.dumps(report)) == report
    assert json.loads(json.dumps(report.as_dict()))["facts"][0]["value"] == "2024-Q1"


def test_names_of_another_script_are_left_aside():
    report = check_fidelity("Tesla and Panasonic signed with GPT-4o.", "特斯拉与松下签署了协议，采用了新的模型。")
    assert not report.names_compared
    assert [fact.text for fact in report.facts] == ["GPT-4o"]


def test_an_index_is_reusable_and_equal_to_its_text():
    source = "营收1.5亿元，2024年3月5日公布。"
    index = SourceIndex(source)
    for answer in ("1.5亿元", "2024-03-05", "2023-03-05", "15亿元"):
        assert check_fidelity(answer, index) == check_fidelity(answer, source)


ALPHABET = "0123456789,.%-/:年月日零一二三四五六七八九十百千万亿点分之第个元$kKmMB 　，。\nQHFY３％～《》“”张王公司集团市AaBbGPTMarch"
hostile = st.one_of(st.text(), st.text(alphabet=ALPHABET, max_size=120))


@given(hostile, hostile)
@settings(max_examples=400, deadline=None)
def test_never_raises_and_offsets_are_exact(answer, source):
    report = check_fidelity(answer, source)
    for fact in report.facts:
        assert answer[fact.start : fact.end] == fact.text
        assert (fact.source_start is None) == (fact.verdict == "absent")
        assert (fact.nearest is None) == (fact.verdict != "altered")
    json.dumps(report.as_dict())
    assert [fact.start for fact in report.facts] == sorted(fact.start for fact in report.facts)


SENTENCES = [
    "2024年Q1特斯拉交付量是386,810辆，同比下降8.5%。",
    "公司于3月5日召开会议，张伟教授出席。",
    "The Model 3 cost $35,000 in 2019, about 4.2 million dollars in total.",
    "处三年以上十年以下有期徒刑；致人死亡的，处十年以上有期徒刑。",
    "气温-5℃至3℃，风力3-5级。",
    "However, OpenAI said on 5 Mar 2024 that twelve hundred users left.",
    "依据《中华人民共和国刑法》第二百三十四条第二款。",
    "净利润1.5亿元，亏损15,000万元，毛利率百分之十二点五。",
    "北京大学与阿里巴巴集团在浙江省杭州市签署协议。",
    "联系电话138-1234-5678，版本2.1.3，会议14:30开始。",
    "该比例为三分之一，约33.3%，增长2.5个百分点。",
    "三方各出资两千零二十四万元，期限为36个月。",
]


@given(st.lists(st.sampled_from(SENTENCES), min_size=1, max_size=12, unique=True), st.data())
@settings(max_examples=150, deadline=None)
def test_sentences_copied_from_the_source_are_faithful(source, data):
    answer = data.draw(st.lists(st.sampled_from(source), min_size=1, max_size=4))
    report = check_fidelity("".join(answer), "\n".join(source))
    assert report.ok, [fact for fact in report.facts if fact.verdict != "present"]


@given(
    st.lists(st.text(alphabet=ALPHABET.replace("\n", "").replace("。", ""), max_size=40), min_size=1, max_size=6),
    st.data(),
)
@settings(max_examples=400, deadline=None)
def test_hostile_lines_copied_from_the_source_are_faithful(lines, data):
    answer = data.draw(st.sampled_from(lines))
    report = check_fidelity(answer, "\n".join(lines))
    assert report.ok, [fact for fact in report.facts if fact.verdict != "present"]


def test_laws_copied_sentence_by_sentence_are_faithful(shared):
    text = (shared / "documents" / "劳动合同法(2012-12-28).md").read_text(encoding="utf-8")
    index = SourceIndex(text)
    wrong = [
        (fact.text, fact.verdict)
        for line in text.splitlines()
        for sentence in line.split("。")
        for fact in check_fidelity(sentence, index).facts
        if fact.verdict != "present"
    ]
    assert wrong == []


def test_the_callers_decimal_context_does_not_matter():
    answer, source = "约33.3%，38.7万辆，2/7，1,234.5678元", "三分之一，386,810辆，七分之二，1,234.5678元"
    usual = check_fidelity(answer, source)
    assert usual.ok
    with decimal.localcontext() as context:
        context.prec = 3
        context.traps[decimal.Inexact] = context.traps[decimal.Rounded] = True
        assert check_fidelity(answer, source) == usual


def test_threads_share_an_index():
    index = SourceIndex("交付386,810辆，张伟教授，2024年3月5日。" * 50)
    answer = "交付386,811辆，张炜教授，2023年3月5日，约40万辆。"
    with ThreadPoolExecutor(8) as pool:
        reports = list(pool.map(lambda _: check_fidelity(answer, index), range(32)))
    assert all(report == reports[0] for report in reports)
    assert reports[0].altered == 3


HOSTILE_UNITS = [
    "9",
    "1,234,",
    "1.1.",
    "1-",
    "一",
    "万",
    "一万",
    "点一",
    "百分之",
    "1/",
    "Q1",
    "20",
    "3月",
    "(",
    "A ",
    "Ab ",
    "《",
    "“",
    "3:",
    "0.",
    "1e",
    "- ",
    "张",
    "公司",
    "市",
    "第",
    "one ",
    "1 to ",
]


@pytest.mark.parametrize("unit", HOSTILE_UNITS)
def test_time_is_linear_on_runs_that_repeat(unit):
    def once(text: str) -> float:
        begin = time.process_time()
        check_fidelity(text, text)
        return time.process_time() - begin

    def seconds(size: int) -> float:
        # The best of three: what else the machine does only ever adds.
        return min(once(unit * (size // len(unit))) for _ in range(3))

    small, large = seconds(4_000), seconds(32_000)
    # Eight times the text: linear is 8, quadratic 64. The floor keeps timer noise out.
    assert large < 24 * max(small, 0.01)
