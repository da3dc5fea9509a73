"""The local server as an ASGI application, and on a port.

    app = App(LocalServer())                       # mount it anywhere
    with Listener(LocalServer()) as listener:      # a real port, in a background thread
        anthropic.Anthropic(base_url=listener.url, api_key="local")

Plain ASGI, because a routing framework would take longer over a request than the server does.
"""

from __future__ import annotations

import asyncio
import contextvars
import signal
import socket
import threading
from collections.abc import Awaitable, Callable, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast
from urllib.parse import parse_qs

from ..engine.departure import CURRENT, Departure
from ..errors import ConfigError
from .wire import Drop, Pause, WireRequest, WireResponse, blocks

if TYPE_CHECKING:
    import uvicorn

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

T = TypeVar("T")

LONGEST_PAUSE = 3600.0
SHUTDOWN_SECONDS = 2
WORKERS = 1024  # answers that wait for an engine at once; more than engines let wait, so that these can refuse
LOOPBACK = "127.0.0.1"


class Handler(Protocol):
    """What an App stands on: LocalServer, or anything that answers wire requests."""

    def handle(self, request: WireRequest) -> WireResponse:
        """Answer `request`."""
        ...


class App:
    """An ASGI application over a Handler.

    `connections` maps a client's address to its transport where the server running this app keeps one (see `Listener`):
    a Drop closes it. Elsewhere a Drop raises ConnectionAbortedError, and the ASGI server closes the connection.
    """

    def __init__(self, server: Handler, connections: MutableMapping[Any, asyncio.Transport] | None = None) -> None:
        self._server = server
        self._connections: MutableMapping[Any, asyncio.Transport] = {} if connections is None else connections
        self._workers = ThreadPoolExecutor(WORKERS, "zlclient-serve")  # its threads are started as they are needed

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Serve one ASGI scope."""
        if scope["type"] == "lifespan":
            await _lifespan(receive, send)
        elif scope["type"] == "http":
            body = await _body(receive)
            if body is not None:
                await self._respond(scope, _request(scope, body), receive, send)

    async def _respond(self, scope: Message, request: WireRequest, receive: Receive, send: Send) -> None:
        blocking = blocks(self._server, request)
        gone = asyncio.ensure_future(_disconnect(receive)) if blocking else None
        try:
            response = await self._handled(request, gone) if gone else self._server.handle(request)
            if isinstance(response.body, bytes):
                await _send_whole(response, response.body, send)
                return
            gone = gone or asyncio.ensure_future(_disconnect(receive))
            try:
                dropped = await self._stream(response, gone, send, blocking=blocking)
                if dropped and (transport := self._connections.get(scope.get("client"))) is not None:
                    transport.close()
                    await gone
                elif dropped:
                    raise ConnectionAbortedError("the answer asked for a broken connection")
            finally:
                response.close()
        finally:
            if gone:
                gone.cancel()

    async def _handled(self, request: WireRequest, gone: asyncio.Future[None]) -> WireResponse:
        """The answer from a worker thread; what waits there for an engine is given up when the client goes."""
        departure, context = Departure(), contextvars.copy_context()
        gone.add_done_callback(lambda _: departure.happen())
        context.run(CURRENT.set, departure)
        return await self._worker(lambda: context.run(self._server.handle, request))

    async def _worker(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._workers, work)

    async def _stream(self, response: WireResponse, gone: asyncio.Future[None], send: Send, *, blocking: bool) -> bool:
        """Send the pieces until they end, the client goes, or (then True) a Drop."""
        pieces, started = response.pieces(), False
        while not gone.done():
            piece = await self._worker(lambda: next(pieces, None)) if blocking else next(pieces, None)
            if isinstance(piece, Pause):
                await asyncio.wait((gone,), timeout=min(piece.seconds, LONGEST_PAUSE))
                continue
            if isinstance(piece, Drop):
                return True
            if not started:
                await send(_start(response))
                started = True
            await send({"type": "http.response.body", "body": piece or b"", "more_body": piece is not None})
            if piece is None:
                return False
        return False


class Listener:
    """The server on a port, in a background thread; a context manager. Port 0 takes a free one.

    `url` is the base URL for Anthropic's SDK; OpenAI's wants `url + "/v1"`.
    """

    def __init__(self, server: Handler, host: str = LOOPBACK, port: int = 0) -> None:
        self._socket = listening_socket(host, port)
        self._uvicorn = make_uvicorn(server)
        self._thread = threading.Thread(target=self._uvicorn.run, args=([self._socket],), daemon=True)
        self.url = url_of(self._socket)

    def __enter__(self) -> Listener:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop; open streams get a moment to end."""
        self._uvicorn.should_exit = True
        if self._thread.ident is not None:
            self._thread.join(SHUTDOWN_SECONDS * 3)
        self._socket.close()


