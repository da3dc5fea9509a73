"""The decoder in PyTorch, for training; `engine/model.py` runs the same tensors in numpy.

Many questions over one passage are trained at once. Passages are padded on the left, so that they end together, and
every question begins at the same place after them, seeing its passage and itself: distances are the same in all rows.
"""

# PyTorch's annotations leave much unknown; the rest of strict checking stays on.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from ..config import ModelConfig, bucket_of

EPSILON = 1e-6
HIDDEN = -1e9


@dataclass(frozen=True, slots=True)
class Questions:
    """Questions of the same shape: tokens (B, Q, L), padded on the right, and the weights of the loss at t + 1."""

    tokens: Tensor
    weights: Tensor


@dataclass(frozen=True, slots=True)
class Batch:
    """B passages with their questions.

    passages (B, P), padded on the left; present (B, P), false where padded; weights (B, P) of the loss at t + 1, or
    None; domains (B,).
    """

    passages: Tensor
    present: Tensor
    weights: Tensor | None
    questions: tuple[Questions, ...]
    domains: Tensor


class Layout:
    """What all layers share about a batch: masks to add to scores, and buckets of distances."""

    def __init__(self, batch: Batch, buckets: int, anchors: int) -> None:
        b, self.passage = batch.passages.shape
        self.documents, self.anchors = b, anchors
        self.sizes = [tuple(part.tokens.shape[1:]) for part in batch.questions]
        self.rows = [b * self.passage, *(b * count * size for count, size in self.sizes)]
        self.present = batch.present
        longest = self.passage + max((size for _, size in self.sizes), default=0)
        hidden = torch.where(batch.present, 0.0, HIDDEN)[:, None, None, :]
        self.before = functional.pad(hidden, (anchors, 0))  # (B, 1, 1, m + P)
        ahead = torch.full((longest, longest), HIDDEN).triu(1)
        self.causal = functional.pad(ahead[: self.passage, : self.passage], (anchors, 0)) + self.before
        self.own = [functional.pad(ahead[:size, :size], (self.passage + anchors, 0)) for _, size in self.sizes]
        self.places: Tensor | None = None
        if buckets:
            table = torch.tensor([bucket_of(distance, buckets) for distance in range(longest)])
            at = torch.arange(longest)
            self.places = table[(at[:, None] - at[None, :]).clamp(min=0)]
        told = batch.present.sum(1, keepdim=True)
        # The keys that each token of a passage or a question sees, without anchors: (B, size).
        self.seen = [batch.present.cumsum(1), *(told + torch.arange(1, size + 1) for _, size in self.sizes)]


class Gate(nn.Module):
    """Hard-concrete gates (Louizos et al. 2018, arXiv 1712.01312), one a head; `frozen` ones are zero for good."""

    BETA, LOW, HIGH = 2 / 3, -0.1, 1.1

    def __init__(self, heads: int) -> None:
        super().__init__()
        self.log_alpha = nn.Parameter(torch.full((heads,), 2.0))
        self.frozen: Tensor
        self.register_buffer("frozen", torch.zeros(heads, dtype=torch.bool))

    def forward(self) -> Tensor:
        """The gates' values, sampled while training."""
        if self.training:
            noise = torch.rand_like(self.log_alpha).clamp(1e-6, 1 - 1e-6)
            value = torch.sigmoid((noise.log() - (1 - noise).log() + self.log_alpha) / self.BETA)
        else:
            value = torch.sigmoid(self.log_alpha)
        value = (value * (self.HIGH - self.LOW) + self.LOW).clamp(0, 1)
        return value.masked_fill(self.frozen, 0.0)

    def open_share(self) -> Tensor:
        """The expected number of open gates, differentiable."""
        chance = torch.sigmoid(self.log_alpha - self.BETA * math.log(-self.LOW / self.HIGH))
        return chance.masked_fill(self.frozen, 0.0).sum()


