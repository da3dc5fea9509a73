"""What the support check of answers lets through, at several thresholds, and how quick it is on a long document.

    python tests/benchmarks/citations.py [FOLDER]

The statements are in tests/answering/support_cases.toml; FOLDER holds the documents they are about (the laws are public
texts), by default ../shared/documents beside the checkout. "right" is a supported statement that was given its own
article, "other" one that was given another place, "let through" a statement that the document does not support.
"""

import sys
import time
import tomllib
from pathlib import Path

import zlclient
from zlclient.answering import citations
from zlclient.answering.citations import cite
from zlclient.answering.coverage import Coverage

ROOT = Path(__file__).resolve().parents[2]
CASES = tomllib.loads((ROOT / "tests/answering/support_cases.toml").read_text("utf-8"))
UNSUPPORTED = ("fact", "elsewhere", "denied", "swapped")


def load(folder: Path) -> dict[str, zlclient.Document]:
    names = {case[0] for kind in ("supported", *UNSUPPORTED) for case in CASES[kind]}
    inline = CASES["documents"]
    return {
        name: zlclient.Document.from_text(inline[name])
        if name in inline
        else zlclient.Document.from_path(folder / name)
        for name in sorted(names)
    }


def citation(documents: dict[str, zlclient.Document], name: str, statement: str):
    document = documents[name]
    return cite(statement, document, Coverage.of(document.segments(2000), {}))[0]


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT.parent / "shared" / "documents"
    documents = load(folder)
    total = len(CASES["supported"])
    print(f"{'enough':>6} {'right':>9} {'other':>6}   let through: " + "  ".join(f"{kind:>10}" for kind in UNSUPPORTED))
    chosen = citations.ENOUGH
    for enough in (0.3, 0.4, 0.45, 0.5, 0.55, 0.6, 0.7):
        citations.ENOUGH = enough
        made = [(citation(documents, name, told), place) for name, told, place in CASES["supported"]]
        right = sum(found.supported and place in "".join(found.path[-1:]) for found, place in made)
        other = sum(found.supported and place not in "".join(found.path[-1:]) for found, place in made)
        through = [sum(citation(documents, *case).supported for case in CASES[kind]) for kind in UNSUPPORTED]
        figures = "  ".join(f"{n:>4} of {len(CASES[kind]):>2}" for n, kind in zip(through, UNSUPPORTED, strict=True))
        print(f"{enough:>6} {right:>3} of {total:>2} {other:>6}                {figures}")
    citations.ENOUGH = chosen
    for found, place in [(citation(documents, name, told), place) for name, told, place in CASES["supported"]]:
        if not (found.supported and place in "".join(found.path[-1:])):
            print(f"not right: {found.statement} → {found.path[-1:]} {found.score:.2f} {found.missing} (is {place})")
    for kind in UNSUPPORTED:
        for case in CASES[kind]:
            found = citation(documents, *case)
            if found.supported:
                print(f"let through, {kind}: {found.statement} → {found.path[-1:]} {found.score:.2f}")
    text = documents["总则.md"].source
    big = zlclient.Document.from_text(text * (5_000_000 // len(text)))
    coverage = Coverage.of(big.segments(8000), {})
    answer = "".join(told for name, told, _ in CASES["supported"] if name == "总则.md")
    began = time.perf_counter()
    found = cite(answer, big, coverage)
    seconds = time.perf_counter() - began
    print(f"{len(found)} statements against {len(big.source) / 1e6:.1f} million characters: {seconds:.2f} s")


if __name__ == "__main__":
    main()
