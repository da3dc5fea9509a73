"""The decoder in numpy: Llama's layers as SmolLM2 has them.

Each layer adds attention (rotary positions, several query heads to one key head) and a gated feed-forward network to
the stream, each over a root-mean-square norm; the output layer is the embedding again. Weights are dequantised once, as
float32: numpy multiplies nothing smaller quickly. A prompt is read in chunks, so that no matrix grows with its square.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from dataclasses import dataclass

import numpy as np

from ...errors import ConfigError
from ..safetensors import Array
from ..sampler import Sampler, Sampling
from .gguf import Gguf
from .outcome import Outcome
from .prefix import LastPrompt, State

CHUNK = 128  # tokens of a prompt that are read at once


@dataclass(frozen=True, slots=True)
class LlamaConfig:
    """Sizes. `heads` query heads share `key_heads` keys; `context` is how many positions the model was trained on."""

    layers: int
    width: int
    heads: int
    key_heads: int
    hidden: int
    vocabulary: int
    context: int
    rope_base: float = 100_000.0
    epsilon: float = 1e-5

    @property
    def head(self) -> int:
        """A head's width."""
        return self.width // self.heads

    @classmethod
    def of(cls, file: Gguf) -> LlamaConfig:
        """What a model's file says; raises ConfigError naming the key that is wrong."""
        if file.metadata.get("general.architecture") != "llama":
            raise ConfigError("must be 'llama'", key="general.architecture", file=str(file.path))
        heads = file.number("llama.attention.head_count")
        config = cls(
            layers=file.number("llama.block_count", most=1024),
            width=file.number("llama.embedding_length"),
            heads=heads,
            key_heads=file.number("llama.attention.head_count_kv", most=heads),
            hidden=file.number("llama.feed_forward_length"),
            vocabulary=file.number("llama.vocab_size"),
            context=file.number("llama.context_length"),
            rope_base=file.number("llama.rope.freq_base", float, most=1e9),
            epsilon=file.number("llama.attention.layer_norm_rms_epsilon", float, least=0, most=1),
        )
        if config.width % (2 * heads) or heads % config.key_heads:
            raise ConfigError("does not divide the width and the heads", key="llama.attention", file=str(file.path))
        if file.number("llama.rope.dimension_count") != config.head:
            raise ConfigError("must be a head's width", key="llama.rope.dimension_count", file=str(file.path))
        return config


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer's weights, each matrix (outputs, inputs); q, k and v in one, gate and up in one."""

    attention_norm: Array
    qkv: Array
    out: Array
    ffn_norm: Array
    gate_up: Array
    down: Array