class PositionEncoder(nn.Module):
    """A learned bias for each head and bucket of distance; `gate` is there while it is being trained to zero."""

    def __init__(self, config: ModelConfig, *, gated: bool) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(config.heads, config.buckets))
        self.gate = Gate(config.heads) if gated else None

    def forward(self, places: Tensor) -> Tensor:
        """(H, T, n) from the buckets of distances (T, n)."""
        weight = self.weight if self.gate is None else self.weight * self.gate()[:, None]
        return functional.embedding(places, weight.T).permute(2, 0, 1)


class Layer(nn.Module):
    """Convolution, attention, SwiGLU; with a position encoder, soft anchors and an entropy gate where it has them."""

    def __init__(self, config: ModelConfig, index: int, *, gated: bool) -> None:
        super().__init__()
        d = config.width
        self.config: ModelConfig = config
        self.entropy: list[Tensor] = []  # of the last batch's passages and groups, where there is a gate
        self.norm = nn.RMSNorm(d, eps=EPSILON)
        self.conv = nn.Parameter(torch.zeros(3, config.taps, d))
        self.qkv = nn.Linear(d, 3 * d, bias=False)
        self.out = nn.Linear(d, d, bias=False)
        self.ffn_norm = nn.RMSNorm(d, eps=EPSILON)
        self.gate_up = nn.Linear(d, 2 * config.hidden, bias=False)
        self.down = nn.Linear(config.hidden, d, bias=False)
        self.pos_encoder: PositionEncoder | None = PositionEncoder(config, gated=gated) if config.buckets else None
        self.anchored = config.anchors > 0 and index < config.anchor_layers
        self._start(index)

    def _start(self, index: int) -> None:
        """Start as a copying layer, in the spirit of mimetic initialisation (arXiv 2305.09828).

        Equal query and key weights make a token attend to its like, or, in odd layers, to what followed its like (their
        keys see the token before); the output weights give back what the values took in.
        """
        d, width, heads = self.config.width, self.config.head, self.config.heads
        with torch.no_grad():
            taps = torch.tensor([[1.0, 0.2, 0.1, 0.1], [1.0, 0.2, 0.1, 0.1], [1.0, 0.6, 0.6, 0.6]])
            if index % 2:
                taps[1] = torch.tensor([0.1, 1.0, 0.2, 0.1])
            self.conv.copy_(taps[:, : self.config.taps, None] + 0.05 * torch.randn_like(self.conv))
            alike = torch.cat([nn.init.orthogonal_(torch.empty(width, d)) for _ in range(heads)]) * 1.2
            values = nn.init.orthogonal_(torch.empty(d, d))
            self.qkv.weight.copy_(torch.cat([alike, alike, values]) + 0.02 * torch.randn(3 * d, d))
            self.out.weight.copy_(0.1 * values.T)
            self.down.weight.zero_()

    def forward(self, x: Tensor, layout: Layout, anchors: Tensor | None, bound: float | None) -> Tensor:
        """The layer's output (R, d) for x (R, d): the rows of the passages, then those of each group of questions."""
        mixed = self._mixed(self.norm(x), layout)
        q, k, v = (part @ weight.T for part, weight in zip(mixed, self.qkv.weight.chunk(3), strict=True))
        q = q * self.config.head**-0.5
        if anchors is None or not self.anchored:
            bias = self._biases(layout, 0)
            attended = self._attended(q, k, v, None, layout, bias, bound)
        else:
            soft = self.qkv(self.norm(anchors))[..., self.config.width :].chunk(2, -1)
            attended = self._attended(q, k, v, soft, layout, self._biases(layout, anchors.shape[1]), bound)
        x = x + self.out(attended)
        gate, up = self.gate_up(self.ffn_norm(x)).chunk(2, -1)
        return x + self.down(functional.silu(gate) * up)

    def _mixed(self, h: Tensor, layout: Layout) -> list[Tensor]:
        """The convolved rows (R, d) of queries, keys and values; a question's first rows follow its passage's last."""
        b, d, back = layout.documents, h.shape[-1], self.config.taps - 1
        first, *asked = h.split(layout.rows)
        passage = first.view(b, layout.passage, d) * layout.present[..., None]
        parts = [functional.pad(passage, (0, 0, back, 0))]
        for part, (count, size) in zip(asked, layout.sizes, strict=True):
            tail = passage[:, None, -back:].expand(b, count, back, d)
            parts.append(torch.cat([tail, part.view(b, count, size, d)], 2).view(b * count, back + size, d))
        shifted = [
            torch.cat([part[:, back - tap : part.shape[1] - tap].reshape(-1, d) for part in parts])
            for tap in range(self.config.taps)
        ]
        return [sum((row * tap for row, tap in zip(shifted[1:], taps[1:], strict=True)), shifted[0] * taps[0])
                for taps in self.conv]  # fmt: skip

    def _biases(self, layout: Layout, anchors: int) -> list[Tensor]:
        """What is added to the scores of passages (B or 1, H or 1, P, m + P) and of each group of questions."""
        drop = layout.anchors - anchors
        p = layout.passage
        masks = [layout.causal[..., drop:]]
        masks += [own[:, drop:] + functional.pad(layout.before[..., drop:], (0, own.shape[0])) for own in layout.own]
        if self.pos_encoder is None or layout.places is None:
            return masks
        bias = self.pos_encoder(layout.places)
        parts = [bias[:, :p, :p], *(bias[:, p : p + size, : p + size] for _, size in layout.sizes)]
        return [mask + functional.pad(part, (anchors, 0)) for mask, part in zip(masks, parts, strict=True)]

    def _attended(
        self, q: Tensor, k: Tensor, v: Tensor, soft: tuple[Tensor, ...] | None, layout: Layout,
        biases: list[Tensor], bound: float | None,
    ) -> Tensor:  # fmt: skip
        """Attention of all rows (R, d)."""
        b, p, heads, width = layout.documents, layout.passage, self.config.heads, self.config.head
        parts = zip(*(part.split(layout.rows) for part in (q, k, v)), strict=True)
        pq, pk, pv = (part.view(b, p, heads, width).transpose(1, 2) for part in next(parts))
        if soft is not None:
            pk, pv = (torch.cat([lead.view(b, -1, heads, width).transpose(1, 2), part], 2)
                      for lead, part in zip(soft, (pk, pv), strict=True))  # fmt: skip
        extra = pk.shape[2] - p
        seen = [(counts + extra).clamp(min=2).log() for counts in layout.seen] if bound is not None else layout.seen
        weights = (pq @ pk.transpose(-1, -2) + biases[0]).softmax(-1)
        found = self._kept(weights, weights @ pv, seen[0][:, None], bound, 0)
        out = [found.transpose(1, 2).reshape(b * p, -1)]
        for group, ((count, size), bias) in enumerate(zip(layout.sizes, biases[1:], strict=True), 1):
            qq, qk, qv = (part.view(b, count, size, heads, width).permute(0, 3, 1, 2, 4) for part in next(parts))
            flat = qq.reshape(b, heads, count * size, width)
            first = (flat @ pk.transpose(-1, -2)).view(b, heads, count, size, -1)
            weights = (torch.cat([first, qq @ qk.transpose(-1, -2)], -1) + bias.unsqueeze(2)).softmax(-1)
            told, own = weights.split([first.shape[-1], size], -1)
            mixed = (told.reshape(b, heads, count * size, -1) @ pv).view(qq.shape) + own @ qv
            mixed = self._kept(weights, mixed, seen[group][:, None, None], bound, group)
            out.append(mixed.permute(0, 2, 3, 1, 4).reshape(-1, heads * width))
        return torch.cat(out)

    def _kept(self, weights: Tensor, mixed: Tensor, seen: Tensor, bound: float | None, group: int) -> Tensor:
        """`mixed` with the heads whose entropy over ln(visible keys) exceeds the bound at zero."""
        if bound is None:
            return mixed
        with torch.no_grad():
            entropy = torch.special.entr(weights).sum(-1) / seen
            self.entropy[group:] = [entropy]
        return mixed * (entropy <= bound)[..., None]


