"""The providers' batch services behind one small face: Anthropic's Message Batches and OpenAI's Batch.

Limits are the providers' published ones: Anthropic 100,000 requests or 256 MB in a batch, OpenAI 50,000 requests or
200 MB in a file of one model; both at half the list price, within 24 hours.

A request's `custom_id` is the hash of its content, so an answer finds its rows whatever became of the run that asked.
"""

from __future__ import annotations

import json
import os
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import import_module
from typing import IO, TYPE_CHECKING, Any, Literal, Protocol, cast

from ..errors import StatusError
from ..providers import wire_of
from ..providers.exchange import translate
from ..providers.failure import Failure
from ..reply import Reply, Timings
from .jobs import batch_body
from .outcomes import Outcome, answer, failed

if TYPE_CHECKING:
    from ..providers.base import Json
    from ..settings import ProviderSettings
    from .jobs import Job

DISCOUNT = 0.5
_MB = 1_000_000
_CLOCK_SKEW = 60.0  # seconds that a provider's clock may be behind ours
State = Literal["running", "ended", "gone"]


@dataclass(frozen=True, slots=True)
class Limits:
    """What one batch may hold: requests, and bytes of its body or file."""

    requests: int
    size: int


class BatchService(Protocol):
    """One provider's batches. Methods raise SendError."""

    limits: Limits
    head: bytes
    between: bytes
    tail: bytes

    def group(self, job: Job) -> str:
        """Jobs of different groups cannot share a batch."""
        ...

    def entry(self, job: Job) -> bytes:
        """The job as it stands in the body or file."""
        ...

    def create(self, file: IO[bytes], group: str, mark: str) -> str:
        """Create a batch from what is in `file`; `mark` helps to find it again. Never repeated. Returns its id."""
        ...

    def state(self, batch: str) -> State:
        """Whether it is still running; "gone" when the provider does not know it."""
        ...

    def results(self, batch: str) -> Iterator[tuple[str, Outcome]]:
        """The outcome of each custom_id, in any order; those that got none are left out."""
        ...

    def lost(self, mark: str, size: int, since: float) -> list[str]:
        """Batches that may be the one whose creation was not witnessed, most likely first."""
        ...


class AnthropicBatches:
    """Message Batches, through `anthropic.Anthropic`."""

    limits = Limits(100_000, 256 * _MB)
    head, between, tail = b'{"requests":[', b",", b"]}"

    def __init__(self, sdk: Any, provider: str) -> None:
        self._sdk, self._provider = sdk, provider

    def group(self, job: Job) -> str:
        """All models share a batch; headers, the API version among them, are the whole batch's."""
        return json.dumps(dict(job.prepared.headers), sort_keys=True)

    def entry(self, job: Job) -> bytes:
        """See `BatchService`."""
        return _json({"custom_id": job.key, "params": batch_body(job.prepared)})

    def create(self, file: IO[bytes], group: str, mark: str) -> str:  # noqa: ARG002 - there is no place for a mark
        """See `BatchService`."""
        from anthropic.types.messages import MessageBatch

        with _translated(self._provider, "anthropic"):
            created = self._sdk.with_options(max_retries=0).post(
                "/v1/messages/batches",
                cast_to=MessageBatch,
                content=file,
                options={"headers": json.loads(group)},
            )
        return created.id

    def state(self, batch: str) -> State:
        """See `BatchService`."""
        try:
            with _translated(self._provider, "anthropic"):
                found = self._sdk.messages.batches.retrieve(batch)
        except StatusError as error:
            return _gone(error)
        return "ended" if found.processing_status == "ended" else "running"

    def results(self, batch: str) -> Iterator[tuple[str, Outcome]]:
        """See `BatchService`."""
        with _translated(self._provider, "anthropic"):
            for line in self._sdk.messages.batches.results(batch):
                found: dict[str, Any] = line.to_dict(mode="json")
                yield found["custom_id"], self._outcome(found["result"])

    def _outcome(self, result: Json) -> Outcome:
        kind = result["type"]
        if kind == "succeeded":
            return decoded("anthropic", self._provider, result["message"])
        if kind == "errored":
            error: Json = result["error"].get("error") or result["error"]
            return failed(str(error.get("type")), str(error.get("message")))
        return failed(kind, f"the batch {'expired' if kind == 'expired' else 'was cancelled'} before it was answered")

    def lost(self, mark: str, size: int, since: float) -> list[str]:  # noqa: ARG002 - there is no place for a mark
        """Those of the right size that are young enough."""
        found: list[str] = []
        with _translated(self._provider, "anthropic"):
            for batch in self._sdk.messages.batches.list(limit=100):
                if _seconds(batch.created_at) < since - _CLOCK_SKEW:
                    break  # the newest come first
                if sum(batch.request_counts.to_dict().values()) == size:
                    found.append(batch.id)
        return found


