"""The decoder in numpy: tokens in, logits of the next token out.

    model = Model(load_shipped("auto"))
    state = model.start(domain="finance")
    step = model.forward(tokens, state)        # reads `tokens` into `state`, chunk by chunk
    steps = model.decode([7, 9], [state, another])   # one token for each of several sequences

A chunk goes through all layers before the next one starts, so memory beyond the stored keys and values is bounded by
`CHUNK` rows however long the prompt is. What else runs never changes a bit of a sequence: `forward` computes it alone,
and `decode` gives it the same bits in any company.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from .check import FidelityCheck
from .checkpoint import Checkpoint
from .decoding import Decoder, blocked
from .layers import HIDDEN, Layer, PositionBias, attend, convolve, feed_forward, rms_norm
from .safetensors import Array
from .state import State, Step

CHUNK = 64
LONGEST = 196_608  # positions of one sequence; the stored keys and values of one that long take 604 MB
SCORES = CHUNK * 16_384  # of one head at a time: 4 MB
Trace = Callable[[str, tuple[int, ...]], None]


class Model:
    """One checkpoint, ready to run, from several threads: each sequence's state is its own."""

    def __init__(self, checkpoint: Checkpoint, *, check_prompt: bool = True) -> None:
        """`check_prompt` lets legacy's check loop rate the prompt's tokens as well, which is what it was made to do;
        evaluation turns it off to show what it costs."""
        self.config, self.tokenizer = checkpoint.config, checkpoint.tokenizer
        self.sha256, self.check_prompt = checkpoint.sha256, check_prompt
        tensors, config = checkpoint.tensors, checkpoint.config
        self.embedding = tensors["embedding.weight"]
        self._head = blocked(self.embedding)
        self._norm = tensors["norm.weight"]
        scale = np.array([config.head**-0.5, 1, 1], np.float32)[:, None, None]
        self._layers: list[Layer] = []
        for index in range(config.layers):
            name = f"layers.{index}."
            position = tensors.get(f"{name}pos_encoder.weight")
            self._layers.append(
                Layer(
                    conv=tensors[f"{name}conv"] * tensors[f"{name}norm.weight"],
                    qkv=_transposed(tensors[f"{name}qkv.weight"].reshape(3, config.width, config.width) * scale),
                    out=_transposed(tensors[f"{name}out.weight"]),
                    gate_up=_transposed(tensors[f"{name}gate_up.weight"] * tensors[f"{name}ffn_norm.weight"]),
                    down=_transposed(tensors[f"{name}down.weight"]),
                    bias=None if position is None else PositionBias(position, CHUNK),
                )
            )
        self._anchors = [self._anchor_rows(domain, tensors) for domain in range(len(config.domains))]
        self._check = FidelityCheck(config, tensors, self.embedding) if config.check_rank else None
        self._decoder = Decoder(config, self.embedding, self._norm, self._head, self._layers, self._check)
        self._triangle = np.triu(np.full((CHUNK, CHUNK), HIDDEN, np.float32), 1)

    def start(self, domain: str = "", *, limit: int | None = None) -> State:
        """A fresh state; `domain` switches that domain's anchors on, an unknown one the first domain's.

        Its memory is never more than `limit` tokens need, if there is a limit.
        """
        domains = self.config.domains
        index = domains.index(domain) if domain in domains else 0
        state = State.empty(self.config, self._anchors[index] if self._anchors else [], index, min(256, limit or 256))
        state.limit = limit
        return state

    @property
    def position_bytes(self) -> int:
        """Bytes of keys and values that one token takes in all layers."""
        return self.config.layers * self.config.width * 2 * 4

    def forward(self, tokens: Sequence[int], state: State, trace: Trace | None = None) -> Step:
        """Read `tokens` (at least one) into `state`; the logits of what follows them.

        Raises:
            ValueError: there are no tokens, or the sequence would be longer than LONGEST.
        """
        if not tokens or state.length + len(tokens) > LONGEST:
            raise ValueError(f"a sequence has 1 to {LONGEST} tokens")
        state.reserve(len(tokens))
        step: Step | None = None
        for at in range(0, len(tokens), CHUNK):
            chunk = tokens[at : at + CHUNK]
            step = self._chunk(chunk, state, at + CHUNK >= len(tokens), trace or _untraced)
        assert step is not None
        return step

    def decode(self, tokens: Sequence[int], states: Sequence[State]) -> list[Step]:
        """Read one token into each of several different states; what follows each, bit for bit as if it were alone.

        Its steps are within rounding of `forward`'s, which adds in another order.

        Raises:
            ValueError: there are not as many tokens as states, or a sequence would be longer than LONGEST.
        """
        if len(tokens) != len(states) or any(state.length >= LONGEST for state in states):
            raise ValueError(f"one token for each state, which holds at most {LONGEST}")
        return self._decoder(tokens, states) if tokens else []

    def _chunk(self, tokens: Sequence[int], state: State, last: bool, trace: Trace) -> Step:
        embedded = self.embedding[list(tokens)]
        x = embedded
        for index, layer in enumerate(self._layers[:-1]):
            x = self._block(index, layer, x, state, trace)
        # What follows the last block is wanted of every token where each is checked, else only of the prompt's last.
        kept = len(x) if self._check is not None else int(last)
        x = self._block(len(self._layers) - 1, self._layers[-1], x, state, trace, kept)
        state.length += len(tokens)
        if self._check is None:
            return Step(self._logits(self._final(x[-1:]), trace)[0]) if last else Step(np.empty(0, np.float32))
        return self._checked(self._check, embedded, x, state, last, trace)

    def _block(self, index: int, layer: Layer, x: Array, state: State, trace: Trace, kept: int | None = None) -> Array:
        """One block over the rows x: keys and values of all, what follows of the last `kept` (all, unless told)."""
        config, rows = self.config, len(x)
        heads, width, d = config.heads, config.head, config.width
        kept, tail = rows if kept is None else kept, config.taps - 1
        h = np.concatenate([state.tails[index], rms_norm(x)])
        state.tails[index] = h[-tail:]
        mixed = convolve(h, layer.conv[1:])
        trace(f"layers.{index}.conv", mixed.shape)
        k, v = (mixed @ layer.qkv[1:]).reshape(2, rows, heads, width).transpose(0, 2, 1, 3)
        first = state.leads[index] + state.length
        keys = first + rows
        stored = state.stored[index]
        stored[:, first:keys, width:], stored[:, first:keys, :width] = k, v
        trace(f"layers.{index}.keys_values", (2, rows, d))
        if not kept:
            return x[:0]
        x = x[-kept:]
        q = (convolve(h[-kept - tail :], layer.conv[:1]) @ layer.qkv[:1]).reshape(kept, heads, width).transpose(1, 0, 2)
        trace(f"layers.{index}.queries", (kept, d))
        bias = None
        if layer.bias is not None:
            bias = layer.bias(kept, keys)
            trace(f"layers.{index}.pos_encoder", bias.shape)
        attended, is_open = self._attend(q, stored[:, :keys], bias)
        trace(f"layers.{index}.attention", attended.shape)
        if is_open is not None:
            state.gated[0] += int(is_open.size - np.count_nonzero(is_open))
            state.gated[1] += is_open.size
            trace(f"layers.{index}.entropy_gate", is_open.shape)
        x = x + attended.transpose(1, 0, 2).reshape(kept, d) @ layer.out
        x = x + feed_forward(rms_norm(x), layer.gate_up, layer.down)
        trace(f"layers.{index}.feed_forward", x.shape)
        return x

    def _attend(self, q: Array, stored: Array, bias: Array | None) -> tuple[Array, Array | None]:
        """Attention of a chunk, in slices of its queries where so many keys would make the scores large."""
        rows, keys, bound = int(q.shape[1]), int(stored.shape[1]), self.config.entropy_bound
        counts = np.arange(keys - rows + 1, keys + 1) if bound is not None else None
        size = max(1, SCORES // keys)
        found: list[tuple[Array, Array | None]] = []
        for at in range(0, rows, size):
            part = slice(at, min(at + size, rows))
            found.append(
                attend(
                    q[:, part], stored, self._triangle[part, :rows], bound=bound,
                    bias=None if bias is None else bias[:, part], counts=None if counts is None else counts[part],
                )
            )  # fmt: skip
        if len(found) == 1:
            return found[0]
        opened = [is_open for _, is_open in found if is_open is not None]
        return np.concatenate([part for part, _ in found], 1), np.concatenate(opened, 1) if opened else None

    def _final(self, x: Array) -> Array:
        return rms_norm(x) * self._norm

    def _logits(self, y: Array, trace: Trace) -> Array:
        logits = self._product(y)
        trace("head", logits.shape)
        return logits

    def _product(self, y: Array) -> Array:
        return y @ self._head[:, : self.config.vocabulary]

    def _checked(self, check: FidelityCheck, embedded: Array, x: Array, state: State, last: bool, trace: Trace) -> Step:
        """Legacy: rate every token of the chunk; only the one that is to be followed gets further rounds."""
        y = self._final(x)
        sums = state.read + embedded.cumsum(0)
        counts = np.arange(state.length - len(x) + 1, state.length + 1, dtype=np.float32)[:, None]
        before = np.concatenate([state.before[None], y[:-1]])
        state.before, state.read = y[-1], sums[-1]
        if self.check_prompt and len(x) > 1:
            rows = slice(0, len(x) - 1 if last else len(x))
            logits = self._logits(y[rows], trace)
            check(y[rows], logits, before[rows], sums[rows] / counts[rows], None)
            trace("check", logits.shape)
        if not last:
            return Step(np.empty(0, np.float32))
        logits = self._logits(y[-1:], trace)
        logits, verdict, further = check(y[-1:], logits, before[-1:], sums[-1:] / counts[-1:], self._product)
        trace("check", logits.shape)
        return Step(logits[0], float(verdict[0]), int(further[0]))

    def _anchor_rows(self, domain: int, tensors: Mapping[str, Array]) -> list[Array]:
        """The values and keys (H, m, 2w) that a domain's soft tokens have in each of the lowest layers."""
        config = self.config
        if not config.anchors:
            return []
        soft = rms_norm(tensors["anchors"][domain])
        rows: list[Array] = []
        for index in range(config.anchor_layers):
            name = f"layers.{index}."
            weight = tensors[f"{name}qkv.weight"] * tensors[f"{name}norm.weight"]
            kv = (soft @ weight[config.width :].T).reshape(config.anchors, 2, config.heads, config.head)
            keys, values = kv[:, 0].transpose(1, 0, 2), kv[:, 1].transpose(1, 0, 2)
            rows.append(np.concatenate([values, keys], -1))
        return rows


def _untraced(name: str, shape: tuple[int, ...]) -> None:
    pass


def _transposed(matrix: Array) -> Array:
    return np.ascontiguousarray(matrix.swapaxes(-1, -2))
