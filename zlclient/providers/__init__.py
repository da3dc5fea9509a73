"""Adapters: one a kind of provider. Each knows a wire and opens exchanges; none has a policy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..settings import ProviderSettings
    from .base import Provider, Wire


def wire_of(kind: str) -> Wire:
    """The wire that a kind of provider speaks."""
    if kind == "openai":
        from .openai_wire import OpenAIWire

        return OpenAIWire()
    from .anthropic_wire import AnthropicWire

    return AnthropicWire()


def make_provider(settings: ProviderSettings, *, client: Any = None, http_client: Any = None) -> Provider:
    """The adapter for `settings`.

    Args:
        client: an SDK client (or the offline LocalServer) of the user's own.
        http_client: an httpx2 client of the user's own for the SDK client made here.
    """
    if settings.kind == "local":
        from .local import LocalProvider

        return LocalProvider(settings.name, client)
    from .sdk import SdkProvider

    return SdkProvider(settings, client=client, http_client=http_client)
