"""The public conformance data of the .prompty specification, read from ../shared.

Run here: all 12 fixtures, and of the vectors LoadConformance (28), Renderer (28) and Parser (19). The others are about
what happens after rendering and are no matter of templates: WireConformance (28) and Processor (23) fix how that
project's own clients shape requests and answers, TurnConformance (38) its agent loop, DiscoveryConformance (16) its
catalogue of models.
"""

import json
import re

import pytest
import yaml

from zlclient.prompts.agent import load_agent
from zlclient.prompts.inputs import check_values, read_inputs
from zlclient.prompts.messages import Message, parse_messages
from zlclient.prompts.prompt import Prompt
from zlclient.prompts.rendering import Renderer, render_text
from zlclient.prompts.segments import thread_mark

pytestmark = pytest.mark.shared


@pytest.fixture(scope="module")
def folder(shared):
    return shared / "vectors" / "prompty"


@pytest.fixture(scope="module")
def vectors(folder):
    everything = json.loads((folder / "vectors.json").read_text("utf-8"))["vectors"]
    return {
        contract: [item["vector"] for item in everything if item["contract"] == contract]
        for contract in ("LoadConformance", "Renderer", "Parser")
    }


def includes(expected, actual):
    """Whether `actual` has everything of `expected`; null means absent or null."""
    if isinstance(expected, dict):
        return isinstance(actual, dict) and all(
            actual.get(key) is None if value is None else includes(value, actual.get(key))
            for key, value in expected.items()
        )
    if isinstance(expected, list):
        return (
            isinstance(actual, list)
            and len(expected) == len(actual)
            and all(includes(one, other) for one, other in zip(expected, actual, strict=True))
        )
    return expected == actual


def test_load(vectors, folder, tmp_path):
    assert len(vectors["LoadConformance"]) == 28
    for number, vector in enumerate(vectors["LoadConformance"]):
        given, expected = vector["input"], vector["expected"]
        root = tmp_path / str(number) / given.get("agent_subdir", ".")
        root.mkdir(parents=True)
        for name, content in given.get("files", {}).items():
            (root / name).parent.mkdir(exist_ok=True)
            (root / name).write_text(json.dumps(content))
        if "error" in expected:
            with pytest.raises(Exception, match=re.compile(re.escape(expected["error"]), re.IGNORECASE)) as caught:
                load(given, root, folder)
            if "error_field" in expected:
                assert vars(caught.value)["input"] == expected["error_field"], vector["name"]
        else:
            assert includes(expected, load(given, root, folder)), vector["name"]


def load(given, root, folder):
    if "fixture" in given:
        Prompt.load(folder / "fixtures" / given["fixture"])
        text, root = (folder / "fixtures" / given["fixture"]).read_text("utf-8"), folder / "fixtures"
    else:
        text = given.get("frontmatter_raw") or f"---\n{yaml.safe_dump(given['frontmatter'])}---\nHello"
    agent = load_agent(text, root=root, env=given.get("env", {}))
    if "inputs" in given:
        agent["validated_inputs"] = check_values(read_inputs(agent, None, None, None), (), given["inputs"], None)
    return agent


def test_render(vectors):
    assert len(vectors["Renderer"]) == 28
    for vector in vectors["Renderer"]:
        given, expected = vector["input"], vector["expected"]
        if vector["operation"] == "renderSegments":
            check_segments(vector["name"], given, expected)
            continue
        values = dict(given["inputs"])
        for name, value in values.items():
            if isinstance(value, dict) and value.get("_kind") == "thread":
                values[name] = thread_mark(name, values)
        text = render_text(given["template"], given["engine"], values, undefined="empty")
        if "rendered" in expected:
            assert text == expected["rendered"], vector["name"]
        else:
            assert re.fullmatch(expected["nonce_pattern"], text), vector["name"]


def check_segments(name, given, expected):
    strict = frozenset(given.get("strict_props", []))
    if "error" in expected:
        with pytest.raises(Exception) as caught:
            Renderer(given["template"], given["engine"], strict=strict).segments(given["inputs"])
        assert type(caught.value).__name__ == expected["error"]
        return
    segments = Renderer(given["template"], given["engine"], strict=strict).segments(given["inputs"])
    # The specification has role lines inside literals; here they are segments of their own.
    merged = []
    for segment in segments:
        kind = "interp" if segment.kind == "interp" else "literal"
        if merged and kind == merged[-1]["kind"] == "literal":
            merged[-1]["text"] += segment.text
        else:
            strictly = kind == "interp" and segment.source in strict
            merged.append({"kind": kind, "text": segment.text, "source": segment.source, "strict": strictly})
    assert merged == expected["segments"], name


def test_parse(vectors):
    assert len(vectors["Parser"]) == 19
    for vector in vectors["Parser"]:
        threads = {
            name: [Message(message["role"], message["content"][0]["value"]) for message in messages]
            for name, messages in vector["input"].get("thread_inputs", {}).items()
        }
        found = [
            {"role": message.role, "content": [{"kind": "text", "value": message.content}]}
            | ({"metadata": dict(message.attributes)} if message.attributes else {})
            for message in parse_messages(vector["input"]["rendered"], threads)
        ]
        assert found == vector["expected"]["messages"], vector["name"]


def test_every_fixture_loads_and_renders(folder):
    fixtures = sorted((folder / "fixtures").glob("*.prompty"))
    assert len(fixtures) == 12
    kinds = {
        "thread": [{"role": "user", "content": "before"}],
        "image": "https://example.com/a.png",
        "audio": {"type": "input_audio", "input_audio": {"data": "", "format": "wav"}},
    }
    for fixture in fixtures:
        prompt = Prompt.load(fixture)
        values = {name: kinds.get(spec.kind, "given") for name, spec in prompt.inputs.items()}
        values |= {name: "given" for name in prompt.source.names if name not in values}
        rendered = prompt.render(**values)
        assert rendered.conversation, fixture.name
        assert prompt.upgrade() == prompt.source.text
