"""Reading a source into an index, and checking answers against it.

    python tests/benchmarks/checking.py [megabytes]

The peer is the least that any such check does: one `re.findall` of the digits and a set look-up of each, by string. It
knows no values, units, dates or names; the ratio says what those cost.
"""

import re
import statistics
import sys
import time
from collections.abc import Callable

from zlclient.checking import FormatSpec, SourceIndex, check_fidelity, check_format

CHINESE = (
    "2024年Q1特斯拉交付量是386,810辆，同比下降8.5%，环比下降20.2%。公司表示，受工厂停工和红海航运影响，产能有所下降。"
    "分析师张伟教授认为，全年交付量仍有望达到一百八十万辆。根据《上市公司信息披露管理办法》第十二条，公司应当在每一会计年度结束之日起"
    "四个月内披露年度报告，并于2024年4月30日前提交北京证券交易所。在此期间，市场对新能源汽车的需求总体保持平稳，部分地区出现了小幅增长。"
)
ENGLISH = (
    "In the first quarter of 2024, Tesla delivered 386,810 vehicles, down 8.5 percent from the year before. The Model 3 cost "
    "about $4.2M to develop, and analysts at Morgan Stanley said on March 5, 2024 that twelve factories would follow. "
    "Demand held steady in most regions, while the company pointed to shipping delays and a planned shutdown of its plant. "
)
DENSE = "2024-03-05,386810,12.5%,3500万元,-3.2,14:30\n"
ANSWERS = {
    "short, faithful": "2024年第一季度特斯拉交付38.7万辆，同比下降百分之八点五。",
    "short, altered": "2023年第一季度特斯拉交付了40万辆，同比增长8.5%，张炜教授认为仍有望达到180万辆。",
    "200 facts": "特斯拉在2024年3月5日交付386,810辆，同比下降8.5%，张伟教授参加。" * 40,
}


def best(work: Callable[[], object], rounds: int) -> float:
    times: list[float] = []
    for _ in range(rounds):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def main() -> None:
    megabytes = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
    print(f"indexing {megabytes:g} MB of UTF-8 (median of 5)")
    for name, sample in (("Chinese report", CHINESE), ("English report", ENGLISH), ("nothing but facts", DENSE)):
        text = sample * int(megabytes * 1e6 / len(sample.encode()))
        size = len(text.encode()) / 1e6
        ours = best(lambda text=text: SourceIndex(text), 5)
        peer = best(lambda text=text: set(re.findall(r"[0-9][0-9,.]*", text)), 5)
        print(
            f"  {name:18} {ours * 1e3:7.0f} ms  {size / ours:6.1f} MB/s   digits only {peer * 1e3:5.1f} ms, ratio {ours / peer:5.1f}"
        )
    index = SourceIndex(CHINESE * int(megabytes * 1e6 / len(CHINESE.encode())))
    check_fidelity(ANSWERS["short, altered"], index)  # fills what the index computes when first needed
    print("one check against the Chinese index (median of 20)")
    for name, answer in ANSWERS.items():
        seconds = best(lambda answer=answer: check_fidelity(answer, index), 20)
        print(f"  {name:18} {seconds * 1e3:7.2f} ms  {len(check_fidelity(answer, index).facts)} facts")
    spec = FormatSpec(sentences=3, max_chars_per_sentence=30, list="numbered", items=3)
    seconds = best(lambda: check_format("1. 第一句。\n2. 第二句。\n3. 第三句。", spec), 20)
    print(f"  check_format       {seconds * 1e3:7.3f} ms")


if __name__ == "__main__":
    main()
