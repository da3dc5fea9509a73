"""The reference engine behind the wires: what it says of itself, its refusals, its log probabilities, its metrics."""

import argparse
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest
from waiting import until

from zlclient.cli.serve import add_parser
from zlclient.engine.checkpoint import load_shipped
from zlclient.engine.runner import Engine
from zlclient.engine.scheduler import Limits, Load, QueueFull
from zlclient.errors import ConfigError
from zlclient.serving import LocalServer, WireRequest, WireResponse, transport
from zlclient.serving.app import Listener
from zlclient.serving.responders.engine import EngineResponder
from zlclient.serving.responders.offline import OfflineResponder

PASSAGE = "Text: The harbour was opened in 1931. Its bridge is 420 metres long. The mayor is Ada Berg.\n\n"
QUESTION = PASSAGE + "Question: How long is the bridge?"
NOTHING = Load(0, 0, 0)


def serve(**options: Any) -> tuple[LocalServer, Engine]:
    engine = Engine(load_shipped("auto"), **options)
    return LocalServer([EngineResponder("auto", engine), OfflineResponder()]), engine


@pytest.fixture(scope="module")
def both() -> LocalServer:
    return LocalServer([EngineResponder("auto"), EngineResponder("legacy"), OfflineResponder()])


def post(server: LocalServer, path: str, body: dict[str, Any]) -> WireResponse:
    headers = {"anthropic-version": "2026-10-21"} if path == "/v1/messages" else {}
    return server.handle(WireRequest("POST", path, headers, json.dumps(body).encode()))


def ask(server: LocalServer, model: str = "auto", question: str = QUESTION, path: str = "/v1/messages") -> WireResponse:
    messages = [{"role": "user", "content": question}]
    return post(server, path, {"model": model, "max_tokens": 200, "messages": messages})


def body_of(response: WireResponse) -> dict[str, Any]:
    assert isinstance(response.body, bytes)
    return json.loads(response.body)


def get(server: LocalServer, path: str) -> WireResponse:
    return server.handle(WireRequest("GET", path))


@pytest.mark.parametrize("model", ["auto", "legacy", "local:auto"])
@pytest.mark.parametrize("path", ["/v1/messages", "/v1/chat/completions"])
def test_an_answer_says_which_generation_gave_it_and_what_was_cached(both: LocalServer, model: str, path: str):
    long = PASSAGE * 20 + "Question: How long is the bridge?"
    first, second = (ask(both, model, long, path) for _ in range(2))
    assert first.status == second.status == 200
    assert second.headers["x-zl-generation"] == model.removeprefix("local:")
    assert second.headers["x-zl-responder"] == f"engine-{second.headers['x-zl-generation']}"
    assert int(second.headers["x-zl-cached-tokens"]) >= 64


def test_other_answers_say_neither(both: LocalServer):
    headers = ask(both, "auto", "Hello!").headers
    assert headers["x-zl-responder"] == "offline"
    assert not headers.keys() & {"x-zl-generation", "x-zl-cached-tokens"}


def test_thinking_comes_after_the_head(both: LocalServer):
    thinking = {"type": "adaptive"}
    response = post(
        both,
        "/v1/messages",
        {
            "model": "auto",
            "max_tokens": 200,
            "stream": True,
            "thinking": thinking,
            "messages": [{"role": "user", "content": QUESTION}],
        },
    )
    kinds = re.findall(
        rb'"type":"(text_delta|thinking_delta)"', b"".join(piece for piece in response.pieces() if type(piece) is bytes)
    )
    assert kinds[0] == b"thinking_delta"
    assert kinds[-1] == b"text_delta"
    assert response.headers["x-zl-generation"] == "auto"


