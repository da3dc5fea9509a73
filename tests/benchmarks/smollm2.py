"""SmolLM2's decoder in numpy beside PyTorch eager on the same weights: reading a prompt, and one token after another.

    python tests/benchmarks/smollm2.py

Both in one run, in turns, in CPU seconds, one thread each. Without the fetched file the weights are random, of the same
sizes. The ratios are of times, PyTorch's over numpy's: above 1, numpy is quicker.
"""

import os

for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import resource  # noqa: E402
import statistics  # noqa: E402
import time  # noqa: E402
from collections.abc import Callable  # noqa: E402

import numpy as np  # noqa: E402
import torch  # noqa: E402

from zlclient.engine.smollm2 import store  # noqa: E402
from zlclient.engine.smollm2.gguf import Gguf  # noqa: E402
from zlclient.engine.smollm2.llama import Layer, Llama, LlamaConfig  # noqa: E402

SIZES = LlamaConfig(30, 576, 9, 3, 1536, 49_152, 8_192)
PROMPT, FURTHER, REPEATS = 256, 16, 5


def random_model(config: LlamaConfig) -> Llama:
    rng = np.random.default_rng(0)

    def matrix(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape, np.float32) * np.float32(0.03)

    keys, ones = 2 * config.key_heads * config.head, np.ones(config.width, np.float32)
    layers = [
        Layer(
            ones, matrix(config.width + keys, config.width), matrix(config.width, config.width),
            ones, matrix(2 * config.hidden, config.width), matrix(config.width, config.hidden),
        )
        for _ in range(config.layers)
    ]  # fmt: skip
    return Llama(config, matrix(config.vocabulary, config.width), layers, ones)


class Eager:
    """The same forward pass with PyTorch's own operations; keys and values are joined as they come."""

    def __init__(self, model: Llama) -> None:
        self.config = model.config
        share = torch.from_numpy
        self.embedding, self.norm = share(model.embedding), share(model.norm)
        self.layers = [[share(getattr(layer, name)) for name in Layer.__slots__] for layer in model.layers]
        self.cos, self.sin = share(model._cos), share(model._sin)
        self.cache: list[tuple[torch.Tensor, torch.Tensor]] = []

    def start(self) -> None:
        self.cache = []

    @torch.inference_mode()
    def forward(self, tokens: list[int]) -> torch.Tensor:
        config, functional = self.config, torch.nn.functional
        before = self.cache[0][0].shape[1] if self.cache else 0
        cos, sin = self.cos[before : before + len(tokens)], self.sin[before : before + len(tokens)]

        def turned(heads: torch.Tensor) -> torch.Tensor:
            first, second = heads.chunk(2, -1)
            return torch.cat((first * cos - second * sin, first * sin + second * cos), -1)

        fresh: list[tuple[torch.Tensor, torch.Tensor]] = []
        stream = self.embedding[tokens]
        for index, (attention_norm, qkv, out, ffn_norm, gate_up, down) in enumerate(self.layers):
            normed = functional.rms_norm(stream, (config.width,), attention_norm, config.epsilon)
            heads = functional.linear(normed, qkv).view(len(tokens), -1, config.head).transpose(0, 1)
            query, key = turned(heads[: config.heads]), turned(heads[config.heads : -config.key_heads])
            value = heads[-config.key_heads :]
            if self.cache:
                key, value = torch.cat((self.cache[index][0], key), 1), torch.cat((self.cache[index][1], value), 1)
            fresh.append((key, value))
            seen = functional.scaled_dot_product_attention(
                query[None], key[None], value[None], is_causal=len(tokens) > 1, enable_gqa=True
            )
            stream = stream + functional.linear(seen[0].transpose(0, 1).flatten(1), out)
            normed = functional.rms_norm(stream, (config.width,), ffn_norm, config.epsilon)
            gate, up = functional.linear(normed, gate_up).chunk(2, -1)
            stream = stream + functional.linear(functional.silu(gate) * up, down)
        self.cache = fresh
        return self.embedding @ functional.rms_norm(stream[-1], (config.width,), self.norm, config.epsilon)


def seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def peak() -> float:
    """MiB of memory, at most so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    fetched = store.is_fetched()
    before, start = peak(), time.process_time()
    model = Llama.of(Gguf(store.model_path())) if fetched else random_model(SIZES)
    took = time.process_time() - start
    print(
        f"weights: {'the fetched file' if fetched else 'random'}; {took:.2f} CPU s and {peak() - before:.0f} MiB at most"
    )
    peer, tokens = Eager(model), [(at * 7919) % SIZES.vocabulary for at in range(PROMPT)]
    times: dict[str, list[float]] = {name: [] for name in ("read", "peer_read", "write", "peer_write")}
    for _ in range(REPEATS):
        state = model.start(PROMPT + FURTHER)
        peer.start()
        times["read"].append(seconds(lambda state=state: model.forward(tokens, state)))
        times["peer_read"].append(seconds(lambda: peer.forward(tokens)))
        times["write"].append(seconds(lambda state=state: [model.forward([5], state) for _ in range(FURTHER - 1)]))
        times["peer_write"].append(seconds(lambda: [peer.forward([5]) for _ in range(FURTHER - 1)]))
        difference = np.abs(model.forward([5], state) - peer.forward([5]).numpy()).max()
        assert difference < 1e-2, f"the two differ by {difference}"
    for name, count in (("read", PROMPT), ("write", FURTHER - 1)):
        ours, theirs = statistics.median(times[name]), statistics.median(times[f"peer_{name}"])
        ratios = sorted(b / a for a, b in zip(times[name], times[f"peer_{name}"], strict=True))
        what = f"prompt of {count}" if name == "read" else f"{count} tokens"
        print(
            f"{what:14} numpy {count / ours:6.1f} tokens/s, PyTorch {count / theirs:6.1f}; "
            f"ratio {theirs / ours:.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})"
        )


if __name__ == "__main__":
    main()
