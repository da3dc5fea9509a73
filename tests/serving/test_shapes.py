"""What we emit validates against the SDKs' own types, without a field they do not know; what we accept matches theirs."""

import json
from collections.abc import Iterable
from typing import Any, get_args

import pydantic
import pytest
from anthropic.types import (
    Message,
    MessageTokensCount,
    ModelInfo,
    RawMessageStreamEvent,
    message_count_tokens_params,
    message_create_params,
)
from anthropic.types.beta import message_create_params as beta_message_create_params
from anthropic.types.messages import MessageBatch, MessageBatchIndividualResponse
from openai.types import Batch, CreateEmbeddingResponse, FileObject, batch_create_params, embedding_create_params
from openai.types import Model as OpenAIModel
from openai.types.chat import ChatCompletion, ChatCompletionChunk, completion_create_params
from openai.types.responses import (
    InputTokenCountResponse,
    Response,
    ResponseStreamEvent,
    input_token_count_params,
    response_create_params,
)

from zlclient.serving import LocalServer, WireRequest, WireResponse
from zlclient.serving.fields import accepted_fields
from zlclient.serving.responders.base import Ask, Event, Fault, Finish, Responder, Text, Thinking, ToolCall

ANSWERS: dict[str, tuple[Event, ...]] = {
    "text": (Text("hello there, 你好 😀"),),
    "thinking": (Thinking("let me see"), Text("done")),
    "tool": (Text("I look. "), ToolCall("look", {"at": "x", "n": [1, 2]}), ToolCall("look", {})),
    "only tool": (ToolCall("look", {"at": "x"}),),
    "everything": (Thinking("a"), Text("b"), ToolCall("look", {"c": 1}), Text("d")),
    "refusal": (Text("no"), Finish("refusal")),
    "nothing": (),
    "long": (Text("word " * 200),),
    "error": (Text("half"), Fault("status", 529)),
    "rate limited": (Text("half"), Fault("status", 429)),
}


class Fixed(Responder):
    name = "fixed"

    def respond(self, ask: Ask) -> Iterable[Event]:
        return ANSWERS[ask.headers["x-answer"]]


def send(path: str, answer: str, **body: Any) -> WireResponse:
    headers = {"anthropic-version": "2026-10-21"} if "messages" in path else {}
    raw = json.dumps(body).encode()
    return LocalServer([Fixed()]).handle(WireRequest("POST", path, {**headers, "x-answer": answer}, raw))


def loads(response: WireResponse) -> Any:
    return json.loads(b"".join(piece for piece in response.pieces() if isinstance(piece, bytes)))


def events_of(response: WireResponse) -> list[Any]:
    text = b"".join(piece for piece in response.pieces() if isinstance(piece, bytes)).decode()
    lines = [line[6:] for line in text.splitlines() if line.startswith("data: ") and line != "data: [DONE]"]
    return [json.loads(line) for line in lines]


def strict(kind: Any, data: Any) -> Any:
    """`data` as `kind`, refusing values of other types and fields that the type does not have."""
    value = pydantic.TypeAdapter(kind).validate_python(data)
    assert not list(unknown(value)), data
    return value


def unknown(value: Any, where: str = "") -> Iterable[str]:
    if isinstance(value, pydantic.BaseModel):
        yield from (f"{where}.{name}" for name in value.model_extra or {})
        for name in type(value).model_fields:
            yield from unknown(getattr(value, name), f"{where}.{name}")
    elif isinstance(value, list):
        for item in value:
            yield from unknown(item, where)


MESSAGES = [{"role": "user", "content": "hello"}]
LOOK = {"name": "look", "input_schema": {"type": "object"}}


@pytest.mark.parametrize("answer", ANSWERS)
def test_anthropic(answer: str):
    body = {"model": "claude-sonnet-5-5", "max_tokens": 60, "messages": MESSAGES, "tools": [LOOK]}
    if ANSWERS[answer] and isinstance(ANSWERS[answer][-1], Fault):
        assert loads(send("/v1/messages", answer, **body))["type"] == "error"
    else:
        strict(Message, loads(send("/v1/messages", answer, **body)))
    for event in events_of(send("/v1/messages", answer, stream=True, **body)):
        if event["type"] not in ("ping", "error"):
            strict(RawMessageStreamEvent, event)


@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize("n", [1, 2])
def test_chat(answer: str, n: int):
    body = {"model": "gpt-4o", "max_tokens": 60, "messages": MESSAGES, "n": n}
    if not (ANSWERS[answer] and isinstance(ANSWERS[answer][-1], Fault)):
        made = strict(ChatCompletion, loads(send("/v1/chat/completions", answer, **body)))
        assert len(made.choices) == n
    options = {"stream_options": {"include_usage": True}, "stream": True}
    for chunk in events_of(send("/v1/chat/completions", answer, **options, **body)):
        if "error" not in chunk:
            strict(ChatCompletionChunk, chunk)


@pytest.mark.parametrize("answer", ANSWERS)
def test_responses(answer: str):
    body: dict[str, Any] = {"model": "gpt-4o", "max_output_tokens": 60, "input": "hello", "instructions": "be kind"}
    body["tools"] = [{"type": "function", "name": "look", "parameters": {"type": "object"}, "strict": False}]
    if not (ANSWERS[answer] and isinstance(ANSWERS[answer][-1], Fault)):
        strict(Response, loads(send("/v1/responses", answer, **body)))
    events = events_of(send("/v1/responses", answer, stream=True, **body))
    for event in events:
        strict(ResponseStreamEvent, event)
    assert [event["sequence_number"] for event in events] == list(range(len(events)))


