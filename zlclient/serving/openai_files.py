"""OpenAI files: uploads for batches, and their results. Kept in memory."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from .anthropic import json_response
from .errors import WireError
from .openai_common import invalid, missing
from .wire import WireResponse

if TYPE_CHECKING:
    from .server import Call, LocalServer

_BOUNDARY = re.compile(r'boundary="?([^";]+)"?')
_FIELD = re.compile(rb'(?:^|;\s*)(name|filename)="((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True, slots=True)
class File:
    """An uploaded or produced file."""

    id: str
    name: str
    purpose: str
    created: int
    data: bytes


def create(call: Call) -> WireResponse:
    """POST /v1/files, multipart."""
    parts = read_multipart(call.request.headers.get("content-type", ""), call.request.body)
    if "file" not in parts:
        raise missing("file")
    purpose = parts.get("purpose", ("", b""))[1].decode()
    if not purpose:
        raise missing("purpose")
    name, data = parts["file"]
    return json_response(_shown(add(call.server, name or "upload", purpose, data)))


def listing(call: Call) -> WireResponse:
    """GET /v1/files."""
    with call.server.lock:
        found = [_shown(file) for file in _files(call.server).values()]
    purpose = call.request.query.get("purpose")
    if purpose:
        found = [file for file in found if file["purpose"] in purpose]
    ids = {"first_id": found[0]["id"], "last_id": found[-1]["id"]} if found else {}
    return json_response({"object": "list", "data": found, "has_more": False, **ids})


def retrieve(call: Call, file_id: str) -> WireResponse:
    """GET /v1/files/{id}."""
    return json_response(_shown(find(call.server, file_id)))


def content(call: Call, file_id: str) -> WireResponse:
    """GET /v1/files/{id}/content."""
    return WireResponse(200, {"content-type": "application/octet-stream"}, find(call.server, file_id).data)


def delete(call: Call, file_id: str) -> WireResponse:
    """DELETE /v1/files/{id}."""
    find(call.server, file_id)
    with call.server.lock:
        _files(call.server).pop(file_id, None)
    return json_response({"id": file_id, "object": "file", "deleted": True})


def add(server: LocalServer, name: str, purpose: str, data: bytes) -> File:
    """Keep `data` as a new file."""
    file = File(server.new_id("file-"), name, purpose, int(server.clock()), data)
    with server.lock:
        _files(server)[file.id] = file
    return file


def find(server: LocalServer, file_id: str) -> File:
    """The file; raises WireError 404."""
    with server.lock:
        file = _files(server).get(file_id)
    if file is None:
        raise WireError(404, f"No such File object: {file_id}", kind="invalid_request_error", param="id")
    return file


def read_multipart(content_type: str, body: bytes) -> dict[str, tuple[str, bytes]]:
    """The parts of a multipart form, name → (file name, data); raises WireError 400."""
    match = _BOUNDARY.search(content_type)
    if not match:
        raise invalid("Expected a multipart/form-data body.", "file", None)
    found: dict[str, tuple[str, bytes]] = {}
    for part in body.split(b"--" + match[1].encode())[1:-1]:
        head, _, data = part.partition(b"\r\n\r\n")
        for line in head.split(b"\r\n"):
            if line.lower().startswith(b"content-disposition:"):
                names = {key.decode(): value.decode("utf-8", "replace") for key, value in _FIELD.findall(line)}
                if "name" in names:
                    found[names["name"]] = (names.get("filename", ""), data.removesuffix(b"\r\n"))
    return found


def _shown(file: File) -> dict[str, Any]:
    return {
        "id": file.id,
        "object": "file",
        "bytes": len(file.data),
        "created_at": file.created,
        "filename": file.name,
        "purpose": file.purpose,
        "status": "processed",
    }


def _files(server: LocalServer) -> dict[str, File]:
    return cast("dict[str, File]", server.store("files", dict))
