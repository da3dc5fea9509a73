"""Sources in order of strength; every error names the key, the value, the file and the line."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zlclient import Client, ConfigError, InputError, Settings
from zlclient.settings_sources import key_lines

TOML = """\
# a comment
timeout = 7
max_tokens = 100

[providers.vllm]
kind = "openai"
base_url = "http://127.0.0.1:8000/v1"

[routes]
cheap = "vllm:small"

[routes.careful]
model = "anthropic:claude-opus-5-5"
anchors = ["fidelity"]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "zlclient.toml").write_text(TOML, "utf-8")
    return tmp_path


def load(folder, env=None, **arguments):
    return Settings.load(arguments, folder=folder, env=env or {})


def test_strength_grows_from_file_to_argument(folder):
    (folder / "pyproject.toml").write_text("[tool.zlclient]\ntimeout = 8\nretry = 0\n", "utf-8")
    assert load(folder).timeout == 8
    assert load(folder).max_tokens == 100
    assert load(folder, {"ZLCLIENT_TIMEOUT": "9"}).timeout == 9
    settings = load(folder, {"ZLCLIENT_TIMEOUT": "9"}, timeout=10)
    assert settings.timeout == 10
    origins = {key: origin for key, _, origin in settings.effective()}
    assert origins["timeout"] == "argument"
    assert origins["retry"] == f"{folder / 'pyproject.toml'}:3"
    assert origins["max_tokens"] == f"{folder / 'zlclient.toml'}:3"
    assert origins["providers.vllm.kind"] == f"{folder / 'zlclient.toml'}:6"
    assert origins["strict"] == "default"


def test_files_are_found_upwards(folder):
    (folder / "a" / "b").mkdir(parents=True)
    (folder / "a" / "pyproject.toml").write_text("[project]\nname = 'other'\n", "utf-8")
    assert load(folder / "a" / "b").timeout == 7


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("timeout = -1", "zlclient.toml:1: timeout = -1: must be a number of at least"),
        ("\n\nretry = 1.5", "zlclient.toml:3: retry = 1.5: must be a whole number from 0 to 10"),
        ("tiemout = 1", "zlclient.toml:1: tiemout: unknown; did you mean 'timeout'"),
        ("timeout = ", "zlclient.toml:1: is not TOML"),
        ('[providers.x]\nkind = "grpc"\nbase_url = "u"', "zlclient.toml:2: providers.x.kind = 'grpc': must be one of"),
        ("[providers.x]\n", "zlclient.toml:1: providers.x: needs kind and base_url"),
        ('[providers.anthropic]\nacepts = 1', "zlclient.toml:2: providers.anthropic.acepts: unknown; did you mean"),
        ('[routes.a]\nmodel = "nope:x"', "zlclient.toml:2: routes.a.model = 'nope:x'"),
        ('provider = "nope"', "zlclient.toml:1: provider = 'nope': no such provider"),
        ('[providers.x]\nkind="openai"\nbase_url="u"\naccepts={contxt=1}', "zlclient.toml:1: providers.x.accepts.contxt"),
    ],
)
def test_errors_name_file_line_key_and_value(tmp_path, text, wanted):
    (tmp_path / "zlclient.toml").write_text(text, "utf-8")
    with pytest.raises(ConfigError) as caught:
        load(tmp_path)
    assert wanted in str(caught.value)


def test_wrong_variables_and_arguments_are_errors(tmp_path):
    with pytest.raises(ConfigError, match=r"ZLCLIENT_TIMEOUT = 'soon': must be"):
        load(tmp_path, {"ZLCLIENT_TIMEOUT": "soon"})
    with pytest.raises(ConfigError, match="ZLCLIENT_TIEMOUT"):
        load(tmp_path, {"ZLCLIENT_TIEMOUT": "1"})
    with pytest.raises(ConfigError, match="did you mean 'timeout'"):
        Client(tiemout=1)
    with pytest.raises(ConfigError):
        Client(domains={"x": {"tag_zh": 1}}).prepare("hi", domain="x")
    with pytest.raises(InputError):
        Client(provider="local").prepare("hi", domain="nope")


def test_off_and_nested_variables(tmp_path):
    env = {"ZLCLIENT_TIMEOUT": "off", "ZLCLIENT_RETRY": "off", "ZLCLIENT_ROUTES__AUTO": "openai:gpt-5.4"}
    settings = load(tmp_path, env)
    assert (settings.timeout, settings.retry, settings.routes["auto"].model) == ("off", 0, "openai:gpt-5.4")


def test_secrets_are_not_shown(tmp_path):
    provider = {"kind": "openai", "base_url": "u", "headers": {"x-key": "secret"}}
    settings = load(tmp_path, providers={"x": provider})
    assert "secret" not in str(settings.effective())


def test_a_domain_and_a_model_of_ones_own(tmp_path):
    settings = load(
        tmp_path,
        domains={"tax": {"tag_zh": "【税务】", "tag_en": "【Tax】"}, "finance": {"tag_zh": "【金融】"}},
        models={"anthropic:claude-next": {"sampling": ["2026-10-21"]}},
    )
    with Client(settings=settings) as client:
        assert client.prepare("税率？", domain="tax").body["messages"][0]["content"] == "【税务】税率？"
        assert client.prepare("税率？", domain="finance").body["messages"][0]["content"] == "【金融】税率？"
        assert client.prepare("x", model="anthropic:claude-next").body["temperature"] == 0.35


names = st.text("abcdefgh_-", min_size=1, max_size=6)


@given(st.dictionaries(names, st.dictionaries(names, st.integers(), max_size=4), max_size=4))
def test_every_key_gets_its_line(tables):
    lines = []
    wanted = {}
    for table, entries in tables.items():
        lines.append(f"[{table}]")
        wanted[table] = len(lines)
        for key, value in entries.items():
            lines.append(f"{key} = {value}  # {value}")
            wanted[f"{table}.{key}"] = len(lines)
    assert key_lines("\n".join(lines)) == wanted


def test_a_wrong_rollout_fails_at_construction_with_file_and_line(tmp_path, monkeypatch):
    text = '[rollouts.bot]\ncontrol = "legacy"\ntreatment = "auto"\nunit = "user_id"\nstages = [1, 100]\n'
    (tmp_path / "zlclient.toml").write_text(text + 'gates = { speed = "< 1" }\n', "utf-8")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=r"zlclient\.toml:6: rollouts\.bot\.gates\.speed"):
        Client()
