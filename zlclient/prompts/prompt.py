"""A prompt template that can be rendered and sent."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from ..errors import ConfigError
from .agent import agent_of
from .inputs import Input, check_values, read_inputs
from .messages import Assembler, Message, media_block, read_thread
from .outputs import chat_options, output_model, own_settings, unused_keys
from .parts import Part, PromptSource, Role, TemplateText
from .rendered import Rendered
from .rendering import Renderer
from .roles import RoleLine
from .sandbox import UndefinedPolicy
from .segments import Limits, Segment, thread_mark
from .source import parse_source
from .upgrade import upgrade_text

if TYPE_CHECKING:
    from ..reply import Reply

SanitizeMode = Literal["standard", "strict", "minimal", "naive", "off"]
_MEDIA = frozenset(["image", "file", "audio"])
_WHOLE = ("prompty", "jinja", "markdown", "text", "dotprompt")
_OTHER_FILES = (["include"], ["extends"], ["import"], ["from"])
_LARGEST_FILE = 2_000_000


@dataclass(frozen=True)
class Prompt:
    """A template, parsed. Make one with `Prompt.load`, `Prompt.from_text` or `Prompt.bundled`.

    >>> prompt = Prompt.from_text("system:\\nBe brief.\\n\\nuser:\\n{{ question }}")
    >>> prompt.render(question="Why?").messages
    [{'role': 'user', 'content': 'Why?'}]

    Args:
        source: the parsed file.
        root: the folder that includes, partials and `${file:…}` come from; None for none.
        undefined: "strict" makes a name without a value an error, "empty" writes nothing in its place.
        sanitize: how untrusted values are cleaned before they are written.
        limits: bounds of a rendering.
        env: what `${env:VAR}` reads; None for the process's environment.
    """

    source: PromptSource
    root: Path | None = None
    undefined: UndefinedPolicy = "strict"
    sanitize: SanitizeMode = "standard"
    limits: Limits = field(default_factory=Limits)
    env: Mapping[str, str] | None = None

    @classmethod
    def load(cls, path: str | Path, **settings: Any) -> Prompt:
        """Read the template at `path`; its folder is the root unless `root` is given.

        Raises:
            ConfigError: there is no such file, it is not UTF-8 text, or the template is wrong; names file and line.
        """
        path = Path(path)
        try:
            if path.stat().st_size > _LARGEST_FILE:
                raise ConfigError(f"is larger than {_LARGEST_FILE} bytes", file=str(path))
            text = path.read_bytes().decode("utf-8")
        except FileNotFoundError as error:
            raise ConfigError("FileNotFoundError: there is no such file", file=str(path)) from error
        except OSError as error:
            raise ConfigError(f"cannot be read: {error.strerror or error}", file=str(path)) from error
        except UnicodeDecodeError as error:
            raise ConfigError(f"is not UTF-8 at byte {error.start}", file=str(path)) from error
        return cls.from_text(text, path=str(path), root=settings.pop("root", path.parent), **settings)

    @classmethod
    def from_text(
        cls,
        text: str,
        *,
        path: str | None = None,
        format: str | None = None,  # noqa: A002 - the word of parse_source
        root: Path | None = None,
        undefined: UndefinedPolicy = "strict",
        sanitize: SanitizeMode = "standard",
        limits: Limits | None = None,
        env: Mapping[str, str] | None = None,
    ) -> Prompt:
        """A prompt from text; without a path or format it is read as .prompty.

        Raises:
            ConfigError: the template is wrong; names file and line.
        """
        source = parse_source(text, path, format or (None if path else "prompty"))
        prompt = cls(source, root, undefined, sanitize, limits or Limits(), env)
        prompt._check()
        return prompt

    @classmethod
    def bundled(cls, name: str, *, language: str | None = None, version: str | None = None) -> Prompt:
        """A template of the library shipped with zlclient, such as "summary"; language "en" or "zh"."""
        from .library import bundled_library

        return bundled_library().get(name, language=language or "en", version=version)

    @cached_property
    def agent(self) -> dict[str, Any]:
        """The front matter in v2 shape, references resolved, without connections."""
        if self.source.format in ("prompty", "jinja", "markdown", "text"):
            env = os.environ if self.env is None else self.env
            return agent_of(self.source, root=self.root, env=env, connections=False)
        return _other_agent(self.source)

    @cached_property
    def inputs(self) -> Mapping[str, Input]:
        """The declared inputs by name; names that the template only uses are not among them."""
        return read_inputs(self.agent, self.source.front, self.source.path, self.source.line_col)

    @property
    def name(self) -> str | None:
        """The template's name."""
        name = self.agent.get("name")
        return str(name) if name is not None else None

    @property
    def version(self) -> str | None:
        """The template's version: `version` of its metadata."""
        version = self._metadata.get("version")
        return str(version) if version is not None else None

    @property
    def language(self) -> str | None:
        """The template's language: `language` of its metadata."""
        language = self._metadata.get("language")
        return str(language) if language is not None else None

    @property
    def _metadata(self) -> Mapping[str, Any]:
        return cast("Mapping[str, Any]", self.agent.get("metadata") or {})

    @cached_property
    def _options(self) -> Mapping[str, Any]:
        model = output_model(self.agent)
        return chat_options(self.agent, self.source.path) | ({"output": model} if model else {})

    def _check(self) -> None:
        source, _ = self.source, self._options
        if not source.parts and not source.problems:
            raise ConfigError("holds no prompt text", file=source.path)
        problem = next((found for found in source.problems if found.code != "yaml-duplicate-key"), None)
        if problem:
            raise ConfigError(problem.message, file=source.path or "prompt", line=source.line_col(problem.start)[0])
        if source.format not in _WHOLE and not any(part.kind == "message" for part in source.parts):
            raise ConfigError(
                "holds prompts but no messages; a prompt to render has a file of its own", file=source.path
            )
        for variable in source.variables:
            spec = self.inputs.get(variable.name)
            if spec and spec.kind in ("thread", *_MEDIA) and not variable.output:
                problem_text = f"a {spec.kind} is put in whole, with {{{{ {variable.name} }}}}"
                line = source.line_col(variable.start)[0]
                raise ConfigError(problem_text, key=f"inputs.{variable.name}", file=source.path, line=line)

    def render(self, **values: Any) -> Rendered:
        """The messages and options for these values.

        Untrusted values are sanitised and fenced. No value is read as template text or role line.

        Raises:
            PromptInputError: an input is missing, unknown or of a wrong kind; an InputError.
            RenderLimitExceeded: the output or the work is more than `limits` allow.
            ConfigError: the template reaches for what the sandbox does not give.
        """
        checked = check_values(self.inputs, self._used(values), values, self.source.path)
        cleaned, changed = self._clean(checked, values)
        threads, media = self._placeholders(cleaned)
        segments = self._segments(cleaned)
        trusted = {name for name in checked if self._is_trusted(name, values)}
        first: Role = "system" if self.source.format == "prompty" else "user"
        assembler = Assembler(trusted=trusted, changed=changed, threads=threads, media=media, first_role=first)
        messages = assembler.build(segments)
        options = dict(self._options)
        checked_text = own_settings(self.agent).get("source")
        if checked_text in cleaned:
            options["source"] = str(cleaned[checked_text])
        return Rendered(
            conversation=tuple(messages),
            options=options,
            untrusted=tuple(assembler.untrusted),
            name=self.name,
            version=self.version,
            path=self.source.path,
            metadata=self._metadata,
            unused=unused_keys(self.agent),
        )

    def chat(self, client: Any = None, **values: Any) -> Reply:
        """Render and send; `client` is a `zlclient.Client`, or None for one with the settings in force.

        For options of the call, and for an input that is itself named `client`: `client.chat(prompt.render(…), …)`.
        """
        if client is None:
            from ..client import Client

            with Client() as own:
                return own.chat(self.render(**values))
        return client.chat(self.render(**values))

    def upgrade(self) -> str:
        """The file's text in the second .prompty format; text that needs no change comes back as it is."""
        return upgrade_text(self.source)

    def _used(self, values: Mapping[str, Any]) -> Sequence[str]:
        """Names the template may use without declaring them; files it includes may use any."""
        source = self.source
        opened = (
            part.text[tag.inner.start : tag.inner.end].split(None, 1) for part in source.parts for tag in part.tags
        )
        if not self.inputs and any(word[:1] in _OTHER_FILES for word in opened):
            return list(values)
        return (*source.names, "history") if source.format == "dotprompt" else source.names

    def _is_trusted(self, name: str, values: Mapping[str, Any]) -> bool:
        # A default is the author's own text.
        spec = self.inputs.get(name)
        return spec is not None and (spec.trust == "trusted" or name not in values)

    def _clean(self, checked: dict[str, Any], values: Mapping[str, Any]) -> tuple[dict[str, Any], set[str]]:
        from ..shaping.sanitise import sanitize_data

        changed: set[str] = set()
        cleaned: dict[str, Any] = {}
        for name, value in checked.items():
            trusted = self._is_trusted(name, values)
            cleaned[name] = value if trusted else sanitize_data(value, self.sanitize)
            if not trusted and cleaned[name] != value:
                changed.add(name)
        return cleaned, changed

    def _placeholders(self, values: dict[str, Any]) -> tuple[dict[str, Sequence[Message]], dict[str, dict[str, Any]]]:
        """Put placeholders in `values` for what becomes messages or blocks of its own."""
        threads: dict[str, Sequence[Message]] = {}
        media: dict[str, dict[str, Any]] = {}
        for name, value in list(values.items()):
            is_history = name == "history" and self.source.format == "dotprompt"
            kind = self.inputs[name].kind if name in self.inputs else "thread" if is_history else ""
            if kind == "thread":
                values[name] = mark = thread_mark(name, values)
                threads[mark] = read_thread(value, name)
            elif kind in _MEDIA:
                values[name] = mark = thread_mark(name, values, kind.upper())
                media[mark] = media_block(value, kind, name)
        return threads, media

    @cached_property
    def _renderers(self) -> tuple[tuple[Role | None, Renderer], ...]:
        """What renders the file, or in a YAML format each message, with its role."""
        source = self.source
        if source.format not in _WHOLE:
            messages = [part for part in source.parts if part.kind == "message"]
            return tuple((part.role or "user", self._renderer(part.template, ())) for part in messages)
        template = source.templates[0]
        found = () if source.format == "dotprompt" else source.parts
        lines = (_role_line(part, template) for part in found)
        return ((None, self._renderer(template, tuple(line for line in lines if line))),)

    def _segments(self, values: Mapping[str, Any]) -> list[Segment]:
        segments: list[Segment] = []
        for role, renderer in self._renderers:
            if role:
                segments.append(Segment("role", "", role=RoleLine(role, {}, 0, 0)))
            segments += renderer.segments(values)
        return segments

    def _renderer(self, template: TemplateText, lines: tuple[RoleLine, ...]) -> Renderer:
        return Renderer(
            template.text,
            template.dialect,
            root=self.root,
            undefined=self.undefined,
            limits=self.limits,
            strict=frozenset(name for name, spec in self.inputs.items() if spec.strict),
            role_lines=lines,
            first_line=self.source.line_col(template.offsets.to_file(0))[0],
            file=self.source.path,
        )


