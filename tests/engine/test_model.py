"""Every way to read the same tokens gives the same logits as reading them at once, and as PyTorch's own layers."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zlclient.engine.cache import PrefixCache, read_prompt
from zlclient.engine.checkpoint import Checkpoint
from zlclient.engine.model import CHUNK, LONGEST, Model
from zlclient.engine.runner import Engine
from zlclient.engine.state import State

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


@pytest.mark.parametrize("generation", ["legacy", "auto"])
@settings(deadline=None, max_examples=15)
@given(sizes=st.lists(st.integers(1, 90), min_size=1, max_size=6), seed=st.integers(0, 10**6))
def test_any_cutting_into_parts_equals_at_once(make_checkpoint, generation, sizes, seed):
    model = Model(make_checkpoint(generation))
    tokens = tokens_of(model, sum(sizes), seed)
    at_once = model.forward(tokens, model.start())
    state = model.start()
    for size in sizes:
        step = model.forward(tokens[state.length : state.length + size], state)
    assert np.abs(step.logits - at_once.logits).max() < CLOSE


@pytest.mark.parametrize("generation", ["legacy", "auto"])
@settings(deadline=None, max_examples=15)
@given(
    shared=st.integers(0, 3 * CHUNK),
    sizes=st.tuples(st.integers(1, 3 * CHUNK), st.integers(1, 3 * CHUNK)),
    seed=st.integers(0, 10**6),
)
def test_a_cached_prefix_changes_nothing(make_checkpoint, generation, shared, sizes, seed):
    model, cache = Model(make_checkpoint(generation)), PrefixCache(8)
    start = tokens_of(model, shared, seed)
    first, second = ([*start, *tokens_of(model, size, seed + at)] for at, size in enumerate(sizes, 1))
    fresh, state = model.start("law"), model.start("law")
    assert read_prompt(model, cache, first, model.start("law"))[0] == 0
    cached, rest = read_prompt(model, cache, second, state)
    assert cached >= min(shared, len(first) - 1, len(second) - 1) // CHUNK * CHUNK
    step = model.forward(rest, state)
    assert np.abs(step.logits - model.forward(second, model.start("law")).logits).max() < CLOSE
    _, rest = read_prompt(model, PrefixCache(0), second, fresh)
    assert np.array_equal(step.logits, model.forward(rest, fresh).logits)  # cut alike, even the bits are the same
    assert state.length == len(second)
    assert cache.stats.in_use == 0


@pytest.mark.parametrize("scores", [1, 150, 1000])
def test_attending_in_slices_changes_nothing(model: Model, monkeypatch, scores):
    tokens = tokens_of(model, 150)
    state, sliced = model.start("law"), model.start("law")
    expected = model.forward(tokens, state)
    monkeypatch.setattr("zlclient.engine.model.SCORES", scores)
    assert np.abs(model.forward(tokens, sliced).logits - expected.logits).max() < CLOSE
    assert sliced.gated == state.gated


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
        present = torch.ones(1, count, dtype=torch.bool)
        with torch.no_grad():
            (hidden,) = network(Batch(torch.tensor([tokens]), present, None, (), torch.tensor([1])))
            logits = network.logits(hidden)[0, -1]
            if network.check is not None:
                embedding = network.embedding.weight
                before = hidden[0, -2:-1] if count > 1 else torch.zeros(1, checkpoint.config.width)
                read = embedding[torch.tensor(tokens)].mean(0)[None]
                rounds = network.check(hidden[0, -1:], before, read, embedding)
        step = model.forward(tokens, model.start("law"))
        if network.check is not None:
            logits = rounds[step.further][0][0]
        assert np.abs(logits.numpy() - step.logits).max() < CLOSE


def read_states(model: Model, count: int, seed: int = 0) -> list[State]:
    """States of `count` sequences of different lengths and domains, each read from its own tokens."""
    rng = random.Random(seed)
    states: list[State] = []
    for at in range(count):
        states.append(model.start("law" if at % 2 else ""))
        model.forward(tokens_of(model, rng.randrange(1, 150), seed * 1000 + at), states[-1])
    return states


@pytest.mark.parametrize("generation", ["legacy", "auto"])
@settings(deadline=None, max_examples=8)
@given(seed=st.integers(0, 10**6), sizes=st.lists(st.integers(1, 9), min_size=1, max_size=4))
def test_decoding_in_any_company_gives_the_bits_of_decoding_alone(make_checkpoint, generation, seed, sizes):
    model = Model(make_checkpoint(generation))
    together, alone = (read_states(model, sum(sizes), seed) for _ in range(2))
    rng = random.Random(seed)
    for _ in range(3):
        tokens = tokens_of(model, len(together), rng.randrange(10**6))
        order = rng.sample(range(len(together)), len(together))
        at = 0
        for size in sizes:
            group, at = order[at : at + size], at + size
            steps = model.decode([tokens[row] for row in group], [together[row] for row in group])
            for row, step in zip(group, steps, strict=True):
                (single,) = model.decode([tokens[row]], [alone[row]])
                assert np.array_equal(step.logits, single.logits)
                assert (step.verdict, step.further) == (single.verdict, single.further)
    for one, other in zip(together, alone, strict=True):
        assert np.array_equal(one.tails, other.tails)
        assert (one.length, one.gated) == (other.length, other.gated)


@pytest.mark.parametrize("generation", ["legacy", "auto"])
def test_the_shipped_weights_decode_to_the_same_bits_in_company(generation):
    model = Engine.shipped(generation).model
    together, alone = (read_states(model, 13) for _ in range(2))
    for turn in range(3):
        tokens = tokens_of(model, 13, turn)
        singles = [model.decode([token], [state])[0] for token, state in zip(tokens, alone, strict=True)]
        for step, single in zip(model.decode(tokens, together), singles, strict=True):
            assert np.array_equal(step.logits, single.logits)
            assert (step.verdict, step.further) == (single.verdict, single.further)


@pytest.mark.parametrize("generation", ["legacy", "auto"])
@settings(deadline=None, max_examples=15)
@given(seed=st.integers(0, 10**6), count=st.integers(1, 6))
def test_decoding_equals_the_plain_forward_pass(make_checkpoint, generation, seed, count):
    model = Model(make_checkpoint(generation))
    decoded, plain = (read_states(model, count, seed) for _ in range(2))
    for turn in range(3):
        tokens = tokens_of(model, count, seed + turn)
        for token, state, step in zip(tokens, plain, model.decode(tokens, decoded), strict=True):
            expected = model.forward([token], state)
            assert np.abs(step.logits - expected.logits).max() < CLOSE
            assert step.verdict == pytest.approx(expected.verdict, abs=CLOSE)
            assert step.further == expected.further or abs(0.5 - (step.verdict or 0)) < CLOSE
    assert [state.gated for state in decoded] == [state.gated for state in plain]


def test_a_blas_that_mixes_rows_gets_one_product_a_row(checkpoint: Checkpoint, monkeypatch):
    model = Model(checkpoint)
    states = [read_states(model, 5, 3) for _ in range(2)]
    fast = model.decode([1, 2, 3, 4, 5], states[0])
    monkeypatch.setattr("zlclient.engine.decoding._keeps_rows_apart", lambda weight: False)
    slow = Model(checkpoint).decode([1, 2, 3, 4, 5], states[1])
    assert all(np.abs(one.logits - other.logits).max() < CLOSE for one, other in zip(fast, slow, strict=True))


@pytest.mark.parametrize("tokens", [[1], [1, 2, 3]])
def test_decoding_takes_one_token_a_state(model: Model, tokens):
    with pytest.raises(ValueError, match="one token for each state"):
        model.decode(tokens, read_states(model, 2))


def test_decoding_nothing_gives_nothing(model: Model):
    assert model.decode([], []) == []
