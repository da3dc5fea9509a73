"""The two recipes: what is trained when. Every number of the schedule is a share of the run's steps.

    both     one stem, a decoder with relative positions, for the first half
    legacy   goes on from the stem; the check loop joins for the last 40 %
    auto     goes on from the stem with anchors and with a gate on each head's positions, whose penalty rises from 50 to
             60 %; closed gates whose gradient stays under 1e-5 are frozen; at 62 % the entropy gate is calibrated and
             goes on; at 82 % the position tensors are removed, and the rest recalibrates the model without them

Each step's data and noise come from (seed, step) alone, so a run that was killed goes on exactly as it would have.
"""

# PyTorch's annotations leave much unknown; the rest of strict checking stays on.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from ..config import Generation, ModelConfig
from ..tokenizer import Tokenizer
from .batches import document_batch, point_batch, repeat_batch
from .data import DOMAINS, Mix
from .network import Batch, Decoder, Gate, PositionEncoder
from .optimise import Optimisers
from .scoring import score

WARM = 0.04  # share of the run over which repeated segments give way to documents
POINT = 0.15  # and over which pointing at random tokens does
EARLY_FACTS, LATE_FACTS = (2, 3, 4, 6), (3, 4, 4, 6, 6, 8, 8, 8, 12, 16, 24, 24)
# Questions that are hard to refuse are few in a plain document, such as held-out ones are: many of them teach how to
# refuse, and the plain share at the end how often.
HARD_UNTIL = 0.75
HARD_MIXES = tuple(Mix(loose, unstated=0.26, crossed=0.35, led=0.12) for loose in (0.0, 0.4, 0.8))
LAST_MIXES = tuple(Mix(loose, crossed=0.1, led=0.12) for loose in (0.0, 0.4, 0.8))
CHECK_FROM = 0.6
STEM = 0.5
PENALTY_FROM, PENALTY_FULL, PENALTY = 0.5, 0.6, 4.0
ENTROPY_FROM, POSITIONS_UNTIL = 0.62, 0.82
DECAY_FROM = 0.6
FACTS = 64  # sentences of a batch, about
GATED_SHARES = (0.2, 0.1, 0.05, 0.02, 0.01, 0.005)  # of head-queries, tried in turn for the entropy bound
DEARER = 0.03  # what closing them may add to the loss
QUIET = 1e-5  # gradient norm under which a closed gate is frozen
Log = Callable[[dict[str, Any]], None]


def initial_config(generation: Generation, tokenizer: Tokenizer) -> ModelConfig:
    """The configuration a run starts from; auto still has positions then."""
    if generation == "legacy":
        return ModelConfig("legacy", tokenizer.size, buckets=48, check_rank=6, domains=DOMAINS)
    return ModelConfig("auto", tokenizer.size, buckets=48, anchors=4, domains=DOMAINS)


