"""Small models with random weights, so that a test is about the code and quick."""

from collections.abc import Callable

import numpy as np
import pytest

from zlclient.engine.checkpoint import Checkpoint, tensor_shapes
from zlclient.engine.config import Generation, ModelConfig
from zlclient.engine.model import Model
from zlclient.engine.tokenizer import Tokenizer

DOMAINS = ("general", "law")


@pytest.fixture(scope="session")
def tokenizer() -> Tokenizer:
    return Tokenizer([*" .,?0123456789abcdefghijklmnopqrstuvwxyz", " the", " cat", "ing", "猫", "在", "。"])


@pytest.fixture(scope="session")
def make_checkpoint(tokenizer: Tokenizer) -> Callable[..., Checkpoint]:
    def make(generation: Generation, **changed) -> Checkpoint:
        extra = {"buckets": 8, "check_rank": 3} if generation == "legacy" else {"anchors": 3, "entropy_bound": 0.9}
        config = ModelConfig(
            generation, tokenizer.size, width=16, layers=3, heads=2, hidden=24, domains=DOMAINS, **(extra | changed)
        )
        rng = np.random.default_rng(5)
        tensors = {
            name: (rng.standard_normal(shape) * (0.4 if len(shape) > 1 else 1)).astype(np.float16).astype(np.float32)
            for name, shape in tensor_shapes(config).items()
        }
        return Checkpoint(config, tokenizer, tensors, "random")

    return make


@pytest.fixture(params=["legacy", "auto"])
def checkpoint(request, make_checkpoint) -> Checkpoint:
    return make_checkpoint(request.param)


@pytest.fixture
def model(checkpoint: Checkpoint) -> Model:
    return Model(checkpoint)
