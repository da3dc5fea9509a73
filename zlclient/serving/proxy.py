"""A proxy that records: requests go to a real API, and each exchange is written to a cassette on the way back.

    proxy = RecordingProxy("https://api.anthropic.com", CassetteWriter("cassette.jsonl"))
    with Listener(proxy) as listener:
        anthropic.Anthropic(base_url=listener.url)      # its own key goes through, and is not recorded

It is a Handler, so whatever serves a LocalServer serves it. An exchange is written when it has ended.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode, urlsplit

from ..errors import ConfigError
from .errors import WireError, error_response
from .recording import CassetteWriter, ExchangeRecorder
from .redaction import Redaction
from .server import dialect_of
from .wire import Drop, Piece, WireRequest, WireResponse

if TYPE_CHECKING:
    import httpx2

# Headers of one connection, and what is said about a body's bytes: both are different on the other side.
_HOP = frozenset(
    {
        "accept-encoding",
        "connection",
        "content-encoding",
        "content-length",
        "host",
        "keep-alive",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
CONNECT_SECONDS, READ_SECONDS = 10.0, 600.0


class RecordingProxy:
    """Forwards requests to `upstream` and records what comes back.

    Args:
        upstream: the base URL of the API, as the SDK's `base_url` would have it.
        writer: where exchanges are written.
        redaction: what else to take out besides the usual.
        client: the HTTP client to use; made when None, and closed by `close`.
        clock: seconds, for the timing of streams; None: the system's.

    Raises:
        ConfigError: `upstream` is no http or https URL.
    """

    def __init__(
        self,
        upstream: str,
        writer: CassetteWriter,
        *,
        redaction: Redaction | None = None,
        client: httpx2.Client | None = None,
        clock: Callable[[], float] | None = None,
    ) -> None:
        import httpx2

        parts = urlsplit(upstream)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query:
            raise ConfigError("an http or https URL without a query is expected", key="upstream", value=upstream)
        self._upstream, self._writer = upstream.rstrip("/"), writer
        self._redaction = redaction or Redaction()
        self._client = client or httpx2.Client(timeout=httpx2.Timeout(READ_SECONDS, connect=CONNECT_SECONDS))
        self._timing: dict[str, Any] = {} if clock is None else {"clock": clock}

    def close(self) -> None:
        """Close the connections to the upstream."""
        self._client.close()

    def blocks(self, request: WireRequest) -> bool:  # noqa: ARG002 - every request waits for the upstream
        """Always."""
        return True

    def handle(self, request: WireRequest) -> WireResponse:
        """Forward one request; a failure to connect is answered with 502 and not recorded."""
        import httpx2

        recorder = ExchangeRecorder(request, self._redaction, recording=self._writer.recording, **self._timing)
        headers = {name: value for name, value in request.headers.items() if name not in _HOP}
        headers["accept-encoding"] = "identity"
        outgoing = self._client.build_request(request.method, self._url(request), headers=headers, content=request.body)
        try:
            response = self._client.send(outgoing, stream=True)
        except (httpx2.ReadError, httpx2.RemoteProtocolError):
            self._writer.append(recorder.end(broken=True))
            return WireResponse(200, {}, iter((Drop(),)))
        except httpx2.TransportError as error:
            problem = WireError(502, f"zlclient record: the upstream cannot be reached: {type(error).__name__}")
            return error_response(dialect_of(request), problem, "req_record")
        recorder.head(response.status_code, response.headers)
        return WireResponse(response.status_code, _kept(response.headers), self._body(response, recorder))

    def _url(self, request: WireRequest) -> str:
        query = f"?{urlencode(request.query, doseq=True)}" if request.query else ""
        return self._upstream + quote(request.path, safe="/:@!$&'()*+,;=~") + query

    def _body(self, response: httpx2.Response, recorder: ExchangeRecorder) -> Iterator[Piece]:
        import httpx2

        complete = broken = False
        try:
            for data in response.iter_bytes():
                recorder.data(data)
                yield data
            complete = True
        except httpx2.TransportError:
            broken = True
        finally:
            # Also when the client went before the end: then it got as much as is recorded.
            response.close()
            self._writer.append(recorder.end(broken=not complete))
        if broken:
            yield Drop()


def _kept(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items() if name.lower() not in _HOP}
