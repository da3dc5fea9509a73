"""One prompt file as rules see it: parsed, cut into blocks, with its inputs and the models it is meant for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from zlclient.prompts.parts import KeyPath, Part, PromptSource, Span, Tag, Variable

from .block import Block
from .inputs import Input, declared_inputs
from .kinds import CODE
from .lexicon import lowered, may_hold
from .target import ModelUse, Target, find_uses

if TYPE_CHECKING:
    from zlclient.prompts.yaml_nodes import YamlDocument
    from zlclient.shaping.sanitise import Change

_YAML = frozenset(["github-models", "promptfoo", "yaml"])
_TOGETHER = frozenset(["prompty", "jinja", "markdown", "text", "dotprompt", "github-models"])
_UNUSUAL = re.compile(r"[^\t\n\r\x20-\x7e\u3000-\u303f\u3400-\u9fff\uff01-\uff5e\xa0-\xac\xae-\u024f‘’“”–—…•→]")
_LAST_KEY = re.compile(r"\[\s*[\"']([^\"'\]]+)[\"']\s*\](?:\.\w+\(\))?\s*(?:![rsa])?(?::[^\]]*)?-?\Z")
_MESSAGE = re.compile(r"\[\d+\]\.content\Z")


class Output(NamedTuple):
    """An input written out by a tag at `start`, `end` of its block's text."""

    variable: Variable
    start: int
    end: int


