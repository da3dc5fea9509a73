"""The optimisers: Muon for the layers' matrices, AdamW for the rest, one schedule over both."""

# PyTorch's annotations leave much unknown; the rest of strict checking stays on.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

MATRICES = (".qkv.", ".out.", ".gate_up.", ".down.")


class Muon(torch.optim.Optimizer):
    """Momentum, orthogonalised by five Newton-Schulz steps (K. Jordan 2024); for 2-d weights."""

    def __init__(self, parameters: Iterable[Tensor], lr: float, momentum: float = 0.95, decay: float = 0.01) -> None:
        super().__init__(parameters, {"lr": lr, "momentum": momentum, "decay": decay})

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:  # noqa: ARG002 - the base's signature
        """One update of every parameter that has a gradient."""
        for group in self.param_groups:
            for weight in group["params"]:
                if weight.grad is None:
                    continue
                moment = self.state[weight].setdefault("moment", torch.zeros_like(weight))
                moment.mul_(group["momentum"]).add_(weight.grad)
                update = _orthogonal(weight.grad.add(moment, alpha=group["momentum"]))
                scale = max(1.0, weight.shape[0] / weight.shape[1]) ** 0.5
                weight.mul_(1 - group["lr"] * group["decay"]).add_(update, alpha=-group["lr"] * scale)


def _orthogonal(matrix: Tensor) -> Tensor:
    x = matrix / (matrix.norm() + 1e-7)
    tall = x.shape[0] > x.shape[1]
    x = x.T if tall else x
    for _ in range(5):
        a = x @ x.T
        x = 3.4445 * x + (-4.775 * a + 2.0315 * (a @ a)) @ x
    return x.T if tall else x


class Optimisers:
    """Both optimisers of a model; `gates` learn much faster and are not clipped."""

    def __init__(self, model: nn.Module, *, rate: float = 2e-3, matrix_rate: float = 0.02) -> None:
        named = list(model.named_parameters())
        matrices = [weight for name, weight in named if any(part in name for part in MATRICES)]
        gates = [weight for name, weight in named if "log_alpha" in name]
        known = {id(weight) for weight in (*matrices, *gates)}
        rest = [weight for _, weight in named if id(weight) not in known]
        self.clipped = [*matrices, *rest]
        self.all: tuple[torch.optim.Optimizer, ...] = (
            Muon(matrices, matrix_rate),
            torch.optim.AdamW([{"params": rest}, *([{"params": gates, "lr": 0.15}] if gates else [])],
                              lr=rate, betas=(0.9, 0.97), weight_decay=0.0),
        )  # fmt: skip
        self._rates = [[group["lr"] for group in optimiser.param_groups] for optimiser in self.all]

    def step(self, share: float) -> None:
        """Clip, and update at `share` of the full rates."""
        nn.utils.clip_grad_norm_(self.clipped, 1.0)
        for optimiser, rates in zip(self.all, self._rates, strict=True):
            for group, rate in zip(optimiser.param_groups, rates, strict=True):
                group["lr"] = rate * share
            optimiser.step()
            optimiser.zero_grad(set_to_none=True)