def test_log_probabilities_on_the_chat_wire(both: LocalServer):
    client = openai.OpenAI(api_key="k", http_client=httpx2.Client(transport=transport(both)))  # type: ignore[arg-type]
    asked: Any = {
        "model": "auto",
        "messages": [{"role": "user", "content": QUESTION}],
        "logprobs": True,
        "top_logprobs": 3,
    }
    (choice,) = client.chat.completions.create(**asked).choices
    assert choice.logprobs is not None
    tokens = choice.logprobs.content or []
    assert bytes(byte for token in tokens for byte in token.bytes or []).decode() == choice.message.content
    assert all(token.logprob <= 0 and len(token.top_logprobs) == 3 for token in tokens)
    streamed = [
        token
        for chunk in client.chat.completions.create(**asked, stream=True)
        for part in chunk.choices
        if part.logprobs
        for token in part.logprobs.content or []
    ]
    assert streamed == tokens
    asked.pop("top_logprobs")
    (choice,) = client.chat.completions.create(**asked).choices
    assert choice.logprobs is not None
    assert all(token.top_logprobs == [] for token in choice.logprobs.content or [])
    asked.pop("logprobs")
    assert client.chat.completions.create(**asked).choices[0].logprobs is None


@pytest.mark.parametrize("wrong", [{"top_logprobs": 2}, {"logprobs": True, "top_logprobs": 21}])
def test_wrong_log_probabilities_are_refused(both: LocalServer, wrong: dict[str, Any]):
    body = {"model": "auto", "messages": [{"role": "user", "content": QUESTION}], **wrong}
    response = post(both, "/v1/chat/completions", body)
    assert (response.status, body_of(response)["error"]["param"]) == (400, "top_logprobs")


def refuse(*_: object) -> None:
    raise QueueFull("2 requests wait already")


@pytest.mark.parametrize("stream", [False, True])
def test_a_full_queue_is_429_with_a_time_to_come_back(monkeypatch: pytest.MonkeyPatch, stream: bool):
    server, engine = serve()
    monkeypatch.setattr(engine.scheduler, "submit", refuse)
    body = {
        "model": "auto",
        "max_tokens": 9,
        "stream": stream,
        "messages": [{"role": "user", "content": QUESTION}],
    }
    found = {path: post(server, path, body) for path in ("/v1/messages", "/v1/chat/completions")}
    assert {response.status for response in found.values()} == {429}
    assert {response.headers["retry-after"] for response in found.values()} == {"1"}
    assert body_of(found["/v1/messages"])["error"]["type"] == "rate_limit_error"
    assert body_of(found["/v1/chat/completions"])["error"]["code"] == "rate_limit_exceeded"


def test_a_prompt_that_never_fits_is_413():
    server, _ = serve(limits=Limits(positions=30))
    found = {path: ask(server, path=path) for path in ("/v1/messages", "/v1/chat/completions")}
    assert {response.status for response in found.values()} == {413}
    assert body_of(found["/v1/messages"])["error"]["type"] == "request_too_large"
    error = body_of(found["/v1/chat/completions"])["error"]
    assert (error["type"], error["code"]) == ("invalid_request_error", "context_length_exceeded")
    assert "prompt is too long" in error["message"]


HEADERS = {"anthropic-version": "2026-10-21", "x-api-key": "k"}
SAMPLE = re.compile(r'([a-z0-9_:]+)\{((?:[a-z_]+="(?:[^"\\]|\\.)*",?)*)\} (\S+)')


def parsed(text: str) -> dict[str, dict[str, float]]:
    """Prometheus text: name → labels as written → value; fails on what the format does not allow."""
    found: dict[str, dict[str, float]] = {}
    kinds: dict[str, str] = {}
    assert text.endswith("\n")
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name not in kinds
            kinds[name] = kind
        elif not line.startswith("# HELP "):
            match = SAMPLE.fullmatch(line)
            assert match, line
            name, labels, value = match.groups()
            family = re.sub(r"_(bucket|sum|count)$", "", name)
            assert kinds.get(family) == "histogram" or kinds.get(name) in ("counter", "gauge"), line
            assert labels not in found.setdefault(name, {})
            found[name][labels] = float(value)
    return found