def serve(server: Handler, host: str, port: int, on_ready: Callable[[str], object]) -> None:
    """Serve until SIGINT or SIGTERM, then raise KeyboardInterrupt. `on_ready` gets the URL once clients may connect.

    uvicorn ends open answers on a signal and then passes it on; as an exception, both signals let the caller clean up.
    """
    signal.signal(signal.SIGTERM, _interrupt)
    with listening_socket(host, port) as listening:
        on_ready(url_of(listening))  # the socket listens already: an early client waits in its backlog
        make_uvicorn(server).run([listening])


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def listening_socket(host: str, port: int) -> socket.socket:
    """A socket bound and listening; raises ConfigError where the address cannot be had."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With its protocol named, asyncio turns Nagle's algorithm off; without, each answer waits 40 ms for an ACK.
    made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((host, port))
        made.listen(1024)
    except (OSError, OverflowError) as error:
        made.close()
        raise ConfigError(f"cannot listen there: {error}", key="port", value=port) from None
    return made


def url_of(listening: socket.socket) -> str:
    """The base URL of a listening socket."""
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def make_uvicorn(server: Handler) -> uvicorn.Server:
    """uvicorn around an App, quiet, its connections known to the App so that it can break them."""
    try:
        import uvicorn
        from uvicorn.config import HTTP_PROTOCOLS
        from uvicorn.importer import import_from_string
    except ImportError:
        raise ConfigError("the server needs an extra: pip install 'zlclient[server]'", key="uvicorn") from None
    connections: dict[Any, asyncio.Transport] = {}
    protocol = _tracked(import_from_string(HTTP_PROTOCOLS["auto"]), connections)
    return uvicorn.Server(
        uvicorn.Config(
            cast("Any", App(server, connections)),
            http=protocol,
            ws="none",
            lifespan="off",
            access_log=False,
            server_header=False,
            log_level="warning",
            timeout_graceful_shutdown=SHUTDOWN_SECONDS,
        )
    )


def _tracked(base: Any, connections: MutableMapping[Any, asyncio.Transport]) -> Any:
    """uvicorn's protocol class `base`, noting each connection's transport under its client's address."""

    def connection_made(self: Any, transport: asyncio.Transport) -> None:
        base.connection_made(self, transport)
        self.zl_client = transport.get_extra_info("peername")[:2]
        connections[self.zl_client] = transport

    def connection_lost(self: Any, exc: Exception | None) -> None:
        connections.pop(self.zl_client, None)
        base.connection_lost(self, exc)

    return type("Tracked", (base,), {"connection_made": connection_made, "connection_lost": connection_lost})


def _request(scope: Message, body: bytes) -> WireRequest:
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
    raw = scope["query_string"]
    query = parse_qs(raw.decode("latin-1"), keep_blank_values=True) if raw else {}
    return WireRequest(scope["method"], scope["path"], headers, body, query)


async def _send_whole(response: WireResponse, body: bytes, send: Send) -> None:
    response.headers["content-length"] = str(len(body))
    await send(_start(response))
    await send({"type": "http.response.body", "body": body})


def _start(response: WireResponse) -> Message:
    headers = [(name.encode("latin-1"), value.encode("latin-1", "replace")) for name, value in response.headers.items()]
    return {"type": "http.response.start", "status": response.status, "headers": headers}


async def _body(receive: Receive) -> bytes | None:
    """The whole body, or None when the client went before its end."""
    message = await receive()
    parts: list[bytes] = []
    while message["type"] == "http.request":
        parts.append(message.get("body", b""))
        if not message.get("more_body"):
            return parts[0] if len(parts) == 1 else b"".join(parts)
        message = await receive()
    return None


async def _disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _lifespan(receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
