"""What makes the linter fast changes no finding: rules passed over, word lists dismissed, work shared out."""

import os
import threading
from datetime import date

import pytest

from zlclient.linting import lexicon
from zlclient.linting.document import Document
from zlclient.linting.engine import lint_file
from zlclient.linting.lint_settings import LintSettings
from zlclient.linting.rules import safety
from zlclient.linting.sharing_out import can_fork, map_forked

TODAY = date(2026, 11, 30)


def test_rules_and_lists_are_only_passed_over_where_they_find_nothing(shared, monkeypatch):
    files = [file for file in sorted((shared / "corpus").iterdir()) if file.suffix != ".jsonl"]
    settings = LintSettings(select=("ALL",), target_model="anthropic:claude-opus-5@2026-10-21", today=TODAY)
    fast = [lint_file(file, settings) for file in files]
    monkeypatch.setattr(Document, "may_hold", lambda self, name: True)
    monkeypatch.setattr(Document, "has", frozenset(("tags", "models", "keys")))
    monkeypatch.setattr(lexicon, "holds_pieces", lambda needed, found: True)
    monkeypatch.setattr(lexicon, "holds_runs", lambda needed, low: True)
    monkeypatch.setattr(lexicon.Lexicon, "needs_any_of", lambda self, name: frozenset())
    monkeypatch.setattr(safety, "_has_long_number", lambda text: True)
    monkeypatch.setattr(safety, "_KEY_STARTS", ("",))
    lexicon._possible.cache_clear()
    try:
        slow = [lint_file(file, settings) for file in files]
    finally:
        lexicon._possible.cache_clear()
    assert slow == fast
    assert sum(len(report.diagnostics) for report in fast) > 100


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize("size", [0, 1, 7, 1500])
def test_work_is_shared_out_in_order(size):
    assert map_forked(lambda item: (item, str(item)), range(size), 3) == [(item, str(item)) for item in range(size)]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_what_a_dead_process_has_not_told_is_worked_out_here():
    here = os.getpid()

    def work(item):
        if os.getpid() != here:
            os._exit(9)
        return item * 2

    assert map_forked(work, range(900), 2) == [item * 2 for item in range(900)]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_an_error_here_leaves_no_process_behind(monkeypatch):
    here, forked, fork = os.getpid(), [], os.fork

    def noted() -> int:
        forked.append(fork())
        return forked[-1]

    monkeypatch.setattr(os, "fork", noted)

    def work(item):
        if os.getpid() == here:
            raise ValueError(item)
        os._exit(9)

    with pytest.raises(ValueError, match=r"\d"):
        map_forked(work, range(900), 2)
    assert forked
    for process in forked:
        with pytest.raises(ChildProcessError):
            os.waitpid(process, os.WNOHANG)


def test_a_process_with_threads_is_not_forked():
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait)
    thread.start()
    try:
        assert not can_fork()
    finally:
        stop.set()
        thread.join()


def test_whole_run_is_the_same_with_many_processes(tmp_path):
    from zlclient.linting.running import Linter

    for number in range(200):
        (tmp_path / f"{number:03}.md").write_text("请简洁回答，并详细展开。\n" * (number % 3), "utf-8")
    files = Linter().files([tmp_path])
    assert Linter(jobs=3).reports(files) == Linter(jobs=1).reports(files)
