"""Tokens a second of the numpy engine beside PyTorch eager with the same weights, in one run, one thread each.

    python tests/benchmarks/engine.py

Both read the same prompts and then generate one token at a time; PyTorch keeps its keys and values as well, in the way
its users write it. Rounds alternate; the best of them counts.
"""

import os

for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import time  # noqa: E402

import torch  # noqa: E402
from torch.nn import functional  # noqa: E402

from zlclient.engine.checkpoint import Checkpoint, load_shipped  # noqa: E402
from zlclient.engine.evaluation.speed import make_prompts  # noqa: E402
from zlclient.engine.model import Model  # noqa: E402

ROUNDS, OUTPUT = 5, 64


class Eager:
    """Auto's decoder in PyTorch: convolution, attention with a cache and the entropy gate, SwiGLU."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self.config = checkpoint.config
        self.w = {name: torch.tensor(tensor) for name, tensor in checkpoint.tensors.items()}
        c = self.config
        soft = self.norm(self.w["anchors"][0])
        self.soft = []
        for layer in range(c.anchor_layers):
            kv = (soft * self.w[f"layers.{layer}.norm.weight"]) @ self.w[f"layers.{layer}.qkv.weight"][c.width :].T
            self.soft.append(kv.view(c.anchors, 2, c.heads, c.head).permute(1, 2, 0, 3))

    @staticmethod
    def norm(x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)

    def start(self):
        c = self.config
        kv = [
            self.soft[layer] if layer < c.anchor_layers else torch.zeros(2, c.heads, 0, c.head)
            for layer in range(c.layers)
        ]
        return [kv, [torch.zeros(c.taps - 1, c.width) for _ in range(c.layers)]]

    @torch.no_grad()
    def forward(self, tokens, state):
        c, w = self.config, self.w
        x = w["embedding.weight"][torch.tensor(tokens)]
        t = len(tokens)
        for layer in range(c.layers):
            p = f"layers.{layer}."
            h = self.norm(x) * w[p + "norm.weight"]
            joined = torch.cat([state[1][layer], h])
            state[1][layer] = joined[-(c.taps - 1) :]
            shifted = torch.stack([joined[c.taps - 1 - tap : c.taps - 1 - tap + t] for tap in range(c.taps)])
            mixed = torch.einsum("ktd,pkd->ptd", shifted, w[p + "conv"])
            q, k, v = (
                torch.bmm(mixed, w[p + "qkv.weight"].view(3, c.width, c.width).transpose(1, 2))
                .view(3, t, c.heads, c.head)
                .transpose(1, 2)
            )
            kv = state[0][layer] = torch.cat([state[0][layer], torch.stack([k, v])], 2)
            n = kv.shape[2]
            scores = q @ kv[0].transpose(1, 2) * c.head**-0.5
            if t > 1:
                scores = scores.masked_fill(torch.ones(t, n, dtype=torch.bool).triu(n - t + 1), float("-inf"))
            weights = scores.softmax(-1)
            counts = torch.arange(n - t + 1, n + 1).clamp(min=2).log()
            gate = torch.special.entr(weights).sum(-1) <= (c.entropy_bound or 9.0) * counts
            attended = (weights @ kv[1]) * gate[..., None]
            x = x + attended.transpose(0, 1).reshape(t, c.width) @ w[p + "out.weight"].T
            gate, up = ((self.norm(x) * w[p + "ffn_norm.weight"]) @ w[p + "gate_up.weight"].T).chunk(2, -1)
            x = x + (functional.silu(gate) * up) @ w[p + "down.weight"].T
        return (self.norm(x[-1:]) * w["norm.weight"]) @ w["embedding.weight"].T


def timed(forward, start, tokens) -> tuple[float, float, int]:
    state = start()
    begun = time.thread_time()
    logits = forward(tokens, state)
    read = time.thread_time()
    token = int(logits.argmax())
    for _ in range(OUTPUT):
        token = int(forward([token], state).argmax())
    return read - begun, time.thread_time() - read, token


def main() -> None:
    torch.set_num_threads(1)
    checkpoint = load_shipped("auto")
    model, eager = Model(checkpoint), Eager(checkpoint)
    prompts = make_prompts(model.tokenizer, 3, lengths=(64, 128, 256, 512))
    best = {"numpy": [[9.0, 9.0] for _ in prompts], "torch": [[9.0, 9.0] for _ in prompts]}
    same = 0
    for _ in range(ROUNDS):
        for at, tokens in enumerate(prompts):
            last = []
            for name, forward, start in (
                ("numpy", lambda t, s: model.forward(t, s).logits, model.start),
                ("torch", eager.forward, eager.start),
            ):
                prefill, decode, token = timed(forward, start, tokens)
                best[name][at] = [min(best[name][at][0], prefill), min(best[name][at][1], decode)]
                last.append(token)
            same += last[0] == last[1]
    read = sum(map(len, prompts))
    rates = {
        name: (read / sum(prefill for prefill, _ in times), OUTPUT * len(prompts) / sum(decode for _, decode in times))
        for name, times in best.items()
    }
    for name, (prefill, decode) in rates.items():
        print(f"{name:<6} prefill {prefill:8.0f} tokens/s   decode {decode:7.0f} tokens/s")
    print(
        f"numpy / torch: prefill {rates['numpy'][0] / rates['torch'][0]:.2f}, decode {rates['numpy'][1] / rates['torch'][1]:.2f}"
    )
    print(f"the same last token in {same} of {ROUNDS * len(prompts)}")


if __name__ == "__main__":
    main()
