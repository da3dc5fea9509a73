"""The decoder of llama-cpp-python, where that is installed: quicker, and with weights that stay small in memory.

It gets the same prompt tokens and gives tokens back, so all else is the same whichever of the two runs.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from ...errors import ConfigError
from ..sampler import Sampling
from .outcome import Outcome


class LlamaCpp:
    """A model file opened by llama.cpp, which computes one sequence at a time; for one thread."""

    at_once = 1

    def __init__(self, path: Path, context: int) -> None:
        """Open it; raises ImportError where the package is not installed, ConfigError where it cannot load the file."""
        module: Any = import_module("llama_cpp")
        try:
            self._llama = module.Llama(model_path=str(path), n_ctx=context, verbose=False)
        except (OSError, RuntimeError, ValueError) as error:
            raise ConfigError(f"llama-cpp-python cannot load it: {error}", file=str(path)) from None

    def tokens(self, prompt: Sequence[int], sampling: Sampling, room: int, outcome: Outcome) -> Generator[int | None]:
        """Up to `room` tokens that follow `prompt`."""
        self._llama.reset()  # what it would reuse of the last prompt is shifted, not the same bit for bit
        outcome.cached_tokens = 0
        self._llama.set_seed(sampling.seed)
        following = self._llama.generate(
            list(prompt), temp=sampling.temperature, top_p=sampling.top_p, top_k=0, min_p=0.0, repeat_penalty=1.0
        )
        for _, token in zip(range(room), following, strict=False):
            yield int(token)