class OpenAIBatches:
    """Batch over Chat Completions, through `openai.OpenAI`."""

    limits = Limits(50_000, 200 * _MB)
    head, between, tail = b"", b"\n", b"\n"
    _ENDED = ("completed", "failed", "expired", "cancelled")
    _MARK = "zlclient_batch"

    def __init__(self, sdk: Any, provider: str) -> None:
        self._sdk, self._provider = sdk, provider

    def group(self, job: Job) -> str:
        """A file is for one model; headers are those of its creation."""
        return json.dumps([job.prepared.route.model.id, dict(job.request.extra_headers)], sort_keys=True)

    def entry(self, job: Job) -> bytes:
        """See `BatchService`."""
        asked = {"custom_id": job.key, "method": "POST", "url": "/v1/chat/completions"}
        return _json({**asked, "body": batch_body(job.prepared)})

    def create(self, file: IO[bytes], group: str, mark: str) -> str:
        """See `BatchService`."""
        with _translated(self._provider, "openai"):
            uploaded = self._sdk.files.create(file=(f"{mark}.jsonl", file), purpose="batch")
            created = self._sdk.with_options(max_retries=0).batches.create(
                input_file_id=uploaded.id,
                endpoint="/v1/chat/completions",
                completion_window="24h",
                metadata={self._MARK: mark},
                extra_headers=json.loads(group)[1],
            )
        return created.id

    def state(self, batch: str) -> State:
        """See `BatchService`."""
        try:
            with _translated(self._provider, "openai"):
                found = self._sdk.batches.retrieve(batch)
        except StatusError as error:
            return _gone(error)
        return "ended" if found.status in self._ENDED else "running"

    def results(self, batch: str) -> Iterator[tuple[str, Outcome]]:
        """See `BatchService`."""
        with _translated(self._provider, "openai"):
            found = self._sdk.batches.retrieve(batch)
            if found.status == "failed":
                yield from self._refused(found)
            for file in (found.output_file_id, found.error_file_id):
                if file is None:
                    continue
                with self._sdk.files.with_streaming_response.content(file) as response:
                    for line in response.iter_lines():
                        if line.strip():
                            result = json.loads(line)
                            yield result["custom_id"], self._outcome(result)

    def _refused(self, batch: Any) -> Iterator[tuple[str, Outcome]]:
        """A file that was refused whole: what was asked is in it."""
        problems = batch.errors.data if batch.errors else None
        outcome = failed("BatchRefused", str(problems[0].message if problems else "the batch failed"))
        with self._sdk.files.with_streaming_response.content(batch.input_file_id) as response:
            for line in response.iter_lines():
                if line.strip():
                    yield json.loads(line)["custom_id"], outcome

    def _outcome(self, result: Json) -> Outcome:
        response = cast("Json", result.get("response") or {})
        body = cast("Json", response.get("body") or {})
        if response.get("status_code") == 200:
            return decoded("openai", self._provider, body)
        error = cast("dict[str, Any]", result.get("error") or body.get("error") or {})
        kind = error.get("type") or error.get("code") or "error"
        return failed(str(kind), str(error.get("message") or "no message"))

    def lost(self, mark: str, size: int, since: float) -> list[str]:  # noqa: ARG002 - the mark is enough
        """The one that carries the mark."""
        with _translated(self._provider, "openai"):
            for batch in self._sdk.batches.list(limit=100):
                marks: Json = batch.metadata or {}
                if marks.get(self._MARK) == mark:
                    return [batch.id]
                if batch.created_at < since - _CLOCK_SKEW:
                    break
        return []


def decoded(kind: str, provider: str, body: Json) -> Outcome:
    """The outcome of an answer that came whole, read by the wire that reads all others."""
    decoder = wire_of(kind).decoder()
    try:
        decoder.feed_whole(body)
        content = decoder.content()
    except Failure as error:
        return failed(error.kind.__name__, error.problem)
    if not content:
        return failed("EmptyAnswer", "the answer has no content")
    reply = Reply(
        id="",
        text=decoder.text,
        model=decoder.model or "",
        provider=provider,
        route=provider,
        content=content,
        stop_reason=decoder.stop_reason,
        usage=decoder.usage,
        timings=Timings(None, None, 0.0),
        adjustments=(),
        attempts=(),
        sent=(),
    )
    return answer(reply, DISCOUNT)


def open_service(settings: ProviderSettings, client: Any = None) -> BatchService:
    """The batch service of a provider.

    Args:
        settings: which provider, where, and with which key.
        client: a synchronous SDK client of the user's own.

    Raises:
        CredentialsError: there is no key.
    """
    if settings.kind == "openai":
        return OpenAIBatches(client or _sdk_client(settings), settings.name)
    return AnthropicBatches(client or _sdk_client(settings), settings.name)


def _sdk_client(settings: ProviderSettings) -> Any:
    from ..providers.sdk import missing_credentials

    if settings.kind == "local":
        import anthropic
        import httpx2

        from ..serving import transport

        return anthropic.Anthropic(api_key="local", http_client=httpx2.Client(transport=transport()))
    key = os.environ.get(settings.key_env) if settings.key_env else "none"  # the SDKs want some key
    sdk = import_module(settings.kind)
    options: dict[str, Any] = {"base_url": settings.base_url, "default_headers": dict(settings.headers)}
    if key:
        options["api_key"] = key
    elif settings.kind == "openai":
        raise missing_credentials(settings)
    client = (sdk.OpenAI if settings.kind == "openai" else sdk.Anthropic)(**options)
    if settings.kind == "anthropic" and not (client.api_key or client.auth_token or client.credentials):
        raise missing_credentials(settings)
    return client


@contextmanager
def _translated(provider: str, sdk: str) -> Generator[None]:
    """An SDK's exceptions as SendErrors."""
    try:
        yield
    except Exception as error:
        found = translate(import_module(sdk), error)
        if not isinstance(found, Failure):
            raise
        details: dict[str, Any] = {"status": found.status, "request_id": found.request_id, **found.details}
        raise found.kind(found.problem, provider=provider, model="batches", **details) from error


def _gone(error: StatusError) -> State:
    if error.status == 404:
        return "gone"
    raise error


def _json(value: Json) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def _seconds(moment: datetime | str) -> float:
    found = datetime.fromisoformat(moment) if isinstance(moment, str) else moment
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
