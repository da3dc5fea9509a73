"""zlclient: the layer between an application and a chat model.

    import zlclient

    reply = zlclient.chat("2024年Q1特斯拉交付量是多少？", domain="finance")
    print(reply, reply.usage, reply.cost)

Names are loaded when they are first used, so that importing this package imports no SDK.
"""

# The names are served by __getattr__.
# pyright: reportUnusedImport=false, reportUnsupportedDunderAll=false
from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    __version__: str
    from .answering.citations import Citation
    from .answering.coverage import Coverage
    from .answering.errors import SegmentsFailed, SegmentsLate
    from .answering.jobs import Progress
    from .batch import batch
    from .checking.fidelity import FidelityReport
    from .checking.format import FormatSpec
    from .client import AsyncClient, Client, ModelRetirementWarning
    from .default import achat, astream, chat, outcome, prepare, stream
    from .errors import (
        BadAnswer,
        BadRequest,
        CheckError,
        ClientClosed,
        ConfigError,
        Conflict,
        ConnectFailed,
        CredentialsError,
        DeadlineExceeded,
        EmptyAnswer,
        Forbidden,
        InputError,
        NotFound,
        Overloaded,
        RateLimited,
        SendError,
        ServerError,
        StatusError,
        StreamBroken,
        Timeout,
        Unauthorized,
        ZlclientError,
    )
    from .linting import lint
    from .prompts.library import Library
    from .prompts.prompt import Prompt
    from .reply import Adjustment, Attempt, Reply, Timings, ToolCall, Usage
    from .sdk_middleware import middleware, shaped
    from .settings import Settings
    from .shaping.documents import Document
    from .shaping.sanitise import Sanitized, sanitize
    from .streams import AsyncStream, Stream

_HOMES = {
    "answering.citations": ("Citation",),
    "answering.coverage": ("Coverage",),
    "answering.errors": ("SegmentsFailed", "SegmentsLate"),
    "answering.jobs": ("Progress",),
    "batch": ("batch",),
    "checking.fidelity": ("FidelityReport",),
    "checking.format": ("FormatSpec",),
    "client": ("AsyncClient", "Client", "ModelRetirementWarning"),
    "default": ("achat", "astream", "chat", "outcome", "prepare", "stream"),
    "errors": (
        "BadAnswer",
        "BadRequest",
        "CheckError",
        "ClientClosed",
        "ConfigError",
        "Conflict",
        "ConnectFailed",
        "CredentialsError",
        "DeadlineExceeded",
        "EmptyAnswer",
        "Forbidden",
        "InputError",
        "NotFound",
        "Overloaded",
        "RateLimited",
        "SendError",
        "ServerError",
        "StatusError",
        "StreamBroken",
        "Timeout",
        "Unauthorized",
        "ZlclientError",
    ),
    "linting": ("lint",),
    "sdk_middleware": ("middleware", "shaped"),
    "prompts.library": ("Library",),
    "prompts.prompt": ("Prompt",),
    "reply": ("Adjustment", "Attempt", "Reply", "Timings", "ToolCall", "Usage"),
    "settings": ("Settings",),
    "shaping.documents": ("Document",),
    "shaping.sanitise": ("Sanitized", "sanitize"),
    "streams": ("AsyncStream", "Stream"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = ["__version__", *_HOME_OF]


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is not None:
        value = getattr(import_module(f".{home}", __name__), name)
    elif name == "__version__":
        from importlib.metadata import version

        value = version("zlclient")
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
