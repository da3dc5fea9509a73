"""Faults through both SDKs, sync and async, in process and over a socket, end as ../shared/facts/providers.md says."""

from typing import Any

import anthropic
import httpx2
import openai
import pytest

from zlclient.serving import LocalServer, WireRequest
from zlclient.serving.faults import asked_fault
from zlclient.serving.responders.base import Fault

MESSAGES = [{"role": "user", "content": "hello there"}]
SONNET, GPT = "claude-sonnet-4-6", "gpt-4o"


def ask(kind: str, fault: str) -> dict[str, Any]:
    headers = {"x-zl-fault": fault}
    if kind == "anthropic":
        return {"model": SONNET, "max_tokens": 64, "messages": MESSAGES, "extra_headers": headers}
    return {"model": GPT, "messages": MESSAGES, "extra_headers": headers}


STATUSES: list[tuple[int, type[Exception], type[Exception]]] = [
    (400, anthropic.BadRequestError, openai.BadRequestError),
    (401, anthropic.AuthenticationError, openai.AuthenticationError),
    (403, anthropic.PermissionDeniedError, openai.PermissionDeniedError),
    (404, anthropic.NotFoundError, openai.NotFoundError),
    (409, anthropic.ConflictError, openai.ConflictError),
    (413, anthropic.APIStatusError, openai.APIStatusError),
    (422, anthropic.UnprocessableEntityError, openai.UnprocessableEntityError),
    (429, anthropic.RateLimitError, openai.RateLimitError),
    (500, anthropic.InternalServerError, openai.InternalServerError),
    (503, anthropic.InternalServerError, openai.InternalServerError),
    (529, anthropic.OverloadedError, openai.InternalServerError),
]


@pytest.mark.parametrize(("status", "theirs", "others"), STATUSES)
@pytest.mark.parametrize("stream", [False, True])
async def test_statuses(either, status: int, theirs: type[Exception], others: type[Exception], stream: bool):
    with pytest.raises(theirs) as caught:
        either.anthropic.messages.create(**ask("anthropic", str(status)), stream=stream)
    error = caught.value
    assert error.status_code == status  # type: ignore[attr-defined]
    assert error.request_id.startswith("req_")  # type: ignore[attr-defined]
    assert error.body["type"] == "error"  # type: ignore[attr-defined]
    assert error.body["request_id"] == error.request_id  # type: ignore[attr-defined]
    with pytest.raises(theirs):
        await either.async_anthropic.messages.create(**ask("anthropic", str(status)), stream=stream)
    with pytest.raises(others) as caught:
        either.openai.chat.completions.create(**ask("openai", str(status)), stream=stream)
    assert caught.value.body["message"]  # type: ignore[attr-defined]
    assert caught.value.request_id.startswith("req_")  # type: ignore[attr-defined]
    with pytest.raises(others):
        await either.async_openai.chat.completions.create(**ask("openai", str(status)), stream=stream)
    with pytest.raises(others):
        either.openai.responses.create(
            model=GPT, input="hello", extra_headers={"x-zl-fault": str(status)}, stream=stream
        )


@pytest.mark.parametrize(
    ("asked", "sent"), [("429", "1"), ("429; retry-after=3600", "3600"), ("529;retry-after=nan", "nan")]
)
def test_retry_after_is_sent_as_asked(clients, asked: str, sent: str):
    with pytest.raises(anthropic.APIStatusError) as caught:
        clients.anthropic.messages.create(**ask("anthropic", asked))
    assert caught.value.response.headers["retry-after"] == sent


def test_a_429_has_nothing_left(clients):
    with pytest.raises(anthropic.RateLimitError) as caught:
        clients.anthropic.messages.create(**ask("anthropic", "429"))
    assert caught.value.type == "rate_limit_error"
    assert caught.value.response.headers["anthropic-ratelimit-requests-remaining"] == "0"
    good = clients.anthropic.messages.with_raw_response.create(model=SONNET, max_tokens=9, messages=MESSAGES)
    assert good.headers["anthropic-ratelimit-requests-remaining"] == "3999"


@pytest.mark.parametrize("stream", [False, True])
async def test_a_drop_before_the_head_is_a_connection_error(either, stream: bool):
    with pytest.raises(anthropic.APIConnectionError):
        either.anthropic.messages.create(**ask("anthropic", "drop"), stream=stream)
    with pytest.raises(anthropic.APIConnectionError):
        await either.async_anthropic.messages.create(**ask("anthropic", "drop"), stream=stream)
    with pytest.raises(openai.APIConnectionError):
        either.openai.chat.completions.create(**ask("openai", "drop"), stream=stream)
    with pytest.raises(openai.APIConnectionError):
        await either.async_openai.chat.completions.create(**ask("openai", "drop"), stream=stream)


async def test_a_stall_before_the_head_is_a_timeout(either):
    with pytest.raises(anthropic.APITimeoutError):
        either.anthropic.messages.create(**ask("anthropic", "stall"))
    with pytest.raises(openai.APITimeoutError):
        await either.async_openai.chat.completions.create(**ask("openai", "stall"))


async def drained(stream: Any) -> None:
    async for _ in stream:
        pass


