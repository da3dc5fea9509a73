"""A folder as a library, and the templates that ship with zlclient."""

import json
import re

import httpx2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zlclient.client import Client
from zlclient.errors import ConfigError, InputError
from zlclient.linting import lint
from zlclient.prompts.library import Library, bundled_library
from zlclient.prompts.prompt import Prompt
from zlclient.testing import transport

NAMES = (
    "contract_review", "customer_support", "extraction", "financial_question", "judge", "medical_record", "rewrite", "summary",
)  # fmt: skip
BUNDLED = [(name, language) for name in NAMES for language in ("zh", "en")]


def write(folder, name, text):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def test_names_languages_and_versions(tmp_path):
    for version in ("1.9", "1.10", "1.2"):
        write(
            tmp_path,
            f"v{version}/a.prompty",
            f'---\nname: a\nmetadata: {{version: "{version}"}}\n---\nuser:\n{version}',
        )
    write(tmp_path, "b.zh.md", "乙")
    write(tmp_path, "b.en.md", "b")
    write(tmp_path, "_part.j2", "x")
    write(tmp_path, "README.md", "about")
    library = Library(tmp_path)
    assert library.names == ("a", "b")
    assert library.versions("a") == ("1.2", "1.9", "1.10")
    assert library.get("a").version == "1.10"
    assert library.get("a", version="1.9").render().text == "user:\n1.9"
    assert library.get("b", language="zh").render().text == "user:\n乙"
    for asked, problem in [
        ({"name": "c"}, "known are a, b"),
        ({"name": "aa"}, "did you mean 'a'"),
        ({"name": "b"}, "en, zh"),
        ({"name": "b", "language": "fr"}, "en, zh"),
        ({"name": "a", "version": "3"}, "known are 1.2, 1.9, 1.10"),
    ]:
        with pytest.raises(InputError, match=problem):
            library.get(**asked)


def test_two_of_the_same_and_none_at_all(tmp_path):
    write(tmp_path, "a.prompty", "---\nname: a\n---\nuser:\nx")
    write(tmp_path, "b.prompty", "---\nname: a\n---\nuser:\nx")
    with pytest.raises(ConfigError, match=r"same name, language and version as .*a\.prompty"):
        Library(tmp_path).get("a")
    with pytest.raises(ConfigError, match="no such folder"):
        Library(tmp_path / "absent").get("a")


def test_includes_of_a_library_come_from_its_root(tmp_path):
    write(tmp_path, "parts/rules.j2", "Be brief.")
    write(tmp_path, "deep/a.prompty", "system:\n{% include 'parts/rules.j2' %}\nuser:\nx")
    assert Library(tmp_path).get("a").render().system == "Be brief."


def test_what_is_bundled():
    assert bundled_library().names == NAMES
    assert {(entry.name, entry.language) for entry in bundled_library().entries} == set(BUNDLED)
    assert Prompt.bundled("summary").language == "en"
    with pytest.raises(InputError, match="did you mean 'summary'"):
        Prompt.bundled("sumary")


@pytest.mark.parametrize(("name", "language"), BUNDLED)
def test_each_bundled_template(name, language):
    prompt = Prompt.bundled(name, language=language)
    other = Prompt.bundled(name, language="en" if language == "zh" else "zh")
    assert {key: spec.kind for key, spec in prompt.inputs.items()} == {
        key: spec.kind for key, spec in other.inputs.items()
    }
    assert prompt.upgrade() == prompt.source.text
    assert set(prompt.source.names) == set(prompt.inputs)
    assert all(spec.description for spec in prompt.inputs.values())
    rendered = prompt.render(**{key: spec.example for key, spec in prompt.inputs.items() if spec.required})
    assert [message.role for message in rendered.conversation] == ["system", "user"]
    assert "{{" not in rendered.text
    assert "{%" not in rendered.text
    assert rendered.options["model"] == "auto"
    assert "temperature" not in rendered.options
    assert all(value.role == "user" and value.fence == value.input for value in rendered.untrusted)
    is_chinese = len(re.findall(r"[\u4e00-\u9fff]", rendered.system or "")) > 100
    assert is_chinese == (language == "zh")


@pytest.mark.parametrize(("name", "language"), BUNDLED)
@given(
    value=st.lists(
        st.sampled_from(["a", "\n", "</document>", "</text>", "system:\n", "\nuser:\n", "{{ x }}", "{% y %}"]),
        max_size=8,
    ).map("".join)
)
@settings(max_examples=15, deadline=None)
def test_no_value_breaks_out_of_a_bundled_template(name, language, value):
    prompt = Prompt.bundled(name, language=language)
    values = {
        key: value if spec.kind == "string" else spec.example for key, spec in prompt.inputs.items() if spec.required
    }
    rendered = prompt.render(**values)
    assert [message.role for message in rendered.conversation] == ["system", "user"]
    content = rendered.messages[0]["content"]
    for key in values:
        if prompt.inputs[key].trust == "untrusted":
            assert content.count(f"</{key}>") == 1


@pytest.mark.parametrize("language", ["zh", "en"])
def test_examples_of_structured_templates_fit_their_outputs(language):
    for name in ("contract_review", "judge"):
        prompt = Prompt.bundled(name, language=language)
        values = {key: spec.example for key, spec in prompt.inputs.items() if spec.required}
        rendered = prompt.render(**values)
        example = re.search(r"```json\n(.*?)```", rendered.system or "", re.DOTALL)
        assert example is not None
        rendered.options["output"](**json.loads(example[1]))


def test_optional_material_appears_only_when_given():
    prompt = Prompt.bundled("summary", language="zh")
    assert "<focus>\n现金流\n</focus>" in prompt.render(document="x", focus="现金流").text
    assert "<focus>\n" not in prompt.render(document="x").text
    support = Prompt.bundled("customer_support", language="en")
    rendered = support.render(
        message="m", policy="p", history=[{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
    )
    assert [message["role"] for message in rendered.messages] == ["user", "assistant", "user"]


@pytest.mark.parametrize(("name", "language"), BUNDLED)
def test_each_bundled_template_is_sent_and_answered_offline(name, language, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "offline")
    prompt = Prompt.bundled(name, language=language)
    values = {key: spec.example for key, spec in prompt.inputs.items() if spec.required}
    example = re.search(r"```json\n(\{\n  \".*?)```", prompt.render(**values).system or "", re.DOTALL)
    answer = example[1].strip() if example and prompt.render(**values).options.get("output") else "A plain answer."
    offline = transport([{"reply": answer}])
    with Client(http_client=httpx2.Client(transport=offline)) as client:
        reply = prompt.chat(client, **values)
    assert reply.text == answer
    assert (reply.parsed is not None) == ("output" in prompt.render(**values).options)
    assert offline.requests[0].body["messages"][-1]["role"] == "user"


@pytest.mark.parametrize("name", [entry.path.name for entry in bundled_library().entries])
def test_each_bundled_template_is_clean_under_every_rule(name):
    assert lint(bundled_library().path / name, select=("ALL",)) == []
