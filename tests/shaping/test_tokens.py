import math
import subprocess
import sys
from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zlclient.shaping import tokens
from zlclient.shaping.tokens import count_tokens, estimate_tokens, family_of, plannable, with_margin

MODELS = ["claude-opus-5", "gpt-5.1", None]
ANY_TEXT = st.text(st.characters(), max_size=400)


def test_the_weights_of_the_two_families() -> None:
    assert estimate_tokens("a" * 100, "claude-sonnet-5") == 37
    assert estimate_tokens("a" * 100, "gpt-5") == 25
    assert estimate_tokens("汉" * 100, "claude-sonnet-5") == 112
    assert estimate_tokens("汉" * 100, "gpt-5") == 71
    assert estimate_tokens("\n" * 100, "gpt-5") == 0
    assert estimate_tokens("", "gpt-5") == 0


def test_a_chinese_anchor_costs_what_the_providers_charge() -> None:
    assert estimate_tokens("【第3章｜实验方法】", "gpt-5") in (8, 9)
    assert estimate_tokens("【第3章｜实验方法】", "claude-opus-5") in (11, 12)


@pytest.mark.parametrize(
    ("model", "family"),
    [
        ("claude-opus-5", "claude"),
        ("anthropic:claude-haiku-4-8", "claude"),
        ("bedrock/us.anthropic.claude-opus-4-8", "claude"),
        ("openai/gpt-4o-mini", "o200k"),
        ("GPT-4.1", "o200k"),
        ("o3-pro", "o200k"),
        ("gpt-4", "unknown"),
        ("auto", "unknown"),
        ("", "unknown"),
        (None, "unknown"),
    ],
)
def test_families(model: str | None, family: str) -> None:
    assert family_of(model) == family


@given(ANY_TEXT)
def test_an_unknown_model_gets_the_larger_estimate(text: str) -> None:
    assert estimate_tokens(text) >= max(estimate_tokens(text, "claude-opus-5"), estimate_tokens(text, "gpt-5"))


@given(ANY_TEXT, ANY_TEXT, st.sampled_from(MODELS))
def test_parts_cost_at_least_the_whole_but_for_runs_that_meet(left: str, right: str, model: str | None) -> None:
    apart = estimate_tokens(left + "\n", model) + estimate_tokens(right, model)
    assert estimate_tokens(left + "\n" + right, model) <= apart


@given(st.text(st.characters(max_codepoint=127), max_size=400), st.sampled_from(MODELS))
def test_the_ascii_path_equals_the_table(text: str, model: str | None) -> None:
    family = family_of(model)
    assert tokens._weigh_ascii(text.encode(), family) == sum(tokens.weights(family)[ord(c)] for c in text)


@given(st.text(st.characters(), min_size=256, max_size=600), st.sampled_from(MODELS))
def test_numpy_and_plain_python_agree(text: str, model: str | None) -> None:
    family = family_of(model)
    plain = array("H", map(tokens.weights(family).__getitem__, map(ord, text)))
    assert list(tokens.weigh_each(text, family)) == list(plain)


def test_long_unbroken_runs_cost_a_token_a_character() -> None:
    blob = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ" * 20
    assert estimate_tokens(blob) == len(blob)
    assert estimate_tokens(f"图片：{blob}。") >= len(blob)
    assert estimate_tokens("-" * 200, "gpt-5") < 200  # a ruled line is one or two tokens
    words = "immunoglobulin " * 20
    assert estimate_tokens(words) < len(words) / 2


def test_margins_are_each_other_s_inverse() -> None:
    for limit in range(1, 3000):
        assert with_margin(plannable(limit)) <= limit
        assert plannable(with_margin(limit)) >= limit
    assert with_margin(100) == math.ceil(100 * 1.25)


def test_counts_say_whether_they_are_exact() -> None:
    assert count_tokens("hello", "claude-opus-5") == tokens.TokenCount(estimate_tokens("hello", "claude-opus-5"), False)
    counted = count_tokens("hello world", "gpt-4o")
    assert counted.n in range(2, 5)
    if counted.exact:
        assert counted.n == 2
        assert count_tokens("a\ud800b", "gpt-4o").n >= 2


def test_without_a_cached_vocabulary_tiktoken_is_left_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    assert tokens._tiktoken_o200k() is None


def test_the_module_needs_no_numpy() -> None:
    code = (
        "import sys; sys.modules['numpy'] = None\n"
        "from zlclient.shaping.tokens import estimate_tokens\n"
        "print(estimate_tokens('汉字 and words ' * 5000, 'claude-opus-5'))"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert int(printed) == estimate_tokens("汉字 and words " * 5000, "claude-opus-5")
