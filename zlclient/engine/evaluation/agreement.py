"""Whether legacy's check loop knows more than its trunk: its verdict beside the trunk's own probability.

Both are taken at the decision, which sentence answers or none. The trunk's own probability is that of its likeliest
token where the same checkpoint runs without the loop, so that no rescoring is in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..checkpoint import Checkpoint
from ..model import Model
from ..prompt import Prompt
from ..sampler import softmax
from ..training.data import Document
from .asking import SINGLE
from .intervals import bootstrap, pearson, spearman
from .mechanisms import without_check


def agreement(legacy: Checkpoint, documents: Sequence[Document]) -> dict[str, Any]:
    """Correlations over all decisions, and the share of decisions that took a further round."""
    checked, trunk = Model(legacy), Model(without_check(legacy))
    rows: list[tuple[float, float, float, float]] = []
    for document in documents:
        rows += _decisions(checked, trunk, document)
    table = np.asarray(rows, float)
    return {
        "decisions": len(table),
        "further_rounds": round(float(table[:, 3].mean()), 4),
        "verdict_with_trunk_spearman": bootstrap(table[:, [0, 1]], spearman).plain(),
        "verdict_with_right": bootstrap(table[:, [0, 2]], pearson).plain(),
        "trunk_with_right": bootstrap(table[:, [1, 2]], pearson).plain(),
        "trunk_over_verdict": bootstrap(
            table, lambda found: pearson(found[..., [1, 2]]) - pearson(found[..., [0, 2]])
        ).plain(),
    }


def _decisions(checked: Model, trunk: Model, document: Document) -> list[tuple[float, float, float, float]]:
    """For each question: verdict, the trunk's own top probability, whether the decision is right, further rounds."""
    prompt, tokenizer = Prompt(checked.tokenizer), checked.tokenizer
    passage = prompt.passage(document.sentences, tag=document.tag)
    found: list[tuple[float, float, float, float]] = []
    for question in document.questions:
        if question.kind not in SINGLE:
            continue
        tokens = [*passage, *prompt.question(question.text)]
        step = checked.forward(tokens, checked.start())
        own = float(softmax(trunk.forward(tokens, trunk.start()).logits).max())
        meant = prompt.marker(question.answers[0]) if question.answers else tokenizer.none
        found.append((step.verdict or 0.0, own, float(step.logits.argmax() == meant), float(step.further > 0)))
    return found
