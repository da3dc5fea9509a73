"""Which names a Jinja2 template takes from its caller.

Not `jinja2.meta.find_undeclared_variables`: since 3.1.5 that also reports a name set in every branch of an `if`
(pallets/jinja issue 2069), and it generates code for it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

GLOBALS = frozenset(
    ["range", "dict", "lipsum", "cycler", "joiner", "namespace", "loop", "self", "super", "caller", "varargs", "kwargs"]
)


def undeclared_names(tree: Any) -> set[str]:
    """The names that `tree` (a jinja2 `nodes.Template`) reads before it binds them, without Jinja2's globals."""
    scan = _Scan()
    scan.block(tree.body, set())
    return scan.found - GLOBALS


class _Scan:
    def __init__(self) -> None:
        self.found: set[str] = set()

    def block(self, body: Iterable[Any], bound: set[str]) -> set[str]:
        """Walk statements in order; `bound` grows by what they bind and is returned."""
        for node in body:
            handler = getattr(self, f"_{type(node).__name__.lower()}", None)
            if handler:
                handler(node, bound)
            else:
                self.expression(node, bound)
        return bound

    def expression(self, node: Any, bound: set[str]) -> None:
        stack: list[Any] = [node]
        while stack:
            item = stack.pop()
            kind = type(item).__name__
            if kind == "Name":
                if item.ctx == "load" and item.name not in bound:
                    self.found.add(item.name)
            elif kind == "NSRef":
                if item.name not in bound:
                    self.found.add(item.name)
            else:
                stack.extend(item.iter_child_nodes())

    def _all(self, parts: Iterable[Any], bound: set[str]) -> None:
        for part in parts:
            if part is not None:
                self.expression(part, bound)

    def _assign(self, node: Any, bound: set[str]) -> None:
        self.expression(node.node, bound)
        self.expression(node.target, bound)
        bound |= _targets(node.target)

    def _assignblock(self, node: Any, bound: set[str]) -> None:
        self._all([node.filter], bound)
        self.block(node.body, set(bound))
        bound |= _targets(node.target)

    def _if(self, node: Any, bound: set[str]) -> None:
        self.expression(node.test, bound)
        branches: list[set[str]] = [self.block(node.body, set(bound))]
        for other in node.elif_:
            self.expression(other.test, bound)
            branches.append(self.block(other.body, set(bound)))
        branches.append(self.block(node.else_, set(bound)))
        bound |= branches[0].intersection(*branches[1:])

    def _for(self, node: Any, bound: set[str]) -> None:
        self.expression(node.iter, bound)
        inner = bound | _targets(node.target) | {"loop"}
        self._all([node.test], inner)
        self.block(node.body, set(inner))
        self.block(node.else_, set(bound))

    def _with(self, node: Any, bound: set[str]) -> None:
        self._all(node.values, bound)
        inner = set(bound)
        for target in node.targets:
            inner |= _targets(target)
        self.block(node.body, inner)

    def _macro(self, node: Any, bound: set[str]) -> None:
        bound.add(node.name)
        self._callable(node, bound)

    def _callblock(self, node: Any, bound: set[str]) -> None:
        self.expression(node.call, bound)
        self._callable(node, bound)

    def _callable(self, node: Any, bound: set[str]) -> None:
        self._all(node.defaults, bound)
        self.block(node.body, bound | {arg.name for arg in node.args})

    def _filterblock(self, node: Any, bound: set[str]) -> None:
        self._all([node.filter], bound)
        self.block(node.body, set(bound))

    def _block(self, node: Any, bound: set[str]) -> None:
        self.block(node.body, set(bound))

    def _scope(self, node: Any, bound: set[str]) -> None:
        self.block(node.body, set(bound))

    def _import(self, node: Any, bound: set[str]) -> None:
        self.expression(node.template, bound)
        bound.add(node.target)

    def _fromimport(self, node: Any, bound: set[str]) -> None:
        self.expression(node.template, bound)
        bound |= {name if isinstance(name, str) else name[1] for name in node.names}


def _targets(node: Any) -> set[str]:
    if type(node).__name__ == "Name":
        return {node.name}
    return {name for child in node.iter_child_nodes() for name in _targets(child)}
