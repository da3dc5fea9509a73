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
        ("[providers.anthropic]\nacepts = 1", "zlclient.toml:2: providers.anthropic.acepts: unknown; did you mean"),
        ('[routes.a]\nmodel = "nope:x"', "zlclient.toml:2: routes.a.model = 'nope:x'"),
        (
            '[providers.x]\nkind="openai"\nbase_url="http://u"\n[providers.x.accepts]\n\ncontxt=1',
            "zlclient.toml:6: providers.x.accepts.contxt",
        ),
        ('[providers.x]\nbase_url = "u/v1"', "zlclient.toml:2: providers.x.base_url = 'u/v1': must be an address"),
        ('[models."openai:gpt-5.4"]\nprefil = true', "zlclient.toml:2: models.openai:gpt-5.4.prefil: unknown"),
        ("[models.x]\nprefill = true", "zlclient.toml:1: models.x: must be"),
        (
            'timeout = 1\nmodel = "claude-opus-5-5"',
            "zlclient.toml:2: model = 'claude-opus-5-5': must be one of auto, legacy",
        ),
        ('model = "nope:x"', "zlclient.toml:1: model = 'nope:x': must be one of"),
        ('fallback = ["legacy", "legacyy"]', "zlclient.toml:1: fallback = 'legacyy': must be one of auto, legacy"),
        ('domain = "fiance"', "zlclient.toml:1: domain = 'fiance': no such domain; known are finance"),
        ('anchors = ["fidelty"]', "zlclient.toml:1: anchors = 'fidelty': no such snippet; known are"),
        ('[routes.auto]\n\nanchors = ["nope"]', "zlclient.toml:3: routes.auto.anchors = 'nope': no such snippet"),
        ('[routes.careful]\nanchors = ["fidelity"]', "zlclient.toml:1: routes.careful: needs model"),
        ('[domains.tax]\ntag_zh = "【税】"', "zlclient.toml:1: domains.tax: needs tag_en"),
        ('[domains.law]\ntag_zh = "【法】"\ntag_eng = "x"', "zlclient.toml:3: domains.law.tag_eng: unknown"),
        ("[domains.law]\nthreshold = 2", "zlclient.toml:2: domains.law.threshold = 2: must be from 0 to 1"),
        ("[domains.law]\nanchors = [1]", "zlclient.toml:2: domains.law.anchors: must be a list of strings"),
        ('provider = "nope"', "zlclient.toml:1: provider = 'nope': no such provider"),
        (
            '[providers.x]\nkind="openai"\nbase_url="http://u"\naccepts={contxt=1}',
            "zlclient.toml:4: providers.x.accepts.contxt",
        ),
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
    with pytest.raises(ConfigError, match=r"domains\.x\.tag_zh = 1"):
        Client(domains={"x": {"tag_zh": 1}})
    with pytest.raises(InputError):
        Client(provider="local").prepare("hi", domain="nope")


def test_off_and_nested_variables(tmp_path):
    env = {"ZLCLIENT_TIMEOUT": "off", "ZLCLIENT_RETRY": "off", "ZLCLIENT_ROUTES__AUTO": "openai:gpt-5.4"}
    settings = load(tmp_path, env)
    assert (settings.timeout, settings.retry, settings.routes["auto"].model) == ("off", 0, "openai:gpt-5.4")


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("model", {"model": "nope"}),
        ("fallback", {"fallback": "nope"}),
        ("domain", {"domain": "nope"}),
        ("anchors", {"anchors": ["nope"]}),
        ("provider", {"provider": "nope"}),
    ],
)
def test_wrong_names_fail_at_construction(name, options):
    with pytest.raises(ConfigError) as caught:
        Client(**options)
    assert (caught.value.key, caught.value.value) == (name, "nope")


def test_names_that_exist_are_taken(folder):
    assert load(folder, model="cheap", fallback=["careful", "legacy", "vllm:x"]).fallback[0] == "careful"
    assert load(folder, model="small", provider="vllm").model == "small"
    assert load(folder, domains={"tax": {"tag_zh": "【税】", "tag_en": "【Tax】"}}, domain="tax").domain == "tax"
    assert load(folder, routes={"auto": {"anchors": ["format"]}}, anchors="fidelity").anchors == ("fidelity",)