class Check(nn.Module):
    """The fidelity check of legacy: rates candidates by meaning, anchor and jump, and rescores them.

    For every token it compares, in `rank` dimensions, each of the best candidates with the hidden state (semantic
    consistency), with the running mean of what was read (anchor match) and with the previous hidden state (jump). Its
    verdict is the best candidate's rating; when that is poor, the hidden state is moved towards the candidates' rated
    mean and the logits are computed again.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        d, r = config.width, config.check_rank
        self.config = config
        self.state = nn.Parameter(torch.randn(r, d) * d**-0.5)
        self.candidate = nn.Parameter(torch.randn(r, d) * d**-0.5)
        self.back = nn.Parameter(torch.zeros(d, r))
        self.inner = nn.Linear(3 * r + 3, config.check_width)
        self.rating = nn.Linear(config.check_width, 3)
        self.weight = nn.Parameter(torch.zeros(3))

    def forward(
        self, y: Tensor, before: Tensor, read: Tensor, embedding: Tensor
    ) -> list[tuple[Tensor, Tensor, Tensor]]:
        """For each round: logits (N, V) after rescoring, candidates (N, K) and ratings (N, K, 3) as logits."""
        rounds: list[tuple[Tensor, Tensor, Tensor]] = []
        for _ in range(self.config.check_rounds + 1):
            logits = y @ embedding.T
            best, candidates = logits.topk(self.config.check_candidates, -1)
            total = logits.logsumexp(-1, keepdim=True)
            seen = embedding[candidates] @ self.candidate.T
            compared = [
                seen * (y @ self.state.T)[:, None],
                seen * (read @ self.candidate.T)[:, None],
                seen * (before @ self.state.T)[:, None],
            ]
            plain = torch.stack([best - total, best - best[:, :1], (best[:, :1] - total).expand_as(best)], -1)
            ratings = self.rating(functional.relu(self.inner(torch.cat([*compared, plain], -1))))
            change = functional.logsigmoid(ratings) @ self.weight
            rounds.append((logits.scatter_add(-1, candidates, change), candidates, ratings))
            share = (best + change).softmax(-1)
            y = y + ((share[:, None] @ seen)[:, 0]) @ self.back.T
        return rounds


class Decoder(nn.Module):
    """The whole model. `entropy_bound` of the config is applied when it is set."""

    def __init__(self, config: ModelConfig, *, gated: bool = False) -> None:
        super().__init__()
        self.config: ModelConfig = config
        self.embedding = nn.Embedding(config.vocabulary, config.width)
        nn.init.normal_(self.embedding.weight, std=0.12)
        self.anchors = None
        if config.anchors:
            self.anchors = nn.Parameter(torch.randn(len(config.domains), config.anchors, config.width) * 0.12)
        self.blocks = [Layer(config, index, gated=gated) for index in range(config.layers)]
        self.layers = nn.ModuleList(self.blocks)
        self.norm = nn.RMSNorm(config.width, eps=EPSILON)
        self.check = Check(config) if config.check_rank else None
        self.bound: float | None = config.entropy_bound

    def forward(self, batch: Batch) -> list[Tensor]:
        """The final normed hidden states: (B, P, d) of the passages, then (B, Q, L, d) of each group of questions."""
        d = self.config.width
        anchors = None if self.anchors is None else self.anchors[batch.domains]
        layout = Layout(batch, self.config.buckets, self.config.anchors)
        parts = [batch.passages, *(part.tokens for part in batch.questions)]
        x = self.embedding(torch.cat([part.flatten() for part in parts]))
        for layer in self.blocks:
            x = layer(x, layout, anchors, self.bound)
        rows = self.norm(x).split([part.numel() for part in parts])
        return [row.view(*part.shape, d) for row, part in zip(rows, parts, strict=True)]

    def logits(self, hidden: Tensor) -> Tensor:
        """Over the vocabulary, from hidden states."""
        return hidden @ self.embedding.weight.T
