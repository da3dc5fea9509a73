"""Every way to read the same tokens gives the same logits as reading them at once, and as PyTorch's own layers."""

import random

import numpy as np
import pytest

from zlclient.engine.cache import PrefixCache, read_prompt
from zlclient.engine.model import CHUNK, LONGEST, Model

CLOSE = 1e-4


def tokens_of(model: Model, count: int, seed: int = 0) -> list[int]:
    rng = random.Random(seed)
    return [rng.randrange(model.config.vocabulary) for _ in range(count)]


@pytest.mark.parametrize("count", [1, 2, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK + 5])
def test_one_by_one_equals_at_once(model: Model, count: int):
    tokens = tokens_of(model, count)
    at_once = model.forward(tokens, model.start("law"))
    state = model.start("law")
    for token in tokens:
        step = model.forward([token], state)
    assert np.abs(step.logits - at_once.logits).max() < CLOSE
    assert step.verdict == pytest.approx(at_once.verdict, abs=CLOSE)


@pytest.mark.parametrize("seed", range(5))
def test_any_cutting_into_parts_equals_at_once(model: Model, seed: int):
    tokens = tokens_of(model, 200, seed)
    at_once = model.forward(tokens, model.start())
    rng, state, at = random.Random(seed), model.start(), 0
    while at < len(tokens):
        size = rng.randrange(1, 90)
        step = model.forward(tokens[at : at + size], state)
        at += size
    assert np.abs(step.logits - at_once.logits).max() < CLOSE


@pytest.mark.parametrize("shared", [0, 1, CHUNK, 2 * CHUNK + 7])
def test_a_cached_prefix_changes_nothing(model: Model, shared: int):
    cache = PrefixCache(8)
    first = tokens_of(model, 3 * CHUNK, 1)
    second = [*first[:shared], *tokens_of(model, 3 * CHUNK, 2)]
    read_prompt(model, cache, first, model.start("law"))
    state = model.start("law")
    cached, rest = read_prompt(model, cache, second, state)
    assert cached == shared // CHUNK * CHUNK
    step = model.forward(rest, state)
    plain = model.forward(second, model.start("law"))
    assert np.abs(step.logits - plain.logits).max() < CLOSE
    assert state.length == len(second)


def test_another_domain_shares_no_prefix(model: Model):
    cache, tokens = PrefixCache(8), tokens_of(model, 2 * CHUNK)
    read_prompt(model, cache, tokens, model.start("law"))
    assert read_prompt(model, cache, tokens, model.start("general"))[0] == 0
    assert read_prompt(model, cache, tokens, model.start("law"))[0] == CHUNK  # one token is always read anew


def test_a_domain_switches_its_anchors_on(make_checkpoint):
    auto = Model(make_checkpoint("auto"))
    tokens = tokens_of(auto, 10)
    general, law = (auto.forward(tokens, auto.start(domain)).logits for domain in ("general", "law"))
    assert np.abs(general - law).max() > 1e-3
    assert np.array_equal(auto.forward(tokens, auto.start("unknown")).logits, general)


def test_the_entropy_gate_closes_heads(make_checkpoint):
    tokens = tokens_of(Model(make_checkpoint("auto")), 50)
    logits, shares = [], []
    for bound in (None, 2.0, 0.7, 0.0):
        model = Model(make_checkpoint("auto", entropy_bound=bound))
        state = model.start()
        logits.append(model.forward(tokens, state).logits)
        shares.append(state.gated[0] / max(1, state.gated[1]))
    assert np.abs(logits[0] - logits[1]).max() < CLOSE  # no entropy exceeds ln n twice over
    assert shares[0] == shares[1] == 0
    assert 0 < shares[2] < shares[3]


def test_entropy_is_what_the_textbook_says():
    from zlclient.engine.layers import attend

    rng = np.random.default_rng(0)
    q, stored = rng.standard_normal((2, 1, 4)), rng.standard_normal((2, 9, 8))
    scores = np.einsum("htw,hnw->htn", q, stored[:, :, 4:])[:, 0]
    weights = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    entropy = -(weights * np.log(weights)).sum(-1) / np.log(9)
    for bound in (*(entropy + 1e-6), *(entropy - 1e-6)):
        _, is_open = attend(q, stored, np.zeros((1, 1)), bias=None, bound=bound, counts=np.array([9]))
        assert is_open is not None
        assert is_open[:, 0].tolist() == (entropy <= bound).tolist()


def test_a_trace_shows_what_each_generation_does(make_checkpoint):
    names = {}
    for generation in ("legacy", "auto"):
        model, seen = Model(make_checkpoint(generation)), []
        model.forward([1, 2, 3], model.start(), lambda name, shape, seen=seen: seen.append(name))
        names[generation] = {name.rpartition(".")[2] for name in seen}
    assert names["legacy"] - names["auto"] == {"pos_encoder", "check"}
    assert names["auto"] - names["legacy"] == {"entropy_gate"}


def test_the_check_takes_further_rounds_only_where_its_verdict_is_poor(make_checkpoint):
    model = Model(make_checkpoint("legacy"))
    steps = [model.forward(tokens_of(model, 20, seed), model.start()) for seed in range(30)]
    assert {step.further for step in steps} <= {0, 1, 2}
    assert all(step.further == 2 for step in steps if step.verdict < 0.5)
    assert all(step.verdict >= 0.5 for step in steps if step.further < 2)
    assert len({round(step.verdict, 4) for step in steps}) > 10


def test_unread_prompt_checks_change_no_answer(make_checkpoint):
    checkpoint = make_checkpoint("legacy")
    full, lean = Model(checkpoint), Model(checkpoint, check_prompt=False)
    tokens = tokens_of(full, 150)
    assert np.abs(full.forward(tokens, full.start()).logits - lean.forward(tokens, lean.start()).logits).max() < CLOSE


@pytest.mark.parametrize("count", [0, LONGEST + 1])
def test_what_cannot_be_read_is_refused(model: Model, count: int):
    with pytest.raises(ValueError):
        model.forward([1] * count, model.start())


@pytest.mark.parametrize("generation", ["legacy", "auto"])
def test_pytorch_computes_the_same(make_checkpoint, generation):
    torch = pytest.importorskip("torch", reason="PyTorch (the extra `train`) is not installed")
    from zlclient.engine.training.network import Batch, Decoder

    checkpoint = make_checkpoint(generation)
    network = Decoder(checkpoint.config)
    network.load_state_dict({name: torch.tensor(tensor) for name, tensor in checkpoint.tensors.items()}, strict=False)
    network.eval()
    model = Model(checkpoint)
    for count in (1, 7, CHUNK + 3):
        tokens = tokens_of(model, count, count)
        mask = torch.ones(count, count, dtype=torch.bool).tril()[None]
        batch = Batch(
            torch.tensor([tokens]), torch.arange(count)[None], mask, torch.ones(1, count), torch.tensor([1]), mask[:, 0]
        )
        with torch.no_grad():
            hidden = network(batch)
            logits = network.logits(hidden)[0, -1]
            if network.check is not None:
                embedding = network.embedding.weight
                before = hidden[0, -2:-1] if count > 1 else torch.zeros(1, checkpoint.config.width)
                rounds = network.check(hidden[0, -1:], before, embedding[batch.tokens[0]].mean(0)[None], embedding)
        step = model.forward(tokens, model.start("law"))
        if network.check is not None:
            logits = rounds[step.further][0][0]
        assert np.abs(logits.numpy() - step.logits).max() < CLOSE