def test_a_wrong_name_in_the_environment_names_the_variable(tmp_path):
    with pytest.raises(ConfigError, match=r"^ZLCLIENT_DOMAIN = 'nope': no such domain"):
        load(tmp_path, {"ZLCLIENT_DOMAIN": "nope"})
    with pytest.raises(ConfigError, match=r"^ANTHROPIC_BASE_URL = 'foo': must be an address"):
        load(tmp_path, {"ANTHROPIC_BASE_URL": "foo"})


PAIRS = [("ZLCLIENT_ROUTES__AUTO", "local:auto"), ("ZLCLIENT_ROUTES__AUTO__MODEL", "local:auto")]


@pytest.mark.parametrize("pairs", [PAIRS, PAIRS[::-1]])
def test_variables_that_contradict_each_other_are_an_error(tmp_path, pairs):
    with pytest.raises(ConfigError, match=f"{pairs[1][0]}: contradicts {pairs[0][0]}; set one"):
        load(tmp_path, dict(pairs))


def test_a_scalar_is_no_table_and_a_table_no_scalar(tmp_path):
    for variable in ("ZLCLIENT_TIMEOUT__X", "ZLCLIENT_ROUTES", "ZLCLIENT_NOPE__X__Y"):
        with pytest.raises(ConfigError, match=f"{variable}: unknown variable; accepted are .*ZLCLIENT_ROUTES__…"):
            load(tmp_path, {variable: "1"})


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("# zlclient\ntool = 3", "pyproject.toml:2: tool: must be a table"),
        ('[tool]\nzlclient = "x"', "pyproject.toml:2: tool.zlclient: must be a table"),
        ('[[tool.zlclient]]\nmodel = "x"', "pyproject.toml:1: tool.zlclient: must be a table"),
    ],
)
def test_our_part_of_pyproject_must_be_a_table(tmp_path, text, wanted):
    (tmp_path / "pyproject.toml").write_text(text, "utf-8")
    with pytest.raises(ConfigError) as caught:
        load(tmp_path)
    assert wanted in str(caught.value)


def test_secrets_are_not_shown(tmp_path):
    provider = {"kind": "openai", "base_url": "http://user:passwd@u", "headers": {"x-key": "secret"}}
    settings = load(tmp_path, providers={"x": provider}, store="redis://user:passwd@host/0")
    shown = str(settings.effective()) + repr(settings) + repr(settings.providers["x"])
    assert "secret" not in shown
    assert "passwd" not in shown
    assert ("providers.x.base_url", "http://***@u", "argument") in settings.effective()
    assert ("store", "redis://***@host/0", "argument") in settings.effective()


@pytest.mark.parametrize(
    "changes",
    [
        {"headers": {"x-key": "secret", "n": 5}},
        {"headers": "secret"},
        {"headers": {"x-key": "secret\r\nx: y"}},
        {"headers": {"x-key": "secret é"}},
        {"headers": ["secret"]},
        {"key_env": "sk-secret"},
        {"base_url": "ftp://user:secret@host"},
        {"base_url": "user:secret@host"},
        {"base_url": ["secret"]},
        "secret",
    ],
)
def test_no_error_shows_a_secret(tmp_path, changes):
    provider = changes if isinstance(changes, str) else {"kind": "openai", "base_url": "http://u", **changes}
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, providers={"x": provider})
    assert "secret" not in str(caught.value)
    assert "secret" not in str(caught.value.value)


def test_what_a_prepared_request_shows_of_headers(tmp_path):
    headers = {"X-Api-Key": "secret", "user-agent": "me", "x-zl-run": "7"}
    provider = {"kind": "openai", "base_url": "http://user:secret@u/v1", "headers": headers, "key_env": "K"}
    with Client(settings=load(tmp_path, providers={"x": provider})) as client:
        extra = {"Proxy-Authorization": "secret", "Anthropic-Beta": "b"}
        prepared = client.prepare("hi", model="x:m", extra_headers=extra)
    assert prepared.url == "http://user:secret@u/v1/chat/completions"
    assert prepared.wire["url"] == "http://***@u/v1/chat/completions"
    shown = {name.lower(): value for name, value in prepared.wire["headers"].items()}
    assert shown == {
        "x-api-key": "***",
        "user-agent": "me",
        "x-zl-run": "7",
        "content-type": "application/json",
        "proxy-authorization": "***",
        "anthropic-beta": "b",
        "authorization": "Bearer ***",
    }
    assert "secret" not in repr(prepared) + repr(prepared.tuned.request)


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