class Llama:
    """The model. Its weights never change, and any number of states can be gone on with in turns, by one thread."""

    at_once = 4  # sequences

    def __init__(self, config: LlamaConfig, embedding: Array, layers: Sequence[Layer], norm: Array) -> None:
        """`layers` with the rows of q and k in `halved` order."""
        self.config, self.embedding, self.layers, self.norm = config, embedding, tuple(layers), norm
        self._last = LastPrompt(CHUNK)
        steps = np.arange(0, config.head, 2, dtype=np.float64) / config.head
        angles = np.outer(np.arange(config.context), config.rope_base**-steps)
        self._cos, self._sin = np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)

    @classmethod
    def of(cls, file: Gguf) -> Llama:
        """The model in a file; raises ConfigError where a tensor is missing, of another shape, or too many."""
        config = LlamaConfig.of(file)
        width, keys = config.width, config.key_heads * config.head
        used = {"token_embd.weight", "output_norm.weight"}

        def layer(index: int) -> Layer:
            def read(name: str, *shape: int) -> Array:
                used.add(full := f"blk.{index}.{name}.weight")
                return file.tensor(full, shape)

            query = halved(read("attn_q", width, width), config.heads)
            key = halved(read("attn_k", keys, width), config.key_heads)
            return Layer(
                read("attn_norm", width),
                np.concatenate((query, key, read("attn_v", keys, width))),
                read("attn_output", width, width),
                read("ffn_norm", width),
                np.concatenate((read("ffn_gate", config.hidden, width), read("ffn_up", config.hidden, width))),
                read("ffn_down", width, config.hidden),
            )

        layers = [layer(index) for index in range(config.layers)]
        if unknown := sorted(file.tensors.keys() - used):
            raise ConfigError(f"tensor {unknown[0]!r} is no part of this kind of model", file=str(file.path))
        embedding = file.tensor("token_embd.weight", (config.vocabulary, width))
        return cls(config, embedding, layers, file.tensor("output_norm.weight", (width,)))

    def start(self, rows: int) -> State:
        """A state before its first token, with room for `rows` of them; memory is taken as it is filled."""
        shape = (self.config.layers, self.config.key_heads, rows, self.config.head)
        return State(np.empty(shape, np.float32), np.empty(shape, np.float32))

    def tokens(self, prompt: Sequence[int], sampling: Sampling, room: int, outcome: Outcome) -> Generator[int | None]:
        """Up to `room` tokens that follow `prompt`, with a None for each chunk of it read before the last."""
        state, sampler = self.start(len(prompt) + room), Sampler(sampling)
        self._last.fill(state, prompt)
        outcome.cached_tokens = state.length
        while len(prompt) - state.length > CHUNK:
            self.read(prompt[state.length : state.length + CHUNK], state)
            yield None
        logits = self.forward(prompt[state.length :], state)
        self._last.keep(state, prompt)
        for left in reversed(range(room)):
            token = sampler.choose(logits)
            yield token
            if left:
                logits = self.forward((token,), state)

    def forward(self, tokens: Sequence[int], state: State) -> Array:
        """Read `tokens`, at least one, into `state`; the logits (V,) of what follows the last."""
        return self.embedding @ self._normed(self.read(tokens, state)[-1], self.norm)

    def read(self, tokens: Sequence[int], state: State) -> Array:
        """Read `tokens`, at least one, into `state`; the stream (T, width) after all layers, of the last chunk."""
        stream = self.embedding[:0]
        # exp() of a large gate is infinite, and one divided by it the 0 that is meant.
        with np.errstate(over="ignore"):
            for start in range(0, len(tokens), CHUNK):
                stream = self._chunk(tokens[start : start + CHUNK], state)
        return stream

    def _chunk(self, tokens: Sequence[int], state: State) -> Array:
        """The stream (T, width) after all layers."""
        stream = self.embedding[list(tokens)]
        for index, layer in enumerate(self.layers):
            qkv = self._normed(stream, layer.attention_norm) @ layer.qkv.T
            stream += self._attention(qkv, state.keys[index], state.values[index], state.length) @ layer.out.T
            both = self._normed(stream, layer.ffn_norm) @ layer.gate_up.T
            gate, up = np.split(both, 2, axis=1)
            gate /= 1 + np.exp(-gate)
            gate *= up
            stream += gate @ layer.down.T
        state.length += len(tokens)
        return stream

    def _attention(self, qkv: Array, keys: Array, values: Array, before: int) -> Array:
        """What T tokens after `before` see, (T, width); their keys and values are put into the state's rows."""
        config = self.config
        count, end, share = len(qkv), before + len(qkv), config.heads // config.key_heads
        # Heads first: (heads, T, head)
        heads = qkv.reshape(count, -1, config.head).swapaxes(0, 1)
        turned = self._rotated(heads[: config.heads + config.key_heads], before)
        keys[:, before:end] = turned[config.heads :]
        values[:, before:end] = heads[config.heads + config.key_heads :]
        queries = turned[: config.heads].reshape(config.key_heads, share * count, config.head)
        queries *= 1 / math.sqrt(config.head)
        scores = queries @ keys[:, :end].swapaxes(1, 2)
        if count > 1:
            own = scores.reshape(config.key_heads, share, count, end)[..., before:]
            own[:, :, ~np.tri(count, dtype=bool)] = -np.inf
        scores -= scores.max(axis=-1, keepdims=True)
        np.exp(scores, out=scores)
        scores /= scores.sum(axis=-1, keepdims=True)
        seen = scores @ values[:, :end]
        return seen.reshape(config.heads, count, config.head).swapaxes(0, 1).reshape(count, -1)

    def _rotated(self, heads: Array, before: int) -> Array:
        """Queries and keys (heads, T, head) turned by their positions' angles."""
        places = slice(before, before + heads.shape[1])
        cos, sin = self._cos[places], self._sin[places]
        first, second = np.split(heads, 2, axis=-1)
        return np.concatenate((first * cos - second * sin, first * sin + second * cos), axis=-1)

    def _normed(self, stream: Array, weight: Array) -> Array:
        mean = np.square(stream).mean(axis=-1, keepdims=True)
        return stream / np.sqrt(mean + np.float32(self.config.epsilon)) * weight


def halved(weight: Array, heads: int) -> Array:
    """A file's q or k (heads · head, width) with the even rows of each head before the odd ones.

    Neighbouring rows are turned together there. The products stay the same, and turning needs no strided access.
    """
    return weight.reshape(heads, -1, 2, weight.shape[1]).swapaxes(1, 2).reshape(weight.shape)