def _role_line(part: Part, template: TemplateText) -> RoleLine | None:
    if part.marker is None or part.role is None:
        return None
    shift = template.offsets.to_file(0)
    return RoleLine(part.role, part.attributes, part.marker.start - shift, part.marker.end - shift)


def _other_agent(source: PromptSource) -> dict[str, Any]:
    """Front matter of dotprompt, and the document of YAML formats, in .prompty's shape."""
    document: Any = source.front.data if source.front else source.data
    data = cast("dict[str, Any]", document) if isinstance(document, Mapping) else {}
    found: Any = data.get("config") or data.get("modelParameters") or {}
    config = cast("dict[str, Any]", found) if isinstance(found, Mapping) else {}
    names = {"temperature": "temperature", "topP": "topP", "topK": "topK", "stopSequences": "stopSequences"}
    names |= {"maxOutputTokens": "maxOutputTokens", "maxTokens": "maxOutputTokens"}
    options = {names[key]: value for key, value in config.items() if key in names}
    model: dict[str, Any] = {"options": options}
    if isinstance(data.get("model"), str):
        # "googleai/gemini-2.5-flash", "openai/gpt-4o": the part before the slash is who serves it.
        provider, _, name = data["model"].rpartition("/")
        model |= {"id": name} | ({"provider": provider} if provider else {})
    metadata: Any = data.get("metadata") or {}
    agent: dict[str, Any] = {"kind": "prompt", "name": data.get("name"), "model": model}
    declared: Any = data.get("input")
    given: Any = cast("dict[str, Any]", declared).get("default") if isinstance(declared, Mapping) else None
    if isinstance(given, Mapping):
        defaults = cast("Mapping[str, Any]", given).items()
        agent["inputs"] = [{"name": key, "kind": "any", "default": value} for key, value in defaults]
    if isinstance(metadata, Mapping):
        agent["metadata"] = dict(cast("Mapping[str, Any]", metadata))
    return agent
