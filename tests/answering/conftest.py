"""A document of numbered sections, and a local server that answers each request by what it holds."""

import re
import threading

import pytest

from zlclient import Client, Document
from zlclient.answering.wording import not_stated
from zlclient.serving.responders.base import Fault, Finish, Pause, Responder, Text, text_of
from zlclient.serving.server import LocalServer

SECTIONS = 12
SECTION = re.compile(r"Section (\d+)\b")


def section(number: int) -> str:
    told = f"In section {number} the supplier pays a fee of {number * 1000 + 7} euros within {number + 20} days.\n"
    filler = "".join(f"Clause {number}.{n} says how notices are delivered between the parties.\n" for n in range(1, 9))
    return f"# Section {number} Fees of kind {number}\n\n{told}{filler}\n"


@pytest.fixture(scope="session")
def document() -> Document:
    return Document.from_text("".join(section(number) for number in range(1, SECTIONS + 1)))


class Scripted(Responder):
    """Answers a part with its fee sentences, a merge with all that it was given; `faults` and `pauses` by section.

    `brief` merges keep only where a fee stands; `before` is called at each request.
    """

    name = "scripted"

    def __init__(self):
        self.asks, self.faults, self.pauses, self.silent = [], {}, {}, set()
        self.merge_fault, self.answer, self.cut = None, None, set()
        self.brief, self.before = False, lambda: None
        self.running, self.most_running = 0, 0
        self._lock = threading.Lock()

    def respond(self, ask):
        given = next(text_of(block) for block in ask.turns[0].blocks if block["type"] == "document")
        merging = "what the parts" in ask.system or "Merge them" in ask.system
        first = next((int(n) for n in SECTION.findall(given)), 0)
        with self._lock:
            self.before()
            self.asks.append(ask)
            self.running += 1
            self.most_running = max(self.most_running, self.running)
        try:
            yield from self._answer(given, first, merging)
        finally:
            with self._lock:
                self.running -= 1

    def _answer(self, given, first, merging):
        if not merging and first in self.pauses:
            yield Pause(self.pauses[first])
        fault = self.merge_fault if merging else self.faults.get(first)
        if fault is not None:
            yield fault
            return
        if not merging and first in self.silent:
            yield Text(not_stated("?"))
            return
        told = [line for line in given.splitlines() if line.startswith("In section")]
        if merging and self.brief:
            told = [line.partition(" the ")[0] for line in told]
        yield Text(self.answer if merging and self.answer else "\n".join(told) or not_stated("?"))
        if not merging and first in self.cut:
            yield Finish("max_tokens")


@pytest.fixture
def scripted() -> Scripted:
    return Scripted()


@pytest.fixture
def client(scripted, clock):
    with Client(provider="local", clients={"local": LocalServer([scripted])}, clock=clock) as made:
        yield made


def fault(status: int) -> Fault:
    return Fault("status", status=status)


@pytest.fixture(name="fault")
def _fault():
    return fault