class Run:
    """A training run that can be stopped and continued. `step` counts the steps done."""

    def __init__(self, generation: Generation, tokenizer: Tokenizer, *, steps: int, seed: int, log: Log) -> None:
        self.tokenizer, self.steps, self.seed, self.log = tokenizer, steps, seed, log
        torch.manual_seed(seed)
        self.model = Decoder(initial_config(generation, tokenizer), gated=generation == "auto")
        self.optimisers = Optimisers(self.model)
        self.step = 0
        self.best = 0.0
        self.losses: list[float] = []
        self.cpu = 0.0

    @property
    def share(self) -> float:
        """How much of the run is done."""
        return self.step / self.steps

    def advance(self) -> None:
        """One step."""
        begun = time.process_time()
        torch.manual_seed(self.seed * 1_000_003 + self.step)
        rng = random.Random(f"train:{self.seed}:{self.step}")
        self._turn()
        batch = self._batch(rng)
        hidden = self.model(batch)
        rows, targets, weights = counted(batch, hidden)
        losses = functional.cross_entropy(self.model.logits(rows), targets, reduction="none")
        loss = (losses * weights).sum() / weights.sum()
        self.losses.append(float(loss.detach()))
        if self.model.check is not None and self.share >= CHECK_FROM:
            loss = loss + self._check_loss(batch, [part.detach() for part in hidden])
        if self._gated:
            rise = min(1.0, max(0.0, (self.share - PENALTY_FROM) / (PENALTY_FULL - PENALTY_FROM)))
            loss = loss + PENALTY * rise * self._open_share()
        loss.backward()
        rate = min(1.0, (self.step + 1) / 50)
        if self.share > DECAY_FROM:
            rate = max(0.02, (1 - self.share) / (1 - DECAY_FROM))
        self.optimisers.step(rate)
        self.step += 1
        self.cpu += time.process_time() - begun

    def report(self, documents: int) -> None:
        """Log the loss and the held-out score; freeze the position gates that are closed and quiet."""
        result = score(self.model, self.tokenizer, facts=6, documents=documents)
        em = (result.exact("zh") + result.exact("en")) / 2
        entry: dict[str, Any] = {
            "event": "progress", "step": self.step, "cpu_s": round(self.cpu, 1),
            "loss": round(sum(self.losses) / max(1, len(self.losses)), 4), **result.summary(),
        }  # fmt: skip
        self.losses.clear()
        if self._gated:
            entry["gates"] = self._freeze(em)
        self.best = max(self.best, em)
        self.log(entry)

    def _batch(self, rng: random.Random) -> Batch:
        if rng.random() < max(0.0, 0.7 * (1 - self.share / WARM)):
            return repeat_batch(rng, self.tokenizer, documents=8, length=160)
        if rng.random() < max(0.0, 0.7 * (1 - self.share / POINT)):
            sentences = rng.choice((2, 3, 4, 6, 8, 12))
            return point_batch(rng, self.tokenizer, documents=max(4, 72 // sentences), sentences=sentences)
        facts = rng.choice(LATE_FACTS if self.share >= POINT else EARLY_FACTS)
        documents = max(2, min(12, FACTS // facts))
        mix = rng.choice(HARD_MIXES if self.share < HARD_UNTIL else LAST_MIXES)
        batch, _ = document_batch(
            rng, self.tokenizer, documents=documents, facts=facts, questions=min(2 * facts, 16), mix=mix
        )
        return batch

    # auto: positions to zero, then the entropy gate

    @property
    def _gated(self) -> bool:
        return self.model.config.generation == "auto" and self.model.config.buckets > 0

    def _gates(self) -> list[tuple[PositionEncoder, Gate]]:
        found = [layer.pos_encoder for layer in self.model.blocks]
        return [(encoder, encoder.gate) for encoder in found if encoder is not None and encoder.gate is not None]

    def _open_share(self) -> Tensor:
        heads = self.model.config.heads * self.model.config.layers
        return torch.stack([gate.open_share() for _, gate in self._gates()]).sum() / heads

    def _turn(self) -> None:
        """What changes at this point of the run."""
        if self.model.config.generation != "auto":
            return
        if self.share >= ENTROPY_FROM and self.model.bound is None:
            self._calibrate_entropy()
        if self.share >= POSITIONS_UNTIL and self._gated:
            self.log({"event": "positions removed", "step": self.step, "open": self._open_gates()})
            self.without_positions()

    def without_positions(self) -> None:
        """Delete the position tensors and go on training what is left."""
        self.model.config = replace(self.model.config, buckets=0)
        for layer in self.model.blocks:
            layer.pos_encoder, layer.config = None, self.model.config
        self.optimisers = Optimisers(self.model)

    def _calibrate_entropy(self) -> None:
        """The bound that closes most head-queries of held-out documents for at most DEARER of their loss.

        A share to close cannot be fixed beforehand: the head that gathers what a question's words found is diffuse by
        its nature, and a bound that closes it takes the answer away.
        """
        batch, _ = document_batch(random.Random("entropy"), self.tokenizer, documents=16, facts=8, questions=8)
        self.model.eval()
        with torch.no_grad():
            open_loss = self._held_out_loss(batch, 2.0)  # above any entropy over ln n: nothing is closed
            decided = batch.questions[0].weights > 0
            measured = [layer.entropy[1].permute(0, 2, 3, 1)[decided].flatten() for layer in self.model.blocks]
            values = torch.cat(measured)
            for share in GATED_SHARES:
                bound = round(float(values.quantile(1 - share)), 4)
                loss = self._held_out_loss(batch, bound)
                if loss <= open_loss * (1 + DEARER):
                    break
        self.model.train()
        self.close_heads(bound)
        self.log({"event": "entropy gate on", "step": self.step, "bound": bound, "unit": "entropy / ln n",
                  "closed": share, "loss": round(loss, 4), "loss_without": round(open_loss, 4)})  # fmt: skip

    def _held_out_loss(self, batch: Batch, bound: float) -> float:
        self.model.bound = bound
        rows, targets, _ = counted(batch, self.model(batch))
        return float(functional.cross_entropy(self.model.logits(rows), targets))

    def close_heads(self, bound: float | None) -> None:
        """From here on, gate heads by entropy (None: not at all)."""
        self.model.bound = bound
        self.model.config = replace(self.model.config, entropy_bound=bound)

    def _open_gates(self) -> list[int]:
        self.model.eval()
        found = [int((gate() > 0).sum()) for _, gate in self._gates()]
        self.model.train()
        return found

    def _freeze(self, em: float) -> list[int]:
        """Freeze closed gates whose gradient norm, measured on held-out data, is quiet while the score holds."""
        self.model.eval()
        batch, _ = document_batch(
            random.Random(f"freeze:{self.step}"), self.tokenizer, documents=8, facts=6, questions=6
        )
        rows, targets, _ = counted(batch, self.model(batch))
        functional.cross_entropy(self.model.logits(rows), targets).backward()
        for index, (encoder, gate) in enumerate(self._gates()):
            assert encoder.weight.grad is not None
            norms = encoder.weight.grad.norm(dim=1)
            quiet = (gate().detach() == 0) & (norms < QUIET) & ~gate.frozen
            if em < self.best - 0.05:
                continue
            gate.frozen |= quiet
            for head in quiet.nonzero().flatten().tolist():
                norm = f"grad_norm={float(norms[head]):.4e} (frozen)"
                line = f"[Layer {index}] pos_encoder.weight[{head}]: {norm} step {self.step}"
                self.log({"event": "frozen", "line": line})
        self.model.zero_grad(set_to_none=True)
        self.model.train()
        return self._open_gates()

    # legacy: the check loop

    def _check_loss(self, batch: Batch, hidden: list[Tensor]) -> Tensor:
        """Rated candidates against what was right, and the rescored distribution, over all rounds."""
        assert self.model.check is not None
        embedding = self.model.embedding.weight.detach()
        rows, targets, _ = counted(batch, hidden)
        kept = torch.randperm(len(targets))[:256]
        rows, targets = rows[kept], targets[kept]
        before, read, present = (part[kept] for part in _context(batch, hidden, embedding))
        loss = torch.zeros(())
        for logits, candidates, ratings in self.model.check(rows, before, read, embedding):
            right = (candidates == targets[:, None]).float()
            anchored = (present[:, :, None] == candidates[:, None]).any(1).float()
            labels = torch.stack([right, anchored, right], -1)  # the third rating is "no jump"
            loss = loss + functional.binary_cross_entropy_with_logits(ratings, labels)
            loss = loss + functional.cross_entropy(logits, targets)
        return loss / (self.model.config.check_rounds + 1)


def counted(batch: Batch, hidden: list[Tensor]) -> tuple[Tensor, Tensor, Tensor]:
    """The hidden states (N, d) that the loss is of, their targets (N,) and weights (N,)."""
    parts = [(part.tokens, part.weights, states) for part, states in zip(batch.questions, hidden[1:], strict=True)]
    if batch.weights is not None:
        parts.append((batch.passages, batch.weights, hidden[0]))
    rows: list[Tensor] = []
    targets: list[Tensor] = []
    weights: list[Tensor] = []
    for tokens, weight, states in parts:
        real = weight[..., :-1] > 0
        rows.append(states[..., :-1, :][real])
        targets.append(tokens[..., 1:][real])
        weights.append(weight[..., :-1][real])
    return torch.cat(rows), torch.cat(targets), torch.cat(weights)


def _context(batch: Batch, hidden: list[Tensor], embedding: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """For every counted row of questions: the hidden state before it (N, d), the mean embedding of what it sees (N, d),
    and those tokens (N, n)."""
    b, p = batch.passages.shape
    told = (embedding[batch.passages] * batch.present[..., None]).sum(1)
    lengths = batch.present.sum(1)
    longest = max(part.tokens.shape[-1] for part in batch.questions)
    befores: list[Tensor] = []
    reads: list[Tensor] = []
    seen: list[Tensor] = []
    for part, states in zip(batch.questions, hidden[1:], strict=True):
        real = part.weights[..., :-1] > 0
        count, size = part.tokens.shape[1:]
        last = hidden[0][:, None, -1:].expand(b, count, 1, -1)
        befores.append(torch.cat([last, states[:, :, :-1]], 2)[:, :, :-1][real])
        sums = told[:, None, None] + embedding[part.tokens].cumsum(2)
        counts = lengths[:, None, None] + torch.arange(1, size + 1)
        reads.append((sums / counts[..., None])[:, :, :-1][real])
        own = functional.pad(part.tokens, (0, longest - size))
        both = torch.cat([batch.passages[:, None].expand(b, count, p), own], -1)
        seen.append(both[:, :, None].expand(b, count, size - 1, p + longest)[real])
    return torch.cat(befores), torch.cat(reads), torch.cat(seen)
