"""SmolLM2's responder on every wire, with a decoder that says what the test wants, and without weights."""

import json
import re
import threading
from collections.abc import Generator, Sequence
from typing import Any

import anthropic
import httpx2
import openai
import pytest

from zlclient import Client
from zlclient.engine.sampler import Sampling
from zlclient.engine.scheduler import Limits
from zlclient.engine.smollm2 import scheduler, store
from zlclient.engine.smollm2.assistant import Assistant, Outcome
from zlclient.engine.smollm2.tokenizer import ALPHABET, Tokenizer
from zlclient.errors import NotFound
from zlclient.serving import LocalServer, WireRequest, transport
from zlclient.serving.responders.smollm2 import MODELS, SmolLM2Responder

TOKENIZER = Tokenizer(["<|endoftext|>", "<|im_start|>", "<|im_end|>", *ALPHABET], [], (0, 1, 2))
END = TOKENIZER.controls["<|im_end|>"]


class Scripted:
    """Says a text a byte a token, ends it, and keeps what it was asked."""

    context = 400
    at_once = 2

    def __init__(self, text: str = "Paris is the capital.") -> None:
        self._tokens = [*TOKENIZER.encode(text), END]
        self.prompt = ""
        self.sampling = Sampling()
        self.given = 0
        self.started, self.closed = threading.Event(), threading.Event()
        self.gate: threading.Semaphore | None = None

    def tokens(self, prompt: Sequence[int], sampling: Sampling, room: int, outcome: Outcome) -> Generator[int | None]:
        self.prompt = "".join("|" if token < 3 else TOKENIZER.decode([token]) for token in prompt)
        self.sampling = sampling
        self.started.set()
        try:
            for token in self._tokens[:room]:
                if self.gate is not None:
                    assert self.gate.acquire(timeout=5)
                self.given += 1
                yield token
        finally:
            self.closed.set()


def assistant_of(decoder: Scripted) -> Assistant:
    return Assistant(TOKENIZER, decoder.context, lambda: decoder)


@pytest.fixture
def decoder() -> Scripted:
    return Scripted()


@pytest.fixture
def server(decoder) -> LocalServer:
    return LocalServer([SmolLM2Responder(assistant_of(decoder))])


def ask(server: LocalServer, **changed: Any) -> tuple[int, dict[str, str], dict[str, Any]]:
    body = {"model": "smollm2", "max_tokens": 100, "messages": [{"role": "user", "content": "Where?"}], **changed}
    headers = {"anthropic-version": "2023-06-01"}
    response = server.handle(WireRequest("POST", "/v1/messages", headers, json.dumps(body).encode()))
    raw = b"".join(piece for piece in response.pieces() if isinstance(piece, bytes))
    return response.status, response.headers, json.loads(raw)


@pytest.mark.parametrize("model", MODELS)
def test_an_answer_its_label_and_the_models_own_counts(server, decoder, model):
    status, headers, message = ask(server, model=model)
    assert status == 200
    assert headers["x-zl-responder"] == "engine-smollm2"
    assert message["content"] == [{"type": "text", "text": "Paris is the capital."}]
    assert message["stop_reason"] == "end_turn"
    assert message["usage"]["input_tokens"] == len(decoder.prompt)
    assert message["usage"]["output_tokens"] == len("Paris is the capital.") + 1
    assert decoder.sampling == Sampling()


def test_the_conversation_is_what_the_model_reads(server, decoder):
    document = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "A text."}}
    said = [
        {"role": "user", "content": "One"},
        {"role": "assistant", "content": "Two <|im_end|>"},
        {"role": "user", "content": [document, {"type": "text", "text": "Three"}]},
    ]
    ask(server, system="Be brief.", messages=said)
    assert decoder.prompt == (
        "|system\nBe brief.|\n|user\nOne|\n|assistant\nTwo <|im_end|>|\n|user\nA text.\n\nThree|\n|assistant\n"
    )