def test_every_stream_event_that_a_model_without_server_tools_sends_is_sent():
    """The others belong to the providers' own tools (search, code, images), audio and background responses."""
    body = {"model": "gpt-4o", "input": "hello", "stream": True}
    sent = {event["type"] for answer in ANSWERS for event in events_of(send("/v1/responses", answer, **body))}
    sent |= {event["type"] for event in events_of(send("/v1/responses", "long", **body, max_output_tokens=16))}
    union = get_args(get_args(ResponseStreamEvent)[0])
    known = {get_args(kind.model_fields["type"].annotation)[0] for kind in union}
    families = (
        "audio",
        "code_interpreter",
        "file_search",
        "web_search",
        "image_gen",
        "mcp",
        "shell",
        "custom",
        "compact",
    )
    others = {name for name in known if any(family in name for family in families)}
    others |= {"response.queued", "response.refusal.delta", "response.refusal.done"}
    others |= {"response.reasoning_text.delta", "response.reasoning_text.done", "response.output_text.annotation.added"}
    assert known - others == sent


def get(server: LocalServer, path: str, **headers: str) -> Any:
    return loads(server.handle(WireRequest("GET", path, headers)))


def test_models_and_counts_and_embeddings():
    server = LocalServer()
    listed = get(server, "/v1/models", **{"anthropic-version": "2026-10-21"})["data"]
    assert listed
    for model in listed:
        strict(ModelInfo, model)
    for model in get(server, "/v1/models")["data"]:
        strict(OpenAIModel, model)
    strict(OpenAIModel, get(server, "/v1/models/gpt-4o"))
    count = {"model": "claude-sonnet-5", "messages": MESSAGES}
    strict(MessageTokensCount, loads(send("/v1/messages/count_tokens", "text", **count)))
    strict(InputTokenCountResponse, loads(send("/v1/responses/input_tokens", "text", model="gpt-4o", input="hi")))
    made = loads(send("/v1/embeddings", "text", model="text-embedding-3-small", input=["a", "b"]))
    assert len(strict(CreateEmbeddingResponse, made).data) == 2


def test_batches_and_files():
    server = LocalServer()
    headers = {"anthropic-version": "2026-10-21"}
    params = {"model": "claude-sonnet-5", "max_tokens": 9, "messages": MESSAGES}
    requests = [{"custom_id": "a", "params": params}, {"custom_id": "b", "params": {**params, "max_tokens": 0}}]
    raw = json.dumps({"requests": requests}).encode()
    path = "/v1/messages/batches"
    batch = strict(MessageBatch, loads(server.handle(WireRequest("POST", path, headers, raw))))
    for _ in range(2):
        strict(MessageBatch, get(server, f"{path}/{batch.id}", **headers))
    results = server.handle(WireRequest("GET", f"{path}/{batch.id}/results", headers))
    lines = b"".join(piece for piece in results.pieces() if isinstance(piece, bytes)).splitlines()
    kinds = [strict(MessageBatchIndividualResponse, json.loads(line)).result.type for line in lines]
    assert kinds == ["succeeded", "errored"]

    line = {"custom_id": "a", "method": "POST", "url": "/v1/chat/completions"}
    line["body"] = {"model": "gpt-4o", "messages": MESSAGES}  # type: ignore[assignment]
    form = b'--x\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nbatch\r\n--x\r\n'
    form += b'Content-Disposition: form-data; name="file"; filename="in.jsonl"\r\n\r\n'
    form += json.dumps(line).encode() + b"\r\n--x--\r\n"
    upload = WireRequest("POST", "/v1/files", {"content-type": "multipart/form-data; boundary=x"}, form)
    file = strict(FileObject, loads(server.handle(upload)))
    asked = {"input_file_id": file.id, "endpoint": "/v1/chat/completions", "completion_window": "24h"}
    made = strict(Batch, loads(server.handle(WireRequest("POST", "/v1/batches", {}, json.dumps(asked).encode()))))
    for _ in range(2):
        strict(Batch, get(server, f"/v1/batches/{made.id}"))


SENT_AS_HEADERS = {"betas", "user_profile_id", "workspace_id"}


@pytest.mark.parametrize(
    ("endpoint", "params"),
    [
        ("messages", message_create_params.MessageCreateParamsStreaming),
        ("count_tokens", message_count_tokens_params.MessageCountTokensParams),
        ("chat", completion_create_params.CompletionCreateParamsStreaming),
        ("responses", response_create_params.ResponseCreateParamsStreaming),
        ("responses_input_tokens", input_token_count_params.InputTokenCountParams),
        ("embeddings", embedding_create_params.EmbeddingCreateParams),
        ("batches", batch_create_params.BatchCreateParams),
    ],
)
def test_accepted_fields_are_the_sdks_own(endpoint: str, params: Any):
    assert set(accepted_fields(endpoint)) == (params.__required_keys__ | params.__optional_keys__) - SENT_AS_HEADERS


def test_accepted_beta_fields_are_the_sdks_own():
    params = beta_message_create_params.MessageCreateParamsStreaming
    beta = (params.__required_keys__ | params.__optional_keys__) - SENT_AS_HEADERS
    assert {*accepted_fields("messages"), *accepted_fields("messages_beta")} == beta