NAMES = {
    "num_requests_running",
    "num_requests_waiting",
    "kv_cache_usage_perc",
    "prefix_cache_queries_total",
    "prefix_cache_hits_total",
    "prompt_tokens_total",
    "generation_tokens_total",
    "num_preemptions_total",
    "request_success_total",
    "time_to_first_token_seconds",
    "inter_token_latency_seconds",
    "e2e_request_latency_seconds",
    "request_queue_time_seconds",
    "request_prefill_time_seconds",
    "request_decode_time_seconds",
    "request_inference_time_seconds",
    "request_prompt_tokens",
    "request_generation_tokens",
}


def test_metrics_count_what_happened():
    server, engine = serve()
    for _ in range(3):
        ask(server, question=PASSAGE * 5 + "Question: How long is the bridge?")
    response = get(server, "/metrics")
    assert (response.status, response.headers["content-type"][:25]) == (200, "text/plain; version=0.0.4")
    assert isinstance(response.body, bytes)
    found = parsed(response.body.decode())
    families = {re.sub(r"_(bucket|sum|count)$", "", name).removeprefix("vllm:") for name in found}
    assert families >= NAMES
    own = 'model_name="auto",engine="0"'
    assert found["vllm:time_to_first_token_seconds_count"][own] == 3
    buckets = found["vllm:time_to_first_token_seconds_bucket"]
    assert buckets[f'{own},le="+Inf"'] == 3
    assert f'{own},le="0.2"' in buckets
    assert list(buckets.values()) == sorted(buckets.values())
    assert sum(found["vllm:request_success_total"].values()) == 3
    assert found["vllm:generation_tokens_total"][own] == found["vllm:request_generation_tokens_sum"][own] > 0
    assert found["vllm:prompt_tokens_total"][own] == found["vllm:request_prompt_tokens_sum"][own]
    assert found["vllm:prefix_cache_hits_total"][own] == engine.cache.stats.hits > 0
    assert found["vllm:num_requests_running"][own] == found["vllm:kv_cache_usage_perc"][own] == 0
    gaps = found["vllm:inter_token_latency_seconds_count"][own]
    assert gaps == found["vllm:generation_tokens_total"][own] - 3


def test_both_engines_are_in_one_page(both: LocalServer):
    for model in ("auto", "legacy"):
        ask(both, model)
    response = get(both, "/metrics")
    assert isinstance(response.body, bytes)
    assert len(parsed(response.body.decode())["vllm:num_requests_running"]) == 2


@pytest.mark.parametrize("path", ["/metrics", "/health/zero-layer"])
def test_without_an_engine_there_is_nothing_to_watch(path: str):
    assert get(LocalServer([OfflineResponder()]), path).status == 404


def test_the_probe_finds_no_position_layer_and_no_check_loop_in_auto(both: LocalServer):
    response = get(both, "/health/zero-layer")
    found = body_of(response)
    assert (response.status, found["ok"], found["generation"]) == (200, True, "auto")
    assert (found["position_layer"], found["check_loop"]) == ("none", "none")
    assert [found[part]["active"] for part in ("anchors", "entropy_gate", "thresholds")] == [True] * 3
    assert found["probe"]["domain"] == "finance"
    assert "head" in found["operations"]
    assert found["skipped"] == ["position layer (no pos_encoder tensors)", "check loop (no check tensors)"]


def test_the_probe_says_so_when_they_are_there():
    server = LocalServer([EngineResponder("auto", Engine.shipped("legacy"))])
    response = get(server, "/health/zero-layer")
    found = body_of(response)
    assert (response.status, found["ok"]) == (503, False)
    assert (found["position_layer"], found["check_loop"]) == ("active", "active")
    assert not found["anchors"]["active"]