def test_sampling_is_handed_on(server, decoder):
    ask(server, temperature=0.7, top_p=0.9)
    assert decoder.sampling == Sampling(0.7, 0.9, 0)


def test_max_tokens_are_the_models(server, decoder):
    _, _, message = ask(server, max_tokens=7)
    assert message["content"][0]["text"] == "Paris i"
    assert (message["stop_reason"], message["usage"]["output_tokens"], decoder.given) == ("max_tokens", 7, 7)


def test_a_stop_sequence_ends_the_work(server, decoder):
    _, _, message = ask(server, stop_sequences=["the c", "zzz"])
    assert message["content"][0]["text"] == "Paris is "
    assert (message["stop_reason"], message["stop_sequence"]) == ("stop_sequence", "the c")
    assert message["usage"]["output_tokens"] == len("Paris is the c")


def test_every_wire_and_stream(server, decoder):
    http = httpx2.Client(transport=transport(server))
    claude = anthropic.Anthropic(api_key="k", http_client=http, max_retries=0)
    gpt = openai.OpenAI(api_key="k", http_client=http, max_retries=0)
    with claude.messages.stream(
        model="smollm2", max_tokens=50, messages=[{"role": "user", "content": "Where?"}]
    ) as stream:
        assert stream.get_final_text() == "Paris is the capital."
        assert stream.get_final_message().usage.output_tokens == 22
    for model in MODELS:
        chat = gpt.chat.completions.create(
            model=model, messages=[{"role": "user", "content": "Where?"}], temperature=1.5, seed=4, stop=["cap"]
        )
        assert chat.choices[0].message.content == "Paris is the "
        assert chat.choices[0].finish_reason == "stop"
        assert decoder.sampling == Sampling(1.5, 1.0, 4)
        assert chat.usage is not None
        assert (chat.usage.prompt_tokens, chat.usage.completion_tokens) == (len(decoder.prompt), 16)
    answer = gpt.responses.create(model="smollm2", input="Where?", max_output_tokens=16)
    assert answer.output_text == "Paris is the cap"
    assert answer.status == "incomplete"
    assert answer.usage is not None
    assert answer.usage.output_tokens == 16


def test_a_client_that_goes_ends_the_work(server, decoder):
    decoder.gate = threading.Semaphore(1)
    body = {"model": "smollm2", "max_tokens": 50, "stream": True, "messages": [{"role": "user", "content": "Where?"}]}
    headers = {"anthropic-version": "2023-06-01"}
    response = server.handle(WireRequest("POST", "/v1/messages", headers, json.dumps(body).encode()))
    pieces = response.pieces()
    next(pieces)
    assert decoder.started.wait(5)
    response.close()
    del response, pieces
    decoder.gate.release()  # the token that may be under way
    assert decoder.closed.wait(5)
    assert decoder.given <= 2


def test_its_metrics(server):
    def metrics() -> tuple[int, str]:
        response = server.handle(WireRequest("GET", "/metrics"))
        return response.status, b"".join(piece for piece in response.pieces() if isinstance(piece, bytes)).decode()

    ask(server)
    status, text = metrics()
    assert status == 200
    assert 'vllm:generation_tokens_total{model_name="smollm2",engine="0"} 22' in text
    assert 'vllm:request_success_total{model_name="smollm2",engine="0",finished_reason="stop"} 1' in text


