"""Exact match and F1 of a network in training, by teacher forcing (greedy decoding is right exactly where this is)."""

# PyTorch's annotations leave much unknown; the rest of strict checking stays on.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import random
from dataclasses import dataclass, field

import torch

from ..tokenizer import Tokenizer
from .batches import document_batch
from .network import Decoder


@dataclass(slots=True)
class Score:
    """Counts over held-out documents. A question that the text does not answer counts for F1, not for exact match."""

    right: dict[str, int] = field(default_factory=dict[str, int])
    asked: dict[str, int] = field(default_factory=dict[str, int])
    both: int = 0
    said: int = 0
    meant: int = 0

    def exact(self, kind: str) -> float:
        """Share of exact matches among `kind`: zh, en (facts and loose sentences), fact, loose, value, summary."""
        return self.right.get(kind, 0) / max(1, self.asked.get(kind, 0))

    @property
    def unstated(self) -> float:
        """F1 of saying that the text does not state it."""
        return 2 * self.both / max(1, self.said + self.meant)

    def summary(self) -> dict[str, float]:
        """All numbers, rounded."""
        kinds = {kind: round(self.exact(kind), 4) for kind in sorted(self.asked)}
        return {**kinds, "unstated_f1": round(self.unstated, 4)}


@torch.no_grad()
def score(model: Decoder, tokenizer: Tokenizer, *, facts: int, documents: int, seed: int = 999) -> Score:
    """The score on `documents` documents of `facts` sentences that training never sees (their seeds are strings)."""
    model.eval()
    rng = random.Random(f"held-out:{seed}:{facts}")
    result = Score()
    for begun in range(0, documents, 16):
        size = min(16, documents - begun)
        batch, made = document_batch(rng, tokenizer, documents=size, facts=facts, questions=6, spelled=6)
        (asked,) = batch.questions
        guess = model.logits(model(batch)[1][:, :, :-1]).argmax(-1)
        real = asked.weights[:, :, :-1] > 0
        correct = ((guess == asked.tokens[:, :, 1:]) | ~real).all(-1)
        decided = guess.gather(2, (asked.weights > 1).int().argmax(-1, keepdim=True))[..., 0]
        valued = (asked.tokens == tokenizer.value).any(-1)
        for row, document in enumerate(made):
            for at, question in enumerate(document.questions):
                said = int(decided[row, at]) == tokenizer.none
                result.said += said
                result.meant += question.kind == "unstated"
                result.both += said and question.kind == "unstated"
                kind = "value" if valued[row, at] else question.kind
                for name in {kind, question.language if kind in ("fact", "loose") else ""} - {"", "unstated"}:
                    result.asked[name] = result.asked.get(name, 0) + 1
                    result.right[name] = result.right.get(name, 0) + bool(correct[row, at])
    model.train()
    return result