@pytest.mark.parametrize(
    ("fault", "theirs", "others"),
    [
        ("drop-mid", httpx2.RemoteProtocolError, openai.APIConnectionError),
        ("stall-mid", httpx2.ReadTimeout, openai.APITimeoutError),
    ],
)
async def test_a_stream_that_breaks_in_the_middle(either, fault: str, theirs: type[Exception], others: type[Exception]):
    """anthropic lets the transport's error through; openai makes it one of its own."""
    stream = iter(either.anthropic.messages.create(**ask("anthropic", fault), stream=True))
    begun = [next(stream).type for _ in range(3)]
    assert begun == ["message_start", "content_block_start", "content_block_delta"]
    with pytest.raises(theirs):
        list(stream)
    with pytest.raises(theirs):
        await drained(await either.async_anthropic.messages.create(**ask("anthropic", fault), stream=True))
    with pytest.raises(others):
        list(either.openai.chat.completions.create(**ask("openai", fault), stream=True))
    with pytest.raises(others):
        await drained(await either.async_openai.chat.completions.create(**ask("openai", fault), stream=True))


def test_a_whole_answer_that_breaks_in_the_middle(either):
    with pytest.raises(anthropic.APIConnectionError):
        either.anthropic.messages.create(**ask("anthropic", "drop-mid"))
    with pytest.raises(openai.APITimeoutError):
        either.openai.chat.completions.create(**ask("openai", "stall-mid"))


async def test_an_error_event_in_a_stream(either):
    with pytest.raises(anthropic.APIStatusError) as caught:
        list(either.anthropic.messages.create(**ask("anthropic", "529-mid"), stream=True))
    assert (caught.value.status_code, caught.value.type) == (200, "overloaded_error")
    with pytest.raises(anthropic.APIStatusError):
        await drained(await either.async_anthropic.messages.create(**ask("anthropic", "529-mid"), stream=True))
    with pytest.raises(openai.APIError, match="overloaded"):
        list(either.openai.chat.completions.create(**ask("openai", "503-mid"), stream=True))
    headers = {"x-zl-fault": "503-mid"}
    events = list(either.openai.responses.create(model=GPT, input="hello", stream=True, extra_headers=headers))
    assert [event.type for event in events[-2:]] == ["error", "response.failed"]


async def test_html_and_an_empty_body_come_back_as_text(either):
    page: Any = either.anthropic.messages.create(**ask("anthropic", "html"))
    assert isinstance(page, str)
    assert "<html>" in page
    nothing: Any = await either.async_anthropic.messages.create(**ask("anthropic", "empty"))
    assert nothing == ""
    other: Any = either.openai.chat.completions.create(**ask("openai", "html"))
    assert isinstance(other, str)


def test_a_clean_end_in_the_middle_of_a_stream_has_no_stop_reason(either):
    fault = ask("anthropic", "empty-mid")
    with either.anthropic.messages.stream(**fault) as stream:
        message = stream.get_final_message()
    assert message.stop_reason is None
    assert message.content


@pytest.mark.parametrize("fault", ["malformed", "malformed-mid"])
async def test_malformed_json_is_an_error(either, fault: str):
    with pytest.raises((ValueError, anthropic.APIError)):
        either.anthropic.messages.create(**ask("anthropic", fault))
    with pytest.raises((ValueError, anthropic.APIError)):
        list(either.anthropic.messages.create(**ask("anthropic", fault), stream=True))
    with pytest.raises((ValueError, openai.APIError)):
        list(either.openai.chat.completions.create(**ask("openai", "malformed-mid"), stream=True))


def test_faults_of_the_other_endpoints(clients):
    headers = {"x-zl-fault": "500"}
    with pytest.raises(anthropic.InternalServerError):
        clients.anthropic.models.list(extra_headers=headers)
    with pytest.raises(openai.InternalServerError):
        clients.openai.embeddings.create(model="text-embedding-3-small", input="x", extra_headers=headers)


def test_the_sdks_own_retries_see_fresh_faults():
    calls: list[WireRequest] = []

    class Counting:
        def __init__(self) -> None:
            self.server = LocalServer()

        def handle(self, request: WireRequest):
            calls.append(request)
            return self.server.handle(request)

    from zlclient.serving import transport

    http = httpx2.Client(transport=transport(Counting()))
    client = anthropic.Anthropic(api_key="k", max_retries=1, http_client=http)
    with pytest.raises(anthropic.OverloadedError):
        client.messages.create(**ask("anthropic", "529; retry-after=0.01"))
    assert len(calls) == 2


@pytest.mark.parametrize(
    ("header", "fault", "mid"),
    [
        ("429", Fault("status", 429), False),
        (" STALL ", Fault("stall"), False),
        ("drop-mid", Fault("drop"), True),
        ("529-mid", Fault("status", 529), True),
        ("429; retry-after=Wed, 21 Oct 2015 07:28:00 GMT", Fault("status", 429, retry_after="wed, 21 oct 2015 07:28:00 gmt"), False),
    ],
)  # fmt: skip
def test_the_header_is_read(header: str, fault: Fault, mid: bool):
    asked = asked_fault(header)
    assert (asked.fault, asked.mid) == (fault, mid)


@pytest.mark.parametrize("header", ["200", "999", "boom", "429-late", "status"])
def test_an_unknown_fault_is_refused(clients, header: str):
    with pytest.raises(anthropic.BadRequestError, match="x-zl-fault"):
        clients.anthropic.messages.create(**ask("anthropic", header))