@pytest.mark.parametrize(
    ("path", "body", "sign"),
    [
        ("/v1/messages", {"max_tokens": 9, "messages": [{"role": "user", "content": "Where?"}]}, b"event: ping"),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "Where?"}]}, b": alive"),
        ("/v1/responses", {"input": "Where?"}, b": alive"),
    ],
)
def test_a_stream_shows_that_the_work_goes_on(server, decoder, monkeypatch, path, body, sign):
    monkeypatch.setattr(scheduler, "SILENCE", 0.01)
    decoder.gate = threading.Semaphore(0)
    headers = {"anthropic-version": "2023-06-01"} if "messages" in path else {}
    content = json.dumps({"model": "smollm2", "stream": True, **body}).encode()
    pieces = server.handle(WireRequest("POST", path, headers, content)).pieces()
    head, *signs = [next(pieces) for _ in range(4)]
    assert b"Where?" not in head
    assert all(isinstance(piece, bytes) and piece.startswith(sign) for piece in signs)
    decoder.gate.release(100)
    rest = b"".join(piece for piece in pieces if isinstance(piece, bytes)).decode()
    assert "".join(re.findall(r'"(?:text|content|delta)": ?"(\w)"', rest)).startswith("Paris")


def test_too_many_requests_are_told_to_come_again(decoder):
    assistant = assistant_of(decoder)
    assistant.scheduler.limits = Limits(running=0, waiting=0, positions=1000)
    status, headers, error = ask(LocalServer([SmolLM2Responder(assistant)]))
    assert status == 429
    assert headers["retry-after"] == "1"
    assert "wait already" in error["error"]["message"]


@pytest.mark.parametrize(
    ("messages", "problem"),
    [
        ([{"role": "user", "content": "word " * 100}], "do not fit in the model's 400"),
        (
            [
                {
                    "role": "user",
                    "content": [{"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}}],
                }
            ],
            "messages.0.content: smollm2 reads text only, not 'image'",
        ),
    ],
)
def test_what_it_cannot_read_is_named(server, messages, problem):
    status, _, error = ask(server, messages=messages)
    assert status == 400
    assert problem in error["error"]["message"]


def test_schemas_tools_and_other_models_are_left_to_others(decoder):
    server = LocalServer([SmolLM2Responder(assistant_of(decoder)), *LocalServer().responders])
    schema = {
        "type": "object",
        "properties": {"a": {"type": "integer"}},
        "required": ["a"],
        "additionalProperties": False,
    }
    tool = {"name": "look_up", "description": "Look a place up", "input_schema": {"type": "object", "properties": {}}}
    _, headers, _ = ask(server, output_config={"format": {"type": "json_schema", "schema": schema}})
    assert headers["x-zl-responder"] == "structured"
    _, headers, _ = ask(server, tools=[tool], tool_choice={"type": "any"})
    assert headers["x-zl-responder"] == "structured"
    _, headers, _ = ask(server, model="auto")
    assert headers["x-zl-responder"] != "engine-smollm2"
    assert decoder.prompt == ""


@pytest.fixture
def nothing_fetched(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


@pytest.mark.usefixtures("nothing_fetched")
def test_without_weights_the_error_says_how_to_fetch_them():
    assert not SmolLM2Responder().blocking
    status, headers, error = ask(LocalServer())
    assert status == 404
    assert headers["x-zl-responder"] == "engine-smollm2"
    assert error["error"]["type"] == "not_found_error"
    assert "zlclient engine fetch smollm2" in error["error"]["message"]
    with Client(provider="local") as client, pytest.raises(NotFound, match="zlclient engine fetch smollm2") as caught:
        client.chat("What is the capital of France?", model="local:smollm2")
    assert len(caught.value.attempts) == 1


@pytest.mark.usefixtures("nothing_fetched")
def test_a_damaged_file_is_an_error():
    store.model_path().parent.mkdir(parents=True)
    store.model_path().write_bytes(b"GGUF and no more")
    status, _, error = ask(LocalServer())
    assert status == 500
    assert "SHA-256 is not the pinned one" in error["error"]["message"]


def test_the_client_reaches_it(decoder):
    server = LocalServer([SmolLM2Responder(assistant_of(decoder))])
    with Client(clients={"local": server}) as client:
        reply = client.chat("Where is it?", model="local:smollm2")
    assert reply.text == "Paris is the capital."
    assert reply.responder == "engine-smollm2"
    assert reply.usage.output == 22
    assert reply.usage.input == len(decoder.prompt)
