"""Throughput of the sanitiser on 10 MB of UTF-8 beside other cleaners, and its cost on short prompts.

    python tests/benchmarks/sanitise.py [--megabytes 10] [--without-numpy]

Every figure is the best of several runs in CPU time of this thread. `str.translate` only drops and replaces single
characters; ftfy (a tenth of the text, it is slow) is shown where it is installed. `clean` texts come back unchanged.
"""

from __future__ import annotations

import argparse
import importlib.util
import random
import re
import sys
import time
from collections.abc import Callable

ENGLISH = [
    "the",
    "quarterly",
    "report",
    "shows",
    "that",
    "revenue",
    "grew",
    "by",
    "12.5%",
    "to",
    "$4.2M",
    "while",
    "costs",
    "stayed",
    "flat",
    "in",
    "most",
    "regions",
]
CHINESE = (
    "特斯拉在第一季度的交付量同比增长主要得益于上海工厂产能提升以及欧洲市场需求恢复公司预计全年营业收入将继续保持稳定"
)
PERSIAN = [
    "می\u200cروم",
    "کتاب\u200cها",
    "را",
    "نمی\u200cخوانم",
    "این",
    "گزارش",
    "نشان",
    "می\u200cدهد",
    "که",
    "درآمد",
    "شرکت",
    "رشد",
    "کرده",
    "است",
]
HINDI = [
    "क्\u200dष",
    "यह",
    "रिपोर्ट",
    "दिखाती",
    "है",
    "कि",
    "कंपनी",
    "की",
    "आय",
    "बढ़ी",
    "है",
    "और",
    "र्\u200dय",
    "लागत",
    "स्थिर",
    "रही",
]
EMOJI = ["👨\u200d👩\u200d👧", "❤\ufe0f", "🐈\u200d⬛", "🏳\ufe0f\u200d🌈", "👍🏽", "1\ufe0f\u20e3", "🎉", "🫨"]
# What copying from PDFs, web pages and chats leaves in a text, with some smuggled tags.
DIRT = [*"\x00\x01\x07\x1c\x7f\x92\ufeff\u2060\u200b\u200c\u200d\u200e\ufe0f\u202e\ufffe\U000e0041"]
# Every kind there is, with terminal escapes, overstrikes, odd line breaks and lone surrogates, so that all passes work.
ALL_DIRT = [*DIRT, *"\U000e0100\b\r\x0b\x0c\x85\u2028\u2029\u2066\u3164\ud83d\U000e0001", "\x1b[31m", "\r\n"]


def ascii_text(rng: random.Random, size: int) -> str:
    return _lines(rng, ENGLISH, " ", size)


def chinese_text(rng: random.Random, size: int) -> str:
    phrases = ["".join(rng.choices(CHINESE, k=rng.randrange(4, 16))) + rng.choice("，。、；") for _ in range(400)]
    return _lines(rng, phrases, "", size)


def dirty_text(rng: random.Random, size: int, dirt: list[str]) -> str:
    clean = _lines(rng, [*ENGLISH, *(CHINESE[at : at + 6] for at in range(0, 50, 3))], " ", size)
    return "".join(character if rng.random() >= 0.01 else character + rng.choice(dirt) for character in clean)


def mixed_scripts(rng: random.Random, size: int) -> str:
    return _lines(rng, [*PERSIAN, *HINDI, *EMOJI], " ", size)


def _lines(rng: random.Random, words: list[str], between: str, size: int) -> str:
    """About `size` bytes of lines of 8 to 20 words; 200 KB are drawn, then repeated."""
    lines: list[str] = []
    written = 0
    while written < min(size, 200_000):
        lines.append(between.join(rng.choices(words, k=rng.randrange(8, 20))))
        written += len(lines[-1].encode()) + 1
    return ("\n".join(lines) + "\n") * max(1, size // written)


def naive(text: str) -> str:
    dropped = re.sub("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\u200b-\u200f\ufeff]", "", text)
    return re.sub(r"\s+", " ", dropped).strip()


def cpu_seconds(work: Callable[[], object], at_least: float = 1.0, runs: int = 7) -> float:
    best, spent, done = 9e9, 0.0, 0
    while done < 2 or (done < runs and spent < at_least):
        start = time.thread_time()
        work()
        taken = time.thread_time() - start
        best, spent, done = min(best, taken), spent + taken, done + 1
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=10)
    parser.add_argument("--without-numpy", action="store_true")
    options = parser.parse_args()
    if options.without_numpy:
        sys.modules["numpy"] = None  # pyright: ignore[reportArgumentType]

    from zlclient.shaping.sanitise import sanitize

    table = dict.fromkeys([*range(9), *range(14, 32), 127, 65279, *range(8203, 8208)]) | {
        13: "\n",
        12: "\n",
    }
    cleaners: dict[str, tuple[Callable[[str], object], int]] = {
        "zlclient standard": (sanitize, 1),
        "zlclient strict": (lambda text: sanitize(text, "strict"), 1),
        "naive recipe": (naive, 1),
        "str.translate": (lambda text: text.translate(table), 1),
    }
    if importlib.util.find_spec("ftfy"):
        import ftfy  # pyright: ignore[reportMissingImports, reportUnknownVariableType]

        cleaners["ftfy.fix_text"] = (ftfy.fix_text, 10)  # pyright: ignore[reportUnknownMemberType]

    size = options.megabytes * 1_000_000
    rng = random.Random(1)
    texts = {
        "ASCII": ascii_text(rng, size),
        "Chinese": chinese_text(rng, size),
        "1% dirty": dirty_text(rng, size, DIRT),
        "1% all kinds": dirty_text(rng, size, ALL_DIRT),
        "emoji/fa/hi": mixed_scripts(rng, size),
    }
    print(f"MB/s on {options.megabytes} MB" + ("" if not options.without_numpy else ", without numpy"))
    print(f"{'':20}" + "".join(f"{name:>14}" for name in texts))
    for name, (cleaner, share) in cleaners.items():
        row = f"{name:20}"
        for text in texts.values():
            part = text[: len(text) // share]
            megabytes = len(part.encode("utf-8", "surrogatepass")) / 1e6
            row += f"{megabytes / cpu_seconds(lambda: cleaner(part)):14.1f}"  # noqa: B023
        print(row, flush=True)

    print("\nµs for a clean prompt, characters:")
    for name in ("ASCII", "Chinese"):
        row = f"{name:20}"
        for length in (20, 200, 2000):
            prompt = texts[name][:length].rstrip()
            row += f"{length:>7}: {cpu_seconds(lambda: [sanitize(prompt) for _ in range(2000)]) / 2000 * 1e6:5.2f}"  # noqa: B023
        print(row)


if __name__ == "__main__":
    main()
