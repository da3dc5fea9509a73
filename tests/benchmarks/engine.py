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
from zlclient.engine.evaluation.intervals import paired_ratio, total  # noqa: E402
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


def timed(read, step, start, tokens) -> tuple[float, float, int]:
    state = start()
    begun = time.thread_time()
    token = int(read(tokens, state).argmax())
    done = time.thread_time()
    for _ in range(OUTPUT):
        token = int(step(token, state).argmax())
    return done - begun, time.thread_time() - done, token


def main() -> None:
    torch.set_num_threads(1)
    checkpoint = load_shipped("auto")
    model, eager = Model(checkpoint), Eager(checkpoint)
    prompts = make_prompts(model.tokenizer, 4, lengths=(64, 128, 256, 512))
    sides = {
        "numpy": (
            lambda tokens, state: model.forward(tokens, state).logits,
            lambda token, state: model.decode([token], [state])[0].logits,
            model.start,
        ),
        "torch": (eager.forward, lambda token, state: eager.forward([token], state), eager.start),
    }
    best = {name: [(9.0, 9.0)] * len(prompts) for name in sides}
    same = 0
    for turn in range(ROUNDS):
        for at, tokens in enumerate(prompts):
            last = []
            for name in sorted(sides, reverse=bool(turn % 2)):
                prefill, decode, token = timed(*sides[name], tokens)
                best[name][at] = (min(best[name][at][0], prefill), min(best[name][at][1], decode))
                last.append(token)
            same += last[0] == last[1]
    read = sum(map(len, prompts))
    for column, (what, tokens) in enumerate((("prefill", read), ("decode", OUTPUT * len(prompts)))):
        spent = {name: [times[column] for times in row] for name, row in best.items()}
        rates = ", ".join(f"{name} {tokens / sum(row):,.0f}" for name, row in spent.items())
        ratio = paired_ratio(spent["torch"], spent["numpy"], total)
        print(
            f"{what:<8} tokens/s: {rates}; numpy is {ratio.value:.2f} ({ratio.low:.2f} to {ratio.high:.2f}) times as fast"
        )
    print(f"the same last token in {same} of {ROUNDS * len(prompts)}")


if __name__ == "__main__":
    main()
