"""The decoder equals its definition, written out in loops; cached, chunked and whole reading give the same."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from zlclient.engine.sampler import Sampling
from zlclient.engine.smollm2 import llama
from zlclient.engine.smollm2.gguf import Gguf
from zlclient.engine.smollm2.llama import Llama, LlamaConfig
from zlclient.engine.smollm2.outcome import Outcome
from zlclient.engine.smollm2.prefix import LastPrompt
from zlclient.errors import ConfigError

PROMPT = [1, 100, 40, 41, 42, 250, 7, 99, 100, 100, 3, 200, 31]


@pytest.fixture(scope="module")
def model(tiny_path) -> Llama:
    return Llama.of(Gguf(tiny_path))


def plain_logits(weights: dict[str, np.ndarray], config: LlamaConfig, tokens: Sequence[int]) -> list[float]:
    """The logits after the last token: every sum of the definition written out, over the file's own weights."""
    head, group = config.head, config.heads // config.key_heads

    def times(name: str, vector: list[float]) -> list[float]:
        return [sum(a * b for a, b in zip(row, vector, strict=True)) for row in weights[f"{name}.weight"].tolist()]

    def norm(name: str, vector: list[float]) -> list[float]:
        scale = 1 / math.sqrt(sum(value * value for value in vector) / len(vector) + config.epsilon)
        return [
            value * scale * weight for value, weight in zip(vector, weights[f"{name}.weight"].tolist(), strict=True)
        ]

    def turn(vector: list[float], place: int) -> list[float]:
        out = list(vector)
        for at in range(0, len(vector), 2):
            angle = place / config.rope_base ** (at % head / head)
            a, b = vector[at], vector[at + 1]
            out[at] = a * math.cos(angle) - b * math.sin(angle)
            out[at + 1] = a * math.sin(angle) + b * math.cos(angle)
        return out

    streams = [weights["token_embd.weight"][token].tolist() for token in tokens]
    for layer in range(config.layers):
        name = f"blk.{layer}."
        normed = [norm(f"{name}attn_norm", stream) for stream in streams]
        queries = [turn(times(f"{name}attn_q", one), place) for place, one in enumerate(normed)]
        keys = [turn(times(f"{name}attn_k", one), place) for place, one in enumerate(normed)]
        values = [times(f"{name}attn_v", one) for one in normed]
        for place, stream in enumerate(streams):
            seen: list[float] = []
            for index in range(config.heads):
                mine = slice(index * head, (index + 1) * head)
                theirs = slice(index // group * head, (index // group + 1) * head)
                scores = [
                    math.exp(
                        sum(q * k for q, k in zip(queries[place][mine], keys[at][theirs], strict=True))
                        / math.sqrt(head)
                    )
                    for at in range(place + 1)
                ]
                total = sum(scores)
                seen += [
                    sum(score * values[at][theirs][part] for at, score in enumerate(scores)) / total
                    for part in range(head)
                ]
            after = [a + b for a, b in zip(stream, times(f"{name}attn_output", seen), strict=True)]
            inner = norm(f"{name}ffn_norm", after)
            gated = [
                gate / (1 + math.exp(-gate)) * up
                for gate, up in zip(times(f"{name}ffn_gate", inner), times(f"{name}ffn_up", inner), strict=True)
            ]
            streams[place] = [a + b for a, b in zip(after, times(f"{name}ffn_down", gated), strict=True)]
    return times("token_embd", norm("output_norm", streams[-1]))


def torch_logits(weights: dict[str, np.ndarray], config: LlamaConfig, tokens: Sequence[int]) -> np.ndarray:
    """The same by PyTorch's own norm, attention and activation, with positions as complex numbers."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    functional = torch.nn.functional
    tensors = {name: torch.from_numpy(array).double() for name, array in weights.items()}
    count = len(tokens)
    angles = torch.outer(torch.arange(count), config.rope_base ** -(torch.arange(0, config.head, 2) / config.head))
    turns = torch.polar(torch.ones_like(angles), angles)[:, None].to(torch.complex128)

    def heads(name: str, stream):
        return functional.linear(stream, tensors[name]).reshape(count, -1, config.head)

    def turned(name: str, stream):
        pairs = torch.view_as_complex(heads(name, stream).reshape(count, -1, config.head // 2, 2))
        return torch.view_as_real(pairs * turns).flatten(2)

    stream = tensors["token_embd.weight"][list(tokens)]
    for layer in range(config.layers):
        name = f"blk.{layer}."
        normed = functional.rms_norm(stream, (config.width,), tensors[f"{name}attn_norm.weight"], config.epsilon)
        query, key, value = (
            part.transpose(0, 1)[None]
            for part in (
                turned(f"{name}attn_q.weight", normed),
                turned(f"{name}attn_k.weight", normed),
                heads(f"{name}attn_v.weight", normed),
            )
        )
        seen = functional.scaled_dot_product_attention(query, key, value, is_causal=True, enable_gqa=True)
        stream = stream + functional.linear(seen[0].transpose(0, 1).flatten(1), tensors[f"{name}attn_output.weight"])
        normed = functional.rms_norm(stream, (config.width,), tensors[f"{name}ffn_norm.weight"], config.epsilon)
        gated = functional.silu(functional.linear(normed, tensors[f"{name}ffn_gate.weight"]))
        up = functional.linear(normed, tensors[f"{name}ffn_up.weight"])
        stream = stream + functional.linear(gated * up, tensors[f"{name}ffn_down.weight"])
    normed = functional.rms_norm(stream[-1], (config.width,), tensors["output_norm.weight"], config.epsilon)
    return (tensors["token_embd.weight"] @ normed).numpy()


def test_equals_the_definition(model, tensors):
    expected = plain_logits(tensors, model.config, PROMPT)
    np.testing.assert_allclose(model.forward(PROMPT, model.start(20)), expected, rtol=1e-4, atol=1e-4)


def test_equals_pytorch(model, tensors):
    expected = torch_logits(tensors, model.config, PROMPT)
    np.testing.assert_allclose(model.forward(PROMPT, model.start(20)), expected, rtol=1e-4, atol=1e-4)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_cached_in_any_cuts_equals_whole(model, data):
    tokens = data.draw(st.lists(st.integers(0, model.config.vocabulary - 1), min_size=2, max_size=40))
    whole = model.forward(tokens, model.start(len(tokens)))
    state = model.start(len(tokens) + 5)
    at, logits = 0, None
    while at < len(tokens):
        size = data.draw(st.integers(1, len(tokens) - at))
        logits = model.forward(tokens[at : at + size], state)
        at += size
    assert state.length == len(tokens)
    np.testing.assert_allclose(logits, whole, rtol=1e-4, atol=1e-4)


def test_chunked_equals_whole(model, monkeypatch):
    tokens = [(at * 37) % model.config.vocabulary for at in range(50)]
    whole = model.forward(tokens, model.start(50))
    for size in (1, 7, 16, 49):
        monkeypatch.setattr(llama, "CHUNK", size)
        np.testing.assert_allclose(model.forward(tokens, model.start(50)), whole, rtol=1e-4, atol=1e-4)


def follow(model: Llama, prompt: Sequence[int], sampling: Sampling, room: int) -> list[int]:
    return [token for token in model.tokens(prompt, sampling, room, Outcome()) if token is not None]


def test_greedy_tokens_are_each_the_likeliest_and_reproducible(model):
    tokens = follow(model, PROMPT, Sampling(), 12)
    assert tokens == follow(model, PROMPT, Sampling(), 12)
    for at, token in enumerate(tokens):
        said = [*PROMPT, *tokens[:at]]
        assert token == int(model.forward(said, model.start(len(said))).argmax())


def test_a_seed_decides_what_is_drawn(model):
    def drawn(seed: int) -> list[int]:
        return follow(model, PROMPT, Sampling(1.0, 0.95, seed), 12)

    assert drawn(1) == drawn(1)
    assert len({tuple(drawn(seed)) for seed in range(8)}) > 1


def test_no_more_tokens_than_room(model):
    assert len(follow(model, PROMPT, Sampling(), 5)) == 5


@pytest.fixture
def small_chunks(monkeypatch, tiny_path) -> Llama:
    """A model of its own, which has read nothing yet, with chunks of 8 tokens."""
    monkeypatch.setattr(llama, "CHUNK", 8)
    return Llama.of(Gguf(tiny_path))


def test_a_long_prompt_is_read_in_turns(small_chunks):
    prompt = [(at * 37) % small_chunks.config.vocabulary for at in range(20)]
    given = list(small_chunks.tokens(prompt, Sampling(), 3, Outcome()))
    assert given[:2] == [None, None]
    assert None not in given[2:]
    assert len(given) == 5


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_what_is_kept_of_a_prompt_changes_no_bit(small_chunks, data):
    small_chunks._last = LastPrompt(8)  # nothing was read before
    tokens = st.integers(0, small_chunks.config.vocabulary - 1)
    before = data.draw(st.lists(tokens, min_size=1, max_size=30))
    shared = data.draw(st.integers(0, len(before)))
    prompt = [*before[:shared], *data.draw(st.lists(tokens, min_size=1, max_size=20))]
    fresh = small_chunks.start(len(prompt))
    expected = small_chunks.forward(prompt, fresh)
    follow(small_chunks, before, Sampling(), 2)
    outcome = Outcome()
    with_kept = small_chunks.tokens(prompt, Sampling(), 1, outcome)
    assert [token for token in with_kept if token is not None] == [int(expected.argmax())]
    common = next(
        (at for at, (a, b) in enumerate(zip(before, prompt, strict=False)) if a != b), min(len(before), len(prompt))
    )
    assert outcome.cached_tokens == min(common, len(prompt) - 1) // 8 * 8
    kept = small_chunks.start(len(prompt))
    small_chunks._last.fill(kept, [*prompt, 0])
    whole = len(prompt) // 8 * 8
    assert kept.length == whole
    assert kept.keys[:, :, :whole].tobytes() == fresh.keys[:, :, :whole].tobytes()
    assert kept.values[:, :, :whole].tobytes() == fresh.values[:, :, :whole].tobytes()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("general.architecture", "gemma"),
        ("llama.attention.head_count_kv", 3),
        ("llama.attention.head_count", 5),
        ("llama.rope.dimension_count", 4),
        ("llama.block_count", 0),
        ("llama.context_length", 1 << 30),
        ("llama.rope.freq_base", 7),
        ("llama.attention.layer_norm_rms_epsilon", float("nan")),
    ],
)
def test_other_sizes_are_refused(make_gguf, metadata, key, value):
    with pytest.raises(ConfigError, match=r"llama|general\.architecture"):
        Llama.of(Gguf(make_gguf(metadata | {key: value})))


def test_tensors_missing_too_many_or_of_another_shape_are_refused(make_gguf, metadata, tensors):
    with pytest.raises(ConfigError, match=r"blk\.0\.attn_q\.weight' has shape"):
        Llama.of(Gguf(make_gguf(metadata, tensors | {"blk.0.attn_q.weight": np.ones((32, 31), np.float32)})))
    with pytest.raises(ConfigError, match=r"'output\.weight' is no part"):
        Llama.of(Gguf(make_gguf(metadata, tensors | {"output.weight": np.ones((2, 32), np.float32)})))
    del tensors["blk.2.ffn_up.weight"]
    with pytest.raises(ConfigError, match=r"blk\.2\.ffn_up\.weight' is missing"):
        Llama.of(Gguf(make_gguf(metadata, tensors)))
