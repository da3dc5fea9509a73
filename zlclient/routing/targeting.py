"""Which units an experiment is for: conditions on attributes, all of which must hold.

    targeting = { country = "CN", plan = ["pro", "team"], age = { gte = 18 }, tier = { not_in = ["trial"] } }

A value asks for equality, a list for any of its values, a table for every one of its operators. An absent attribute
meets only `not`, `not_in` and `exists = false`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from .tables import Table, as_list, is_number

Predicate = Callable[[object], bool]
Attributes = Mapping[str, object]

_ABSENT = object()
_OPERATORS = ("not", "in", "not_in", "lt", "lte", "gt", "gte", "exists")


class Targeting:
    """Compiled conditions; call `matches` with a unit's attributes."""

    def __init__(self, conditions: tuple[tuple[str, Predicate], ...] = ()) -> None:
        self._conditions = conditions

    def __bool__(self) -> bool:
        return bool(self._conditions)

    def matches(self, attributes: Attributes) -> bool:
        """Whether every condition holds."""
        return all(holds(attributes.get(name, _ABSENT)) for name, holds in self._conditions)

    @staticmethod
    def parse(table: Table) -> Targeting:
        """From a configuration table; a wrong operator or value is a `ConfigError`."""
        conditions: list[tuple[str, Predicate]] = []
        for name, wanted in table.items():
            if isinstance(wanted, Mapping):
                inner = table.table(name)
                conditions += [(name, _operator(inner, key, value)) for key, value in inner.items()]
            else:
                values = as_list(wanted)
                conditions.append((name, _any_of([wanted] if values is None else values)))
        return Targeting(tuple(conditions))


def _operator(table: Table, key: str, value: object) -> Predicate:
    if key not in _OPERATORS:
        table.refuse(key, value, f"unknown operator; accepted: {', '.join(_OPERATORS)}")
    values = as_list(value)
    if key == "exists" and isinstance(value, bool):
        return lambda found: (found is not _ABSENT) == value
    if key in {"in", "not_in"} and values is not None:
        return _any_of(values, key == "in")
    if key == "not" and values is None:
        return _any_of([value], False)
    if key in {"lt", "lte", "gt", "gte"} and is_number(value):
        return _comparison(key, value)
    return table.refuse(key, value, f"{key} does not take this value")


def _any_of(values: list[object], wanted: bool = True) -> Predicate:
    # 1 == True in Python, but an attribute that is true is not the number one.
    return lambda found: any(found == value and type(found) is type(value) for value in values) == wanted


def _comparison(key: str, bound: float) -> Predicate:
    def holds(found: object) -> bool:
        if not is_number(found):
            return False
        if key.startswith("lt"):
            return found <= bound if key == "lte" else found < bound
        return found >= bound if key == "gte" else found > bound

    return holds
