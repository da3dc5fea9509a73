"""What a reply costs, from the genai-prices library (prices and their dates are its data, not ours)."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..reply import Usage


def cost(provider: str, model: str, usage: Usage) -> float | None:
    """US dollars for `usage` at list price; 0.0 for the offline engine; None where the price is not known."""
    if provider == "local":
        return 0.0
    return _priced(provider, model, usage)


@lru_cache(maxsize=4096)
def _priced(provider: str, model: str, usage: Usage) -> float | None:
    from genai_prices import Usage as Billed
    from genai_prices import calc_price

    billed = Billed(
        input_tokens=usage.total_input,
        output_tokens=usage.output,
        cache_read_tokens=usage.cache_read,
        cache_write_tokens=usage.cache_write,
    )
    try:
        return float(calc_price(billed, model_ref=model, provider_id=provider).total_price)
    except LookupError:
        return None
