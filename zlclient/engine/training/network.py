"""The decoder in PyTorch, for training; `engine/model.py` runs the same tensors in numpy.

Masks are explicit, so that many questions over one passage are trained at once, each seeing only the passage and
itself.
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
LONGEST = 4096


@dataclass(frozen=True, slots=True)
class Batch:
    """Padded sequences.

    tokens (B, T); places (B, T), whose differences are the distances; mask (B, T, T), true where a key is seen; weights
    (B, T) of the loss of the token at t + 1; domains (B,); decisions (B, T), true before an answer's first token.
    """

    tokens: Tensor
    places: Tensor
    mask: Tensor
    weights: Tensor
    domains: Tensor
    decisions: Tensor


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

    def forward(self, buckets: Tensor) -> Tensor:
        """(B, H, T, T) from the buckets of distances (B, T, T)."""
        weight = self.weight if self.gate is None else self.weight * self.gate()[:, None]
        return functional.embedding(buckets, weight.T).permute(0, 3, 1, 2)


def buckets_of(places: Tensor, buckets: int) -> Tensor:
    """The buckets (B, T, T) of the distances between places (B, T)."""
    table = torch.tensor([bucket_of(distance, buckets) for distance in range(LONGEST)], dtype=torch.int32)
    places = places.int()
    return table[(places[:, :, None] - places[:, None, :]).clamp_(0, LONGEST - 1)]


class Layer(nn.Module):
    """Convolution, attention, SwiGLU; with a position encoder, soft anchors and an entropy gate where it has them."""

    def __init__(self, config: ModelConfig, index: int, *, gated: bool) -> None:
        super().__init__()
        d = config.width
        self.config: ModelConfig = config
        self.entropy: Tensor | None = None  # over ln(visible keys) of the last batch, where there is a gate
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

    def forward(
        self, x: Tensor, batch: Batch, buckets: Tensor | None, anchors: Tensor | None, bound: float | None
    ) -> Tensor:
        """The layer's output (B, T, d) for x (B, T, d)."""
        b, t, d = x.shape
        heads, width = self.config.heads, self.config.head
        h = self.norm(x)
        shifted = torch.stack([functional.pad(h, (0, 0, tap, 0))[:, :t] for tap in range(self.config.taps)])
        parts = [
            (torch.einsum("kbtd,kd->btd", shifted, taps) @ weight.T).view(b, t, heads, width).transpose(1, 2)
            for taps, weight in zip(self.conv, self.qkv.weight.chunk(3), strict=True)
        ]
        q, k, v = parts
        mask = batch.mask[:, None]
        bias = self.pos_encoder(buckets) if self.pos_encoder is not None else None
        if anchors is not None and self.anchored:
            soft = self.qkv(self.norm(anchors))[..., d:].view(b, -1, 2, heads, width).permute(2, 0, 3, 1, 4)
            k, v = torch.cat([soft[0], k], 2), torch.cat([soft[1], v], 2)
            mask = functional.pad(mask, (anchors.shape[1], 0), value=True)
            bias = functional.pad(bias, (anchors.shape[1], 0)) if bias is not None else None
        if bias is None and bound is None:
            mixed = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        else:
            mixed = self._attended(q, k, v, mask, bias, bound)
        x = x + self.out(mixed.transpose(1, 2).reshape(b, t, d))
        gate, up = self.gate_up(self.ffn_norm(x)).chunk(2, -1)
        return x + self.down(functional.silu(gate) * up)

    def _attended(
        self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor, bias: Tensor | None, bound: float | None
    ) -> Tensor:
        scores = (q * self.config.head**-0.5) @ k.transpose(-1, -2)
        scores = scores + torch.where(mask, 0.0, HIDDEN) if bias is None else scores + bias
        weights = (scores if bias is None else scores.masked_fill_(~mask, HIDDEN)).softmax(-1)
        if bound is None:
            return weights @ v
        with torch.no_grad():
            entropy = torch.special.entr(weights).sum(-1) / mask.sum(-1).clamp(min=2).log()
            self.entropy = entropy
        return (weights @ v) * (entropy <= bound)[..., None]


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

    def forward(self, batch: Batch) -> Tensor:
        """The final normed hidden states (B, T, d)."""
        x = self.embedding(batch.tokens)
        buckets = buckets_of(batch.places, self.config.buckets) if self.config.buckets else None
        anchors = None if self.anchors is None else self.anchors[batch.domains]
        for layer in self.blocks:
            x = layer(x, batch, buckets, anchors, self.bound)
        return self.norm(x)

    def logits(self, hidden: Tensor) -> Tensor:
        """Over the vocabulary, from hidden states."""
        return hidden @ self.embedding.weight.T
