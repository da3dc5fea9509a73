"""Documents as batches of tokens."""

# PyTorch's annotations leave much unknown; the rest of strict checking stays on.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import random

import torch

from ..prompt import Prompt, marked
from ..tokenizer import MARKERS, Tokenizer
from .data import DOMAINS, Document, Language, make_document
from .network import Batch

WHOLE = 1  # questions of a document whose answer is spelled out; of the others only the first token is trained


def document_batch(
    rng: random.Random,
    tokenizer: Tokenizer,
    *,
    documents: int,
    facts: int,
    questions: int,
    whole: int = WHOLE,
    language: Language | None = None,
    loose: float | None = None,
) -> tuple[Batch, list[tuple[Document, list[int]]]]:
    """A batch, and each document with the place of every question's last token (the decision is made there)."""
    extra = {} if loose is None else {"loose": loose}
    rows: list[_Row] = []
    made: list[tuple[Document, list[int]]] = []
    for _ in range(documents):
        document = make_document(rng, facts, questions, language=language, **extra)
        row = _row(document, tokenizer, rng.randrange(MARKERS - facts + 1), whole)
        rows.append(row)
        made.append((document, [at for at, is_decision in enumerate(row.decisions) if is_decision]))
    return _stack(rows), made


def repeat_batch(rng: random.Random, tokenizer: Tokenizer, *, documents: int, length: int) -> Batch:
    """Random segments, repeated: what teaches a fresh model to look back and copy."""
    rows: list[_Row] = []
    for _ in range(documents):
        size = rng.randrange(10, 40)
        segment = [rng.randrange(8, tokenizer.size) for _ in range(size)]
        tokens = ([tokenizer.bos] + segment * (length // size + 1))[:length]
        weights = [0.0 if at < size else 1.0 for at in range(length - 1)] + [0.0]
        rows.append(_Row(tokens, list(range(length)), [0] * length, weights, [False] * length, 0))
    return _stack(rows)


def point_batch(rng: random.Random, tokenizer: Tokenizer, *, documents: int, sentences: int) -> Batch:
    """Sentences of random tokens, and questions that repeat a few of them in a row: what teaches a model to point.

    The plainest form of what documents ask: the answer is the marker of the sentence that the tokens stand in.
    """
    rows: list[_Row] = []
    for _ in range(documents):
        first = rng.randrange(MARKERS - sentences + 1)
        told = [
            [rng.randrange(tokenizer.first_piece, tokenizer.size) for _ in range(rng.randrange(3, 10))]
            for _ in range(sentences)
        ]
        tokens = [tokenizer.bos]
        for at, words in enumerate(told):
            tokens += marked(tokenizer.marker(first + at), words)
        row = _Row(tokens, list(range(len(tokens))), [0] * len(tokens), [0.0] * len(tokens), [False] * len(tokens), 0)
        for part in range(1, 2 * sentences + 1):
            at = rng.randrange(sentences)
            start = rng.randrange(len(told[at]) - 1)
            words = told[at][start : start + rng.randrange(2, 5)]
            row.ask(part, [tokenizer.question, *words, tokenizer.answer], [tokenizer.marker(first + at)])
        rows.append(row)
    return _stack(rows)


class _Row:
    def __init__(
        self,
        tokens: list[int],
        places: list[int],
        parts: list[int],
        weights: list[float],
        decisions: list[bool],
        domain: int,
    ) -> None:
        self.tokens, self.places, self.parts = tokens, places, parts
        self.weights, self.decisions, self.domain = weights, decisions, domain
        self._length = len(tokens)

    def ask(self, part: int, asked: list[int], answer: list[int]) -> None:
        """Append question `part`, which sees the passage and itself, with its answer."""
        size = len(asked) + len(answer)
        self.tokens += asked + answer
        self.places += range(self._length, self._length + size)
        self.parts += [part] * size
        self.weights += [0.0] * (len(asked) - 1) + [3.0] + [1.0] * (len(answer) - 1) + [0.0]
        self.decisions += [False] * (len(asked) - 1) + [True] + [False] * len(answer)


def _row(document: Document, tokenizer: Tokenizer, first: int, whole: int) -> _Row:
    """One passage with its questions side by side: part 0 is the passage, part i question i."""
    prompt = Prompt(tokenizer)
    tokens = prompt.passage(document.sentences, tag=document.tag, first=first)
    row = _Row(tokens, list(range(len(tokens))), [0] * len(tokens), [0.0] * len(tokens), [False] * len(tokens), 0)
    # A tag or an anchor tells the domain at inference; where there was neither, the anchors are the general ones.
    row.domain = DOMAINS.index(document.domain) if document.tag else 0
    for part, question in enumerate(document.questions, 1):
        answer = prompt.answer([(first + at, document.sentences[at]) for at in question.answers])
        if part > whole and question.kind != "summary":
            answer = answer[:1]
        row.ask(part, prompt.question(question.text), answer)
    return row


def _stack(rows: list[_Row]) -> Batch:
    longest = max(len(row.tokens) for row in rows)

    def padded(values: list[list[int]] | list[list[float]] | list[list[bool]], fill: float) -> torch.Tensor:
        return torch.tensor([[*value, *[fill] * (longest - len(value))] for value in values])

    parts = padded([row.parts for row in rows], -1)
    causal = torch.ones(longest, longest, dtype=torch.bool).tril()
    same = (parts[:, :, None] == parts[:, None, :]) | (parts[:, None, :] == 0)
    return Batch(
        tokens=padded([row.tokens for row in rows], 0).long(),
        places=padded([row.places for row in rows], 0).long(),
        mask=causal & same,
        weights=padded([row.weights for row in rows], 0.0).float(),
        domains=torch.tensor([row.domain for row in rows]),
        decisions=padded([row.decisions for row in rows], 0).bool(),
    )