def test_whoever_watches_needs_no_key():
    server = LocalServer([EngineResponder("auto")], require_key=True)
    for path in ("/health", "/metrics", "/health/zero-layer"):
        assert get(server, path).status == 200
    assert ask(server).status == 401


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_goes_is_forgotten_by_the_engine(monkeypatch: pytest.MonkeyPatch, stream: bool):
    server, engine = serve()
    go, decode = threading.Event(), engine.model.decode
    reached = threading.Event()

    def slow(*arguments: Any) -> Any:
        reached.set()
        assert go.wait(60)
        return decode(*arguments)

    monkeypatch.setattr(engine.model, "decode", slow)
    body = {"model": "auto", "max_tokens": 200, "stream": stream, "messages": [{"role": "user", "content": QUESTION}]}
    content = json.dumps(body).encode()
    lines = ["POST /v1/messages HTTP/1.1", "host: local", "anthropic-version: 2026-10-21"]
    head = "\r\n".join([*lines, f"content-length: {len(content)}", "", ""]).encode()
    with Listener(server) as listener:
        host, port = listener.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=30) as client:
            client.sendall(head + content)
            assert reached.wait(60)
        until(lambda: any(request.cancelled for request in engine.scheduler._running))
        go.set()
        until(lambda: engine.scheduler.load == NOTHING)
    ended = engine.metrics.lines(engine, "")["vllm:request_success_total"]
    assert any(line.endswith('"abort"} 1') for line in ended)


def test_many_clients_at_once_get_what_one_gets():
    server, engine = serve()
    questions = [f"{PASSAGE * (1 + at % 5)}Question: What is number {at % 8}?" for at in range(12)]

    def text(url: str, question: str) -> str:
        body = {"model": "auto", "max_tokens": 200, "messages": [{"role": "user", "content": question}]}
        headers = {"anthropic-version": "2026-10-21"}
        return httpx2.post(f"{url}/v1/messages", json=body, headers=headers, timeout=60).json()["content"][0]["text"]

    with Listener(server) as listener:
        alone = [text(listener.url, question) for question in questions]
        together = [""] * len(questions)

        def work(at: int) -> None:
            together[at] = text(listener.url, questions[at])

        threads = [threading.Thread(target=work, args=(at,)) for at in range(len(questions))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert together == alone
    assert engine.scheduler.load == NOTHING
    assert engine.cache.stats.in_use == 0


SERVE = "import argparse, sys; from zlclient.cli import serve; p = argparse.ArgumentParser(); "
SERVE += "serve.add_parser(p.add_subparsers()); a = p.parse_args(['serve', *sys.argv[1:]]); sys.exit(a.run(a))"


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_the_command_says_what_it_skips_and_writes_a_profile(tmp_path: Path):
    file = tmp_path / "profile.svg"
    command = [sys.executable, "-c", SERVE, "--port", "0", "--engine", "--profile", str(file)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        url = process.stdout.readline().split()[2]
        body = {"model": "auto", "max_tokens": 200, "messages": [{"role": "user", "content": PASSAGE * 60 + QUESTION}]}
        answer = httpx2.post(f"{url}/v1/messages", json=body, headers=HEADERS, timeout=60)
        assert answer.headers["x-zl-generation"] == "auto"
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=30)
        assert process.returncode == 0
    finally:
        process.kill()
        process.communicate()
    assert said.splitlines() == [
        "zlclient serve: engine legacy: skipped anchors (no anchors tensor)",
        "zlclient serve: engine auto: skipped position layer (no pos_encoder tensors), check loop (no check tensors)",
    ]
    drawn = file.read_text("utf-8")
    assert "engine-auto" in drawn
    assert not re.search("position_bias|PositionBias|FidelityCheck|engine-legacy", drawn)


def test_a_profile_needs_the_engine_and_a_file_that_can_be_written(tmp_path: Path):
    parser = argparse.ArgumentParser()
    add_parser(parser.add_subparsers())
    for arguments in (["--profile", "x.svg"], ["--engine", "--profile", str(tmp_path / "none" / "x.svg")]):
        args = parser.parse_args(["serve", "--port", "0", *arguments])
        with pytest.raises(ConfigError, match="--profile"):
            args.run(args)
