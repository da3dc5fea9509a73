"""What each model is sent, and what is said of the rest."""

from datetime import date

import pytest

from zlclient import Client, InputError, Settings
from zlclient.models import Catalogue
from zlclient.shaping.tune import LONG_PROMPT_TOKENS, TOKENS_PER_SECOND

TODAY = date(2026, 11, 30)


@pytest.fixture(scope="module")
def client():
    return Client(settings=Settings.load(folder="/", env={}))


def anthropic_models():
    return [model.id for model in Catalogue.bundled().provider("anthropic").models]


@pytest.mark.parametrize("model", [*anthropic_models(), "claude-from-the-future"])
@pytest.mark.parametrize("temperature", [None, 0.0, 0.2, 1.0])
def test_no_claude_request_breaks_the_published_rules(client, model, temperature):
    """2026-10-21 rejects any sampling on every model; 2023-06-01 takes it from the 4.5 and 4.6 families only."""
    options = {} if temperature is None else {"temperature": temperature}
    prepared = client.prepare("hi", model=f"anthropic:{model}", **options)
    version = prepared.headers["anthropic-version"]
    takes = "-4-5" in model or "-4-6" in model
    assert ("temperature" in prepared.body) == (temperature is not None and takes)
    assert version == ("2023-06-01" if temperature is not None and takes else "2026-10-21")
    assert "top_p" not in prepared.body
    if temperature is not None and not takes:
        assert any(note.rule == "temperature" and "any version" in note.reason for note in prepared.adjustments)


@pytest.mark.parametrize(
    ("model", "effort", "sent"),
    [
        ("gpt-6.1-sol", None, False),
        ("gpt-6-astra", None, False),
        ("gpt-6-sol", None, False),
        ("gpt-6-sol", "none", True),
        ("gpt-5.5", "none", True),
        ("gpt-5.4", None, True),
        ("gpt-5.4", "high", False),
        ("gpt-5.1", None, True),
        ("gpt-5", None, False),
        ("o3", None, False),
        ("gpt-4o", None, True),
        ("gpt-4.1-2025-04-14", None, True),
        ("gpt-9", None, False),
    ],
)
def test_gpt_sampling_follows_effort(client, model, effort, sent):
    prepared = client.prepare("hi", model=f"openai:{model}", temperature=0.2, effort=effort)
    assert ("temperature" in prepared.body) == sent


def test_a_rejected_effort_is_noted_or_an_error(client):
    prepared = client.prepare("hi", model="openai:gpt-6.1-sol", effort="none")
    assert "reasoning_effort" not in prepared.body
    assert any(note.rule == "effort" for note in prepared.adjustments)
    with pytest.raises(InputError, match="low, medium, high"):
        client.prepare("hi", model="openai:gpt-6.1-sol", effort="none", strict=True)
    assert client.prepare("hi", effort="low").body["output_config"] == {"effort": "low"}


def test_max_tokens_is_cut_to_what_the_model_writes(client):
    prepared = client.prepare("hi", model="anthropic:claude-sonnet-4-6", max_tokens=100_000)
    assert prepared.body["max_tokens"] == 64_000
    assert any(note.rule == "max_tokens" for note in prepared.adjustments)


def test_thinking_and_top_p_exclude_temperature(client):
    thinking = {"thinking": {"type": "enabled", "budget_tokens": 1024}}
    assert "temperature" not in client.prepare("hi", model="legacy", temperature=0.2, extra=thinking).body
    prepared = client.prepare("hi", model="legacy", extra={"top_p": 0.9})
    assert (prepared.body["top_p"], "temperature" in prepared.body) == (0.9, False)


def test_prefill_is_refused_where_the_model_takes_none(client):
    turns = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "{"}]
    with pytest.raises(InputError, match="prefill"):
        client.prepare(turns, model="anthropic:claude-sonnet-5-5")
    assert client.prepare(turns, model="anthropic:claude-haiku-4-5").body["messages"][-1]["role"] == "assistant"


def test_what_2026_10_21_rejects_is_mended_or_refused(client):
    cited = [{"role": "user", "content": [{"type": "text", "text": "a", "citations": [{"x": 1}]}]}]
    assert client.prepare(cited).body["messages"][0]["content"] == [{"type": "text", "text": "a"}]
    assert client.prepare(cited, model="legacy").body["messages"][0]["content"][0]["citations"]
    document = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "d"}}
    turns = [
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": [document]},
        {"role": "user", "content": "q"},
    ]
    with pytest.raises(InputError, match="document block"):
        client.prepare(turns)
    assert client.prepare(turns, model="legacy")


def test_long_prompts_wait_longer_for_their_first_event(client):
    assert client.prepare("word " * 1000).bounds.first_event == 5.0
    long = client.prepare("数字" * 50_000, timeout=None).bounds
    assert long.silence == 5.0
    assert long.first_event > 5.0 + (90_000 - LONG_PROMPT_TOKENS) / TOKENS_PER_SECOND
    assert client.prepare("数字" * 50_000, timeout=2).bounds.first_event == 2.0
    assert client.prepare("hi", timeout="off").bounds.first_event is None


def test_structured_output_falls_back_to_an_instruction():
    from pydantic import BaseModel

    class Out(BaseModel):
        a: int

    provider = {"kind": "openai", "base_url": "http://x/v1", "accepts": {"structured_output": False}}
    with Client(providers={"small": provider}) as own:
        prepared = own.prepare("hi", model="small:m", output=Out)
    assert "response_format" not in prepared.body
    assert '"additionalProperties":false' in prepared.body["messages"][0]["content"]


def test_preparing_is_pure(client):
    messages = [{"role": "user", "content": [{"type": "text", "text": "a\u200b"}]}]
    one, two = (client.prepare(messages, domain="law", anchors=["format"]) for _ in range(2))
    assert one.content == two.content
    assert one.adjustments == two.adjustments
    assert messages == [{"role": "user", "content": [{"type": "text", "text": "a\u200b"}]}]
