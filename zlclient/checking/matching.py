"""When two numbers are the same amount, and when one is the other rounded."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from .numbers import Quantity
from .numerals import EXACT

# 约 and "nearly" allow what a reader would still call near.
_NEAR = Decimal("0.1")
_TEN = Decimal(10)


def comparable(one: Quantity, other: Quantity) -> Iterator[tuple[Decimal, Decimal, Decimal]]:
    """The scales on which two numbers may be compared: (value of one, value of other, step of one).

    Units with a dimension are compared in it; an amount of money only in a currency that both may be in. A number
    without one is compared as written, and also against the base of a share: 0.125 is 12.5%.
    """
    ours, theirs = one.unit, other.unit
    if ours and theirs and ours.dimension and theirs.dimension:
        same = ours.dimension == theirs.dimension and (not ours.codes or bool(ours.codes & theirs.codes))
        if same:
            yield one.base, other.base, EXACT.multiply(one.step, ours.factor)
        return
    yield one.value, other.value, one.step
    if ours and ours.dimension == "share":
        yield one.base, other.value, EXACT.multiply(one.step, ours.factor)
    elif theirs and theirs.dimension == "share":
        yield one.value, other.base, one.step


def same_amount(one: Quantity, other: Quantity) -> bool:
    """Equal in value on a scale they share."""
    return any(ours == theirs for ours, theirs, _ in comparable(one, other))


def is_rounding(rounded: Quantity, exact: Quantity, bound: str = "") -> bool:
    """Whether `exact`, brought to the last place that `rounded` writes, gives `rounded`.

    38.7万 is a rounding of 386,810, and 387,000 (written to the unit) is not. With one significant digit both must
    carry the same unit. A `bound` word makes trailing zeros placeholders (about 400,000) and gives the direction:
    "over" needs an exact value from there up, "under" one from there down, within one step and ten per cent.
    """
    if rounded.code or exact.code or rounded.step == 0:
        return False
    significant = len(rounded.value.normalize(EXACT).as_tuple().digits)
    same_unit = rounded.unit is not None and exact.unit is not None and rounded.unit.dimension == exact.unit.dimension
    if significant < 2 and not bound and not same_unit:
        return False
    for ours, theirs, step in comparable(rounded, exact):
        gap = EXACT.subtract(theirs, ours)
        if gap == 0 or (
            _hedged(gap, ours, step, bound) if bound else _halved(gap, step) and _finer(exact, theirs, step)
        ):
            return True
    return False


def _halved(gap: Decimal, step: Decimal) -> bool:
    return EXACT.multiply(gap.copy_abs(), 2) <= step


def is_misrounding(rounded: Quantity, exact: Quantity) -> bool:
    """Whether `rounded`, of three digits or more, is one step off the rounding of a more exact number."""
    if rounded.code or exact.code or rounded.step == 0 or len(rounded.value.normalize(EXACT).as_tuple().digits) < 3:
        return False
    return any(
        EXACT.subtract(theirs, ours).copy_abs() < step and _finer(exact, theirs, step)
        for ours, theirs, step in comparable(rounded, exact)
    )


def _hedged(gap: Decimal, value: Decimal, step: Decimal, bound: str) -> bool:
    step = max(step, _placeholder_step(value))
    size = gap.copy_abs()
    if size > EXACT.multiply(_NEAR, value):
        return False
    if bound == "about":
        return _halved(gap, step)
    return size <= step and (gap >= 0) == (bound == "over")


def _placeholder_step(value: Decimal) -> Decimal:
    exponent = value.normalize(EXACT).as_tuple().exponent
    return _TEN.scaleb(exponent - 1, EXACT) if isinstance(exponent, int) else Decimal(1)


def _finer(exact: Quantity, value: Decimal, step: Decimal) -> bool:
    """The source number is written to a smaller place than the answer's, so that rounding it could give the answer."""
    scale = EXACT.divide(value, exact.value) if exact.value else Decimal(1)
    return EXACT.multiply(exact.step, scale) < step


def search_width(quantity: Quantity, bound: str) -> Decimal:
    """How far from the value a rounding may lie, in the unit as written."""
    return max(quantity.step, _placeholder_step(quantity.value)) if bound else quantity.step
