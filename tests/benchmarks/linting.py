"""Time to lint 1,000 prompt files of about 4.8 KB, cold and cached, beside other prompt linters in the same rounds.

    python tests/benchmarks/linting.py CORPUS [NAME=COMMAND ...]

CORPUS is a folder of real prompts, from which the files are cut. Each NAME=COMMAND is a peer, run with the folder of
files as its last argument, such as `context-lint="/opt/peers/bin/context-lint"`. Times are of whole processes, start
included; the files are Markdown, the one format that all such linters read.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

FILES, SIZE, ROUNDS = 1000, 4800, 3
OURS = [sys.executable, "-c", "import sys; from zlclient.cli import main; sys.exit(main(sys.argv[1:]))", "lint"]


def write_files(corpus: Path, folder: Path) -> int:
    """Cut the corpus into FILES pieces of about SIZE bytes; the bytes written."""
    texts = [file.read_text("utf-8") for file in sorted(corpus.iterdir()) if file.suffix != ".jsonl"]
    whole = "\n\n".join(texts)
    step = max(1, (len(whole) - SIZE) // FILES)
    written = 0
    for number in range(FILES):
        piece = whole[number * step : number * step + SIZE].encode("utf-8")[:SIZE].decode("utf-8", "ignore")
        written += (folder / f"{number:04}.md").write_bytes(piece.encode("utf-8"))
    return written


def seconds(command: list[str], folder: Path, work: Path) -> float:
    """Wall time of one run; findings are no failure."""
    start = time.perf_counter()
    # Every arm may keep its compiled modules, as an installed program does.
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run([*command, str(folder)], cwd=work, env=env, capture_output=True, check=False)
    if done.returncode not in (0, 1):
        raise SystemExit(f"{command[0]} failed: {done.stderr.decode(errors='replace')[-400:]}")
    return time.perf_counter() - start


def main() -> None:
    """Print the best of ROUNDS interleaved rounds for each arm."""
    corpus = Path(sys.argv[1])
    arms: dict[str, list[str]] = {
        "zlclient, one process": [*OURS, "--no-cache", "--jobs", "1", "--output-format", "concise"],
        "zlclient, cold": [*OURS, "--no-cache", "--output-format", "concise"],
        "zlclient, cached": [*OURS, "--output-format", "concise"],
    }
    for peer in sys.argv[2:]:
        name, _, command = peer.partition("=")
        arms[name] = shlex.split(command)
    with tempfile.TemporaryDirectory() as place:
        folder, work = Path(place) / "files", Path(place) / "work"
        folder.mkdir()
        work.mkdir()
        written = write_files(corpus, folder)
        seconds(arms["zlclient, cached"], folder, work)
        best = dict.fromkeys(arms, float("inf"))
        for _ in range(ROUNDS):
            for name, command in arms.items():
                best[name] = min(best[name], seconds(command, folder, work))
    print(f"{FILES} files, {written / FILES:.0f} bytes each on average; best of {ROUNDS}")
    for name, value in sorted(best.items(), key=lambda item: item[1]):
        print(f"{value:8.2f} s  {value / best['zlclient, cold']:6.2f} x  {name}")


if __name__ == "__main__":
    main()
