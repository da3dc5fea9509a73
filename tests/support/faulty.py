"""A scriptable faulty server for tests: raw HTTP/1.1 over asyncio in a thread, Anthropic and OpenAI shapes.

    with FaultyServer() as server:
        server.script({"status": 500}, default={})
        ...
        server.requests          # what arrived: method, path, headers (lower case), body (parsed)

One step is used up a request, then `default`. A step may hold: status, headers, body (dict or bytes), content_type, delay
(seconds before anything), drop ("before" or "mid"), chunk_delay (between pieces), drip (bytes one by one), stall_after
(pieces, then silence), events (list of dicts to stream instead of the usual ones), end_after (pieces, then a clean end), linger (seconds between the last event and the end of the body).
"""

from __future__ import annotations

import asyncio
import json
import threading
from dataclasses import dataclass
from typing import Any

TEXT = ("Hello ", "from ", "loopback.")
WHOLE = "".join(TEXT)


@dataclass(frozen=True)
class Received:
    method: str
    path: str
    headers: dict[str, str]
    raw: bytes

    @property
    def body(self) -> Any:
        return json.loads(self.raw)


def anthropic_events(texts=TEXT, usage=None, stop_reason="end_turn", model="claude-sonnet-5-5"):
    usage = {"input_tokens": 12, "output_tokens": 1} | (usage or {})
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": model, "content": [], "usage": usage}
    yield {"type": "message_start", "message": {**message, "stop_reason": None}}
    yield {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    for text in texts:
        yield {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}
    yield {"type": "content_block_stop", "index": 0}
    yield {"type": "message_delta", "delta": {"stop_reason": stop_reason}, "usage": {"output_tokens": 6}}
    yield {"type": "message_stop"}


def openai_events(texts=TEXT, usage=True, model="gpt-6.1-sol"):
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": model}
    for text in texts:
        yield {**head, "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None}]}
    yield {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    if usage:
        counts = {"prompt_tokens": 12, "completion_tokens": 6, "total_tokens": 18}
        yield {**head, "choices": [], "usage": counts}
    yield None  # [DONE]


def whole_message(text=WHOLE, model="claude-sonnet-5-5"):
    usage = {"input_tokens": 12, "output_tokens": 6}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": model, "stop_reason": "end_turn"}
    return {**message, "stop_sequence": None, "content": [{"type": "text", "text": text}], "usage": usage}


def whole_completion(text=WHOLE, model="gpt-6.1-sol"):
    usage = {"prompt_tokens": 12, "completion_tokens": 6, "total_tokens": 18}
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
    head = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": model}
    return {**head, "choices": [choice], "usage": usage}


def sse(event) -> bytes:
    if event is None:
        return b"data: [DONE]\n\n"
    if isinstance(event, bytes):
        return event
    name = f"event: {event['type']}\n" if "type" in event else ""
    return f"{name}data: {json.dumps(event)}\n\n".encode()


class FaultyServer:
    def __init__(self) -> None:
        self.requests: list[Received] = []
        self.connections = 0
        self.open_connections = 0
        self._steps: list[dict[str, Any]] = []
        self._default: dict[str, Any] = {}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._ready = threading.Event()
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def script(self, *steps: dict[str, Any], default: dict[str, Any] | None = None) -> None:
        self._steps, self._default = list(steps), default or {}
        self.requests.clear()

    def __enter__(self) -> FaultyServer:
        self._thread.start()
        assert self._ready.wait(5)
        return self

    def __exit__(self, *_: Any) -> None:
        self._loop.call_soon_threadsafe(self._stop)
        self._thread.join(5)

    def _stop(self) -> None:
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.call_soon(self._loop.stop)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", 0, limit=2**24))
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        self._loop.run_forever()
        server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.open_connections += 1
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
                method, path, _ = head[0].split(" ", 2)
                headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in head[1:] if line)}
                raw = await reader.readexactly(int(headers.get("content-length", 0)))
                self.requests.append(Received(method, path, headers, raw))
                step = self._steps.pop(0) if self._steps else self._default
                if not await self._answer(writer, path, raw, step):
                    return
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            self.open_connections -= 1
            writer.close()

    async def _answer(self, writer, path, raw, step) -> bool:
        await asyncio.sleep(step.get("delay", 0))
        if step.get("drop") == "before":
            writer.transport.abort()
            return False
        status = step.get("status", 200)
        headers = {"request-id": "req_1", **step.get("headers", {})}
        body = step.get("body")
        if status >= 400 and body is None:
            body = {"type": "error", "error": {"type": "api_error", "message": f"scripted {status}"}}
        if body is None and "events" not in step and b'"stream":true' not in raw.replace(b" ", b""):
            body = whole_message() if "messages" in path else whole_completion()
        if body is not None:
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            headers |= {"content-type": step.get("content_type", "application/json"), "content-length": len(data)}
            writer.write(self._head(status, headers))
            pieces = [data[i : i + 1] for i in range(len(data))] if step.get("drip") else [data]
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(step.get("drip", 0))
            return True
        events = step.get("events")
        if events is None:
            events = anthropic_events() if "messages" in path else openai_events(usage=b"include_usage" in raw)
        writer.write(
            self._head(status, {"content-type": "text/event-stream", "transfer-encoding": "chunked", **headers})
        )
        pieces = [sse(event) for event in events]
        if step.get("drip"):
            pieces = [bytes([byte]) for piece in pieces for byte in piece]
        for index, piece in enumerate(pieces):
            if step.get("stall_after") == index:
                await writer.drain()
                await asyncio.sleep(3600)
            if step.get("end_after") == index:
                break
            if step.get("drop") == "mid" and index == len(pieces) // 2:
                writer.transport.abort()
                return False
            writer.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            await writer.drain()
            await asyncio.sleep(step.get("drip") or step.get("chunk_delay") or 0)
        await asyncio.sleep(step.get("linger", 0))
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        return True

    @staticmethod
    def _head(status: int, headers: dict[str, Any]) -> bytes:
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        return f"HTTP/1.1 {status} X\r\n{lines}\r\n".encode("latin-1")
