"""Recorded from a faulty server over sockets and replayed: the SDKs meet the same answers and the same faults."""

import json
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anthropic
import httpx2
import openai
import pytest

from zlclient.serving.app import Listener
from zlclient.serving.build import build_server
from zlclient.serving.proxy import RecordingProxy
from zlclient.serving.recording import CassetteWriter

pytestmark = pytest.mark.shared
SECRETS = ("sk-ant-api03-secret12345678", "sk-proj-secret1234567890")
STEPS: list[dict[str, Any]] = [
    {},
    {"status": 429, "headers": {"retry-after": "3", "anthropic-organization-id": "xyz"}},
    {"drop": "before"},
    {"drop": "mid"},
    {},
    {"body": {"broken": True}},
]


@pytest.fixture
def faulty(shared: Path) -> Iterator[str]:
    """The URL of ../shared/tools/fault_server.py."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, str(shared / "tools" / "fault_server.py"), str(port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield f"http://127.0.0.1:{port}"
        process.terminate()


def outcomes(base: str, script: Callable[[dict[str, Any]], object]) -> list[Any]:
    """What the SDKs make of each step: the answer, or the error's name."""
    claude = anthropic.Anthropic(base_url=base, api_key=SECRETS[0], max_retries=0)
    gpt = openai.OpenAI(base_url=f"{base}/v1", api_key=SECRETS[1], max_retries=0)
    found: list[Any] = []
    for number, step in enumerate(STEPS):
        question: Any = [{"role": "user", "content": f"question {number}"}]
        for ask in (_whole, _streamed):
            script(step)
            found.append(ask(claude, question))
        script(step)
        try:
            found.append(gpt.chat.completions.create(model="gpt-4o", messages=question).to_dict())
        except openai.APIError as error:
            found.append((type(error).__name__, getattr(error, "body", None)))
    return found


def _whole(client: anthropic.Anthropic, question: Any) -> Any:
    try:
        return client.messages.create(model="claude-sonnet-4-6", max_tokens=9, messages=question).to_dict()
    except anthropic.APIError as error:
        return type(error).__name__, error.body


def _streamed(client: anthropic.Anthropic, question: Any) -> list[Any]:
    events: list[Any] = []
    try:
        events.extend(
            event.to_dict()
            for event in client.messages.create(model="claude-sonnet-4-6", max_tokens=9, messages=question, stream=True)
        )
    except (anthropic.APIError, httpx2.TransportError) as error:
        events.append(type(error).__name__)
    return events


def test_what_was_recorded_from_a_faulty_server_is_replayed_alike(faulty: str, tmp_path: Path):
    path = tmp_path / "c.jsonl"
    with Listener(RecordingProxy(faulty, CassetteWriter(path))) as recorder:
        recorded = outcomes(recorder.url, lambda step: httpx2.post(f"{faulty}/_script", json={"steps": [step]}))
    assert len(path.read_text().splitlines()) == 3 * len(STEPS)
    assert {outcome[0] for outcome in recorded if isinstance(outcome, tuple)} >= {
        "RateLimitError",
        "APIConnectionError",
    }
    assert recorded[10][-1] == "RemoteProtocolError"
    assert not any(secret in path.read_text() for secret in (*SECRETS, "xyz"))
    with Listener(build_server(replay=path, strict=True)) as listener:
        replayed = outcomes(listener.url, lambda step: None)
    assert json.dumps(replayed) == json.dumps(recorded)
