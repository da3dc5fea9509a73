"""The catalogue agrees with the facts it was made from, with the SDKs, and refuses bad data."""

import typing
from datetime import date

import pytest

from zlclient import ConfigError
from zlclient.models import Catalogue
from zlclient.models.catalogue import parse_provider

CATALOGUE = Catalogue.bundled()


def test_it_names_every_model_of_the_anthropic_sdk():
    from anthropic._data import DEPRECATED_MODELS
    from anthropic.types import ModelParam

    known = CATALOGUE.provider("anthropic").by_id
    for name in typing.get_args(typing.get_args(ModelParam)[0]):
        assert name in known, name
    today = date(2026, 11, 30)
    for name in DEPRECATED_MODELS:
        if name in known:
            assert CATALOGUE.find("anthropic", name).lifecycle(today) != "active"


@pytest.mark.parametrize(
    ("model", "day", "stage"),
    [
        ("claude-sonnet-4-5", date(2026, 11, 30), "deprecated"),
        ("claude-sonnet-4-5", date(2026, 12, 1), "retired"),
        ("claude-opus-4-5-20251101", date(2027, 1, 23), "retired"),
        ("claude-sonnet-5-5", date(2030, 1, 1), "active"),
    ],
)
def test_lifecycle(model, day, stage):
    assert CATALOGUE.find("anthropic", model).lifecycle(day) == stage


def test_aliases_move_on_by_themselves():
    models = CATALOGUE.provider("anthropic")
    assert models.resolve("auto", date(2026, 11, 30)) == ("claude-sonnet-5-5", None)
    assert models.resolve("legacy", date(2026, 11, 30)) == ("claude-sonnet-4-6", "2023-06-01")
    assert CATALOGUE.provider("openai").resolve("auto", date(2026, 11, 30))[0].startswith("gpt-")
    retired = CATALOGUE.with_model("anthropic", "claude-sonnet-5-5", {"retires": date(2027, 1, 1)})
    assert retired.provider("anthropic").resolve("auto", date(2027, 2, 1)) == ("claude-sonnet-5", None)


def test_unknown_models_reject_what_new_ones_reject():
    model = CATALOGUE.find("anthropic", "claude-sonnet-9")
    assert not model.known
    assert model.sampling_version(("2026-10-21", "2023-06-01")) is None
    assert not CATALOGUE.find("openai", "gpt-8").takes_sampling("v1")
    assert CATALOGUE.find("compatible", "qwen3").takes_sampling("v1")


def test_overrides_are_checked():
    own = CATALOGUE.with_provider("vllm", {"context": 4096, "effort": ["low"]})
    assert (own.find("vllm", "x").context, own.find("vllm", "x").effort) == (4096, ("low",))
    for bad in ({"contxt": 1}, {"context": "big"}, {"prefill": 1}, {"sampling": "maybe"}):
        with pytest.raises(ConfigError):
            CATALOGUE.with_provider("vllm", bad)
    with pytest.raises(ConfigError, match="known are"):
        CATALOGUE.find("nope", "x")


@pytest.mark.parametrize(
    "text",
    ["x =", "[provider]\nid='a'", "[provider]\nid='a'\nname='A'\nversions=[]\ndefault_effort=''\n[defaults]\nnope=1\n"],
)
def test_bad_data_names_its_file(text):
    with pytest.raises(ConfigError, match=r"mine\.toml"):
        parse_provider(text, file="mine.toml")