@dataclass(frozen=True)
class Document:
    """A file with all that rules ask of it, worked out when first asked for."""

    source: PromptSource
    today: date
    target: Target | None = None
    force_target: bool = False
    languages: frozenset[str] = frozenset(("en", "zh"))
    options: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def text(self) -> str:
        """The file's text."""
        return self.source.text

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """The parts, in order."""
        return tuple(Block(part, number) for part, number in zip(self.source.parts, self._numbers(), strict=True))

    def _numbers(self) -> list[int]:
        if self.source.format in _TOGETHER:
            return [0] * len(self.source.parts)
        seen: dict[str, int] = {}
        return [seen.setdefault(_conversation(part, index), len(seen)) for index, part in enumerate(self.source.parts)]

    @cached_property
    def prompts(self) -> tuple[tuple[Block, ...], ...]:
        """Blocks by conversation."""
        groups: dict[int, list[Block]] = {}
        for block in self.blocks:
            groups.setdefault(block.prompt, []).append(block)
        return tuple(tuple(group) for group in groups.values())

    @cached_property
    def low(self) -> str:
        """The instructions of all blocks in lower case, to dismiss rules that cannot find anything."""
        return lowered("\n".join(block.prose for block in self.blocks))

    @cached_property
    def text_low(self) -> str:
        """The whole file in lower case, at equal offsets."""
        return lowered(self.text)

    @cached_property
    def changes(self) -> tuple[Change, ...]:
        """What the sanitiser would change in the file."""
        if not _UNUSUAL.search(self.text):
            return ()
        from zlclient.shaping.sanitise import sanitize

        return sanitize(self.text).changes

    @cached_property
    def spoken(self) -> frozenset[str]:
        """The languages in force that any block is written in."""
        return self.languages & frozenset[str]().union(*(block.languages for block in self.blocks))

    def may_hold(self, name: str) -> bool:
        """Whether a word list of the languages in force can match anywhere; False is certain."""
        return may_hold(name, self.low, self.spoken)

    @cached_property
    def document(self) -> YamlDocument | None:
        """The front matter, or the whole of a YAML file, with the places of its keys; None where there is none."""
        from zlclient.prompts.yaml_nodes import YamlDocument, read_yaml

        if self.source.format in _YAML:
            return read_yaml(self.source.text)
        front = self.source.front
        if front is None or front.problem:
            return None
        return YamlDocument(data=front.data, keys=front.keys, values=front.values)

    @property
    def data(self) -> dict[str, Any]:
        """The front matter or YAML document as data, {} where there is none."""
        data: Any = self.document.data if self.document else None
        return cast("dict[str, Any]", data) if isinstance(data, dict) else {}

    def key_span(self, path: KeyPath) -> Span | None:
        """The file's span of a key of `data`."""
        return self.document.keys.get(path) if self.document else None

    @cached_property
    def inputs(self) -> tuple[Input, ...]:
        """The declared inputs."""
        return tuple(declared_inputs(self.source, self.document))

    @cached_property
    def has_input_section(self) -> bool:
        """Whether the file declares inputs at all, so that an undeclared name is a mistake."""
        return bool(self.inputs) or "inputs" in self.data

    @cached_property
    def models(self) -> tuple[ModelUse, ...]:
        """Each model the file is for: those it names, or the target of the settings."""
        found = list(find_uses(self.source, self.document, self.today))
        target = self.target
        if target is None:
            return tuple(found)
        if self.force_target:
            return tuple(ModelUse(use.name, use.span, use.options, target, is_override=True) for use in found) or (
                ModelUse(target.model.id, None, {}, target, is_override=True),
            )
        named = [ModelUse(u.name, u.span, u.options, u.target or (None if u.name else target)) for u in found]
        return tuple(named) or (ModelUse(target.model.id, None, {}, target, is_override=True),)

    @cached_property
    def targets(self) -> tuple[Target, ...]:
        """The models of `models` that are known to some provider."""
        return tuple(use.target for use in self.models if use.target)

    @cached_property
    def has(self) -> frozenset[str]:
        """Which of "tags", "models" and "keys" the file has; rules that need another are not run."""
        facts = {
            "tags": any(template.tags for template in self.source.templates),
            "models": bool(self.models),
            "keys": self.document is not None,
        }
        return frozenset(name for name, is_so in facts.items() if is_so)

    def outputs_in(self, block: Block) -> Sequence[Variable]:
        """The inputs written out inside a block."""
        start, end = block.part.start, block.part.end
        return [v for v in self.source.variables if v.output and start <= v.start < end and v.tag.end <= end]

    def outputs(self, block: Block) -> Sequence[Output]:
        """Each input written out in a block by a tag of its own, with the tag's place."""
        if id(block) not in self._outputs:
            spans = {block.span(tag.start, tag.end): tag for tag in block.part.tags if tag.kind == "output"}
            found = ((variable, spans.get(variable.tag)) for variable in self.outputs_in(block))
            outputs = (_output(variable, block.text, tag) for variable, tag in found if tag)
            self._outputs[id(block)] = [
                output for output in outputs if output and not self._is_listed(block, output.start)
            ]
        return self._outputs[id(block)]

    def _is_listed(self, block: Block, offset: int) -> bool:
        """Whether code that a page of Markdown shows stands around `offset`."""
        if self.source.format != "markdown" or "`" not in block.text:
            return False
        start, end = block.line_at(offset)
        return CODE in block.kinds.codes[start:end]

    @cached_property
    def _outputs(self) -> dict[int, Sequence[Output]]:
        return {}


def _output(variable: Variable, text: str, tag: Tag) -> Output | None:
    """The value that a tag writes: of `{context["question"]}` the question, and of a call nothing that has a name."""
    inner = text[tag.inner.start : tag.inner.end]
    if "(" not in inner and "[" not in inner:
        return Output(variable, tag.start, tag.end)
    if not inner.lstrip("-").lstrip().startswith(variable.name):
        return None
    key = _LAST_KEY.search(inner)
    return Output(variable._replace(name=key[1]) if key else variable, tag.start, tag.end)


def _conversation(part: Part, index: int) -> str:
    """Messages of one list make one conversation; any other string stands alone."""
    if part.kind == "message" and _MESSAGE.search(part.name):
        return _MESSAGE.sub("", part.name)
    return f"#{index}"
