"""Segmenting speed beside langchain-text-splitters, semchunk and chonkie, in one run, English and Chinese.

    python tests/benchmarks/segment.py            # megabytes of UTF-8 a second, best of the rounds
    python tests/benchmarks/segment.py --stream   # also 100 MB from a file: speed and peak memory

English is the language reference that Python ships, Chinese is real law from ../shared where that is present and made-up
law where it is not. Ours recognises headings, keeps to a budget in tokens and writes anchors; the peers cut at 2,000
characters, the tokens of which ours is given as its budget, and do none of these.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

from zlclient.shaping import tokens
from zlclient.shaping.documents import Document

SIZE = 5_000_000  # bytes a language
LIMIT = 2000  # characters a chunk
LAW = Path(__file__).resolve().parents[3] / "shared" / "documents"
Splitter = Callable[[str], list[str]]


def english() -> str:
    text = "\n\n".join(f"# {name}\n\n{body}" for name, body in topics.items())
    return text * (SIZE // len(text) + 1)


def chinese() -> str:
    if LAW.is_dir():
        text = "\n".join(path.read_text("utf-8") for path in sorted(LAW.glob("*.md")))
    else:
        body = "当事人应当遵循公平原则，确定各方的权利和义务；法律另有规定的，依照其规定。" * 3
        text = "".join(f"第{n}章 规定\n\n" + f"第{n}条 {body}\n\n" * 20 for n in "一二三四五六七八九")
    return text * (SIZE // len(text.encode()) + 1)


def ours(text: str) -> list[str]:
    model = "claude-opus-5"
    budget = tokens.with_margin(tokens.estimate_tokens(text[:LIMIT], model)) + 40
    return [segment.text for segment in Document.from_text(text).segments(budget, model=model)]


def ours_without_numpy(text: str) -> list[str]:
    installed, tokens._numpy = tokens._numpy, lambda: None  # type: ignore[assignment]
    try:
        return ours(text)
    finally:
        tokens._numpy = installed


def peers() -> dict[str, Splitter]:
    found: dict[str, Splitter] = {}
    try:
        from langchain_text_splitters import MarkdownHeaderTextSplitter, RecursiveCharacterTextSplitter

        plain = RecursiveCharacterTextSplitter(chunk_size=LIMIT, chunk_overlap=0)
        zh = ["\n\n", "\n", "。", "；", "，", " ", ""]
        kept = RecursiveCharacterTextSplitter(
            chunk_size=LIMIT, chunk_overlap=0, separators=zh, keep_separator="end", strip_whitespace=False
        )
        headers = MarkdownHeaderTextSplitter([("#" * n, f"h{n}") for n in range(1, 5)], strip_headers=False)
        found["langchain recursive"] = plain.split_text
        found["langchain recursive, lossless"] = kept.split_text
        found["langchain Markdown headings"] = lambda text: [d.page_content for d in headers.split_text(text)]
    except ImportError:
        print("langchain-text-splitters is not installed", file=sys.stderr)
    try:
        import semchunk

        found["semchunk"] = semchunk.chunkerify(len, LIMIT)  # type: ignore[assignment]
    except ImportError:
        print("semchunk is not installed", file=sys.stderr)
    try:
        import chonkie

        recursive: Any = chonkie.RecursiveChunker(tokenizer="character", chunk_size=LIMIT)
        sentence: Any = chonkie.SentenceChunker(tokenizer="character", chunk_size=LIMIT, chunk_overlap=0)
        found["chonkie recursive"] = lambda text: [chunk.text for chunk in recursive(text)]
        found["chonkie sentence"] = lambda text: [chunk.text for chunk in sentence(text)]
    except ImportError:
        print("chonkie is not installed", file=sys.stderr)
    return found


def compare(rounds: int) -> None:
    splitters: dict[str, Splitter] = {"zlclient": ours, "zlclient without numpy": ours_without_numpy, **peers()}
    print(f"{'':32}{'MB/s':>8}{'ours is':>9}{'chunks':>8}  lossless")
    for language, text in (("English", english()), ("Chinese", chinese())):
        best = dict.fromkeys(splitters, float("inf"))
        chunks: dict[str, list[str]] = {}
        for round_ in range(rounds):
            for name, split in splitters.items():
                if round_ and best[name] > 1.0:
                    continue  # slow ones are measured once
                start = time.thread_time()
                chunks[name] = split(text)
                best[name] = min(best[name], time.thread_time() - start)
        document = Document.from_text(text)
        size = len(text.encode()) / 1e6
        print(f"{language}: {size:.1f} MB, {document.structure.name}, {len(document.outline())} headings")
        for name, seconds in best.items():
            lossless = "yes" if "".join(chunks[name]) == text else "no"
            ratio = seconds / best["zlclient"]
            print(f"  {name:30}{size / seconds:8.1f}{ratio:8.2f}x{len(chunks[name]):8}  {lossless}")


def stream() -> None:
    text = chinese()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "law.txt"
        with path.open("w", encoding="utf-8") as file:
            while file.tell() < 100_000_000:
                file.write(text)
        del text
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        start, count = time.thread_time(), 0
        for _segment in Document.stream_segments(path, model="claude-opus-5"):
            count += 1
        seconds = time.thread_time() - start
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
        size = path.stat().st_size / 1e6
        print(f"streamed {size:.0f} MB: {size / seconds:.1f} MB/s, {count} segments, peak memory +{grown:.0f} MiB")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--stream", action="store_true")
    options = parser.parse_args()
    if options.stream:
        stream()
    compare(options.rounds)
