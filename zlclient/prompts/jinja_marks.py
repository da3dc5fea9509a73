"""Rewrites a Jinja2 tree so that every written value is marked with where it came from, and loops count their steps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from jinja2 import nodes

from .fences import FenceMap
from .jinja_scope import undeclared_names
from .parts import Tag
from .segments import Fence, Marks, Site

# No template can spell the filters' names; the variable's becomes one of Python's and so must look like one.
EMIT, TICK, CONCAT = "\0emit", "\0tick", "\0concat"
_CAPTURE = "zlclient__captured"


def mark_outputs(tree: nodes.Template, text: str, tags: list[Tag], marks: Marks) -> None:
    """Rewrite `tree` in place. `text` and `tags` are the template before its role lines were marked.

    What a macro, call, filter or set block writes is a value of its own: it is marked where it is written out, not
    inside, so that filters and lengths see the plain text.
    """
    environment = tree.environment
    assert environment is not None
    _Rewriter(tree, _fences(text, tags), marks).walk(tree, is_captured=False)
    tree.set_environment(environment)


def _fences(text: str, tags: list[Tag]) -> Iterator[Fence]:
    """Fences in the order in which the tree's outputs are met, which is the order of the tags."""
    fences = FenceMap(text, ((tag.start, tag.end) for tag in tags))
    places = [
        tag
        for tag in tags
        if tag.kind == "output"
        or (tag.kind == "statement" and text[tag.inner.start : tag.inner.end].split(None, 1)[:1] == ["print"])
    ]
    return iter([fences.at(tag.start, tag.end) for tag in places])


class _Rewriter:
    def __init__(self, tree: nodes.Template, fences: Iterator[Fence], marks: Marks) -> None:
        self.fences, self.marks = fences, marks
        self.inputs = undeclared_names(tree)
        self.aliases = _aliases(tree)

    def walk(self, node: Any, *, is_captured: bool) -> None:
        """Rewrite the children of `node`."""
        for name, value in list(node.iter_fields()):
            if isinstance(value, list):
                items = cast("list[Any]", value)
                setattr(node, name, [new for item in items for new in self.rewritten(item, is_captured)])
            elif isinstance(value, nodes.Node):
                setattr(node, name, self.rewritten(value, is_captured)[0])
        if isinstance(node, (nodes.For, nodes.Macro, nodes.CallBlock)):
            tick = nodes.Filter(nodes.Const(0), TICK, [], [], None, None, lineno=node.lineno)
            node.body.insert(0, nodes.ExprStmt(tick, lineno=node.lineno))

    def rewritten(self, node: Any, is_captured: bool) -> list[Any]:
        """What takes the place of `node`."""
        if not isinstance(node, nodes.Node):
            return [node]
        if isinstance(node, nodes.Output):
            node.nodes = [self.output(item, is_captured) for item in node.nodes]
            return [node]
        captures = isinstance(node, (nodes.Macro, nodes.CallBlock, nodes.FilterBlock, nodes.AssignBlock))
        self.walk(node, is_captured=is_captured or captures)
        if isinstance(node, nodes.Concat):
            items = nodes.List(node.nodes, lineno=node.lineno)
            return [nodes.Filter(items, CONCAT, [], [], None, None, lineno=node.lineno)]
        if isinstance(node, (nodes.FilterBlock, nodes.CallBlock)) and not is_captured:
            return self.captured(node)
        return [node]

    def captured(self, node: nodes.FilterBlock | nodes.CallBlock) -> list[Any]:
        """The block's output as one value."""
        sources = tuple(self.sources(node))
        if not sources:
            return [node]
        capture = nodes.AssignBlock(nodes.Name(_CAPTURE, "store"), None, [node], lineno=node.lineno)
        written = self.emit(nodes.Name(_CAPTURE, "load"), sources, Fence("none", "", is_block=True), node.lineno)
        return [capture, nodes.Output([written], lineno=node.lineno)]

    def output(self, item: nodes.Expr, is_captured: bool) -> nodes.Expr:
        """One expression between {{ and }}."""
        if isinstance(item, nodes.TemplateData):
            return item
        fence = next(self.fences, Fence("none"))
        if fence.kind == "none" and isinstance(item, nodes.Filter) and item.name == "tojson":
            fence = Fence("json")
        sources = tuple(self.sources(item))
        whole = self.rewritten(item, is_captured)[0]
        return (
            whole
            if is_captured or not sources or _is_block_call(item)
            else self.emit(whole, sources, fence, item.lineno)
        )

    def emit(self, value: nodes.Expr, sources: tuple[str, ...], fence: Fence, line: int) -> nodes.Expr:
        """`value` marked as a new site."""
        number = self.marks.add_site(Site(sources, fence))
        return nodes.Filter(value, EMIT, [nodes.Const(number)], [], None, None, lineno=line)

    def sources(self, node: nodes.Node) -> Iterator[str]:
        """The inputs an expression's value comes from, each once, in order."""
        seen: set[str] = set()
        waiting = list(_names(node))
        while waiting:
            name = waiting.pop(0)
            if name in seen:
                continue
            seen.add(name)
            if name in self.inputs:
                yield name
            waiting = self.aliases.get(name, []) + waiting


def _is_block_call(item: nodes.Expr) -> bool:
    """super() and self.name(): what they give is marked already."""
    if not isinstance(item, nodes.Call):
        return False
    callee = item.node
    if isinstance(callee, nodes.Getattr):
        return isinstance(callee.node, nodes.Name) and callee.node.name == "self"
    return isinstance(callee, nodes.Name) and callee.name == "super"


def _aliases(tree: nodes.Template) -> dict[str, list[str]]:
    """For each name the template binds, the names its value is made of, wherever it is bound."""
    found: dict[str, list[str]] = {}

    def bind(target: nodes.Node, names: list[str]) -> None:
        bound = [target.name] if isinstance(target, (nodes.Name, nodes.NSRef)) else []
        bound += [name.name for name in target.find_all((nodes.Name, nodes.NSRef))]
        for name in bound:
            found.setdefault(name, []).extend(names)

    for node in tree.find_all((nodes.For, nodes.Assign, nodes.AssignBlock, nodes.With, nodes.Macro, nodes.CallBlock)):
        if isinstance(node, nodes.For):
            bind(node.target, list(_names(node.iter)))
        elif isinstance(node, nodes.Assign):
            bind(node.target, list(_names(node.node)))
        elif isinstance(node, nodes.AssignBlock):
            bind(node.target, [name for child in node.body for name in _names(child)])
        elif isinstance(node, nodes.With):
            for target, value in zip(node.targets, node.values, strict=True):
                bind(target, list(_names(value)))
        elif isinstance(node, nodes.Macro):
            own = {argument.name for argument in node.args}
            inside = [name for child in node.body for name in _names(child) if name not in own]
            found.setdefault(node.name, []).extend(inside)
        else:
            for argument in node.args:
                found.setdefault(argument.name, []).extend(_names(node.call))
    return found


def _names(node: nodes.Node) -> Iterator[str]:
    """Names whose value an expression passes on: not those it only tests or compares."""
    if isinstance(node, nodes.Name):
        if node.ctx == "load":
            yield node.name
        return
    if isinstance(node, (nodes.Compare, nodes.Test, nodes.Not)):
        return
    for name, value in node.iter_fields():
        if isinstance(node, (nodes.CondExpr, nodes.If)) and name == "test":
            continue
        for child in cast("list[Any]", value) if isinstance(value, list) else [value]:
            if isinstance(child, nodes.Node):
                yield from _names(child)
