"""Documents as batches of tokens."""

# PyTorch's annotations leave much unknown; the rest of strict checking stays on.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import random
from dataclasses import dataclass, field

import torch

from ..prompt import Prompt, marked
from ..tokenizer import MARKERS, Tokenizer
from .data import DOMAINS, PLAIN, Document, Mix, make_document
from .network import Batch, Questions

DECISION = 3.0  # the weight of an answer's first token in the loss
SPELLED = 3  # questions of a document whose answer is spelled out; of the others only the first token is trained


@dataclass(slots=True)
class _Row:
    """One passage, and its questions as (question, answer) tokens: those to be decided, and those to be spelled out."""

    passage: list[int]
    domain: int = 0
    weights: list[float] | None = None
    decided: list[tuple[list[int], list[int]]] = field(default_factory=list[tuple[list[int], list[int]]])
    spelled: list[tuple[list[int], list[int]]] = field(default_factory=list[tuple[list[int], list[int]]])


def document_batch(
    rng: random.Random,
    tokenizer: Tokenizer,
    *,
    documents: int,
    facts: int,
    questions: int,
    spelled: int = SPELLED,
    mix: Mix = PLAIN,
) -> tuple[Batch, list[Document]]:
    """A batch and its documents; where `spelled` is `questions`, the one group has every document's in their order."""
    made = [make_document(rng, facts, questions, mix=mix) for _ in range(documents)]
    return _stack([_row(document, tokenizer, rng.randrange(MARKERS - facts + 1), spelled) for document in made]), made


def repeat_batch(rng: random.Random, tokenizer: Tokenizer, *, documents: int, length: int) -> Batch:
    """Random segments, repeated: what teaches a fresh model to look back and copy."""
    rows: list[_Row] = []
    for _ in range(documents):
        size = rng.randrange(10, 40)
        segment = [rng.randrange(8, tokenizer.size) for _ in range(size)]
        tokens = ([tokenizer.bos] + segment * (length // size + 1))[:length]
        rows.append(_Row(tokens, weights=[0.0 if at < size else 1.0 for at in range(length - 1)] + [0.0]))
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
        row = _Row([tokenizer.bos, *(token for at, words in enumerate(told)
                                     for token in marked(tokenizer.marker(first + at), words))])  # fmt: skip
        for _ in range(2 * sentences):
            at = rng.randrange(sentences)
            start = rng.randrange(len(told[at]) - 1)
            words = told[at][start : start + rng.randrange(2, 5)]
            row.decided.append(([tokenizer.question, *words, tokenizer.answer], [tokenizer.marker(first + at)]))
        rows.append(row)
    return _stack(rows)


def _row(document: Document, tokenizer: Tokenizer, first: int, spelled: int) -> _Row:
    prompt = Prompt(tokenizer, first)
    # A tag or an anchor tells the domain at inference; where there was neither, the anchors are the general ones.
    row = _Row(prompt.passage(document.sentences, tag=document.tag),
               DOMAINS.index(document.domain) if document.tag else 0)  # fmt: skip
    for question in document.questions:
        answer = prompt.answer([(at, document.sentences[at]) for at in question.answers])
        if len(row.spelled) < spelled:
            value = None
            if question.value and len(row.spelled) % 2 == 0:
                at = question.answers[0]
                value = prompt.value(at, document.sentences[at], question.value)
            row.spelled.append((prompt.question(question.text, value=value is not None), value or answer))
        else:
            row.decided.append((prompt.question(question.text), answer[:1]))
    return row


def _stack(rows: list[_Row]) -> Batch:
    longest = max(len(row.passage) for row in rows)
    passages = torch.tensor([[0] * (longest - len(row.passage)) + row.passage for row in rows])
    size = torch.tensor([len(row.passage) for row in rows])
    weights = None
    if any(row.weights for row in rows):
        weights = torch.tensor([[0.0] * (longest - len(row.passage)) + (row.weights or []) for row in rows])
    groups = [_group([row.decided for row in rows]), _group([row.spelled for row in rows])]
    return Batch(
        passages=passages,
        present=torch.arange(longest)[None] >= longest - size[:, None],
        weights=weights,
        questions=tuple(group for group in groups if group is not None),
        domains=torch.tensor([row.domain for row in rows]),
    )


def _group(rows: list[list[tuple[list[int], list[int]]]]) -> Questions | None:
    count = max(map(len, rows))
    if not count:
        return None
    longest = max(len(asked) + len(answer) for row in rows for asked, answer in row)
    tokens, weights = torch.zeros(len(rows), count, longest, dtype=torch.long), torch.zeros(len(rows), count, longest)
    for row, questions in enumerate(rows):
        for at, (asked, answer) in enumerate(questions):
            end = len(asked) + len(answer)
            tokens[row, at, :end] = torch.tensor(asked + answer)
            weights[row, at, len(asked) - 1] = DECISION
            weights[row, at, len(asked) : end - 1] = 1.0
    return Questions(tokens, weights)
