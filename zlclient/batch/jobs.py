"""A row as a request: its prompt and options, and the hash of its content that the ledger knows it by.

Without a template a row holds `prompt` or `messages` and options of its own: those of `zlclient.chat`, `document` (a
file's path), `id` and `metadata`. With one, its fields are the template's inputs; a field that the template does not
use is left out and named in the report.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ..errors import InputError
from ..reply import as_plain
from ..request import Request
from .budget import Expected
from .outcomes import Json, Outcome, failure
from .sources import FolderSource

if TYPE_CHECKING:
    from ..client import Client
    from ..prepared import Prepared
    from ..prompts.prompt import Prompt
    from .sources import Row, Source

CHUNK_BYTES = 8_000_000
OWN_FIELDS = ("id", "metadata")
_PROMPTS = ("prompt", "messages", "text")
_WIRE_ONLY = ("stream", "stream_options")
# What changes an answer, or what is reported of it, without being in the body that is sent.
_BESIDE_THE_BODY = (
    "source",
    "fidelity",
    "format",
    "format_policy",
    "experiment",
    "unit",
    "attributes",
    "arm",
    "mode",
    "segment_tokens",
)
# Options that are no text: a CSV cell gives them as JSON.
_NUMBERS = ("max_tokens", "temperature", "timeout", "deadline", "retry", "retry_wait", "segment_tokens", "concurrency")
_TREES = ("messages", "metadata", "tools", "tool_choice", "format", "attributes", "extra", "extra_headers")
_STRUCTURED = frozenset([*_NUMBERS, *_TREES, "reinforce", "strict"])
_STRUCTURED_KINDS = frozenset(["integer", "float", "boolean", "array", "object", "thread"])


@dataclass(frozen=True, slots=True)
class Job:
    """One request to send. Rows of equal content share one."""

    key: str
    prompt: Any
    options: Mapping[str, Any]
    request: Request
    prepared: Prepared

    def expected(self, discount: float = 1.0) -> Expected:
        """What it may use, estimated."""
        from ..shaping.tokens import estimate_tokens
        from ..shaping.tune import texts_of

        tuned, route = self.prepared.tuned, self.prepared.route
        texts = [*texts_of(tuned.messages), *(json.dumps(part) for part in (tuned.system, tuned.tools) if part)]
        tokens = estimate_tokens("\n".join(texts), route.model.id)
        return Expected(route.provider.name, route.model.id, tokens, tuned.max_tokens, discount)


@dataclass(frozen=True, slots=True)
class Made:
    """A row with its job, or with the failure that stands in its place."""

    row: Row
    job: Job | None
    outcome: Outcome | None = None

    @property
    def size(self) -> int:
        """About how many bytes it holds."""
        return 0 if self.job is None else len(self.job.prepared.content)


class Maker:
    """Makes jobs of rows, all with the same template and options.

    Args:
        client: prepares requests and never sends one, so that what it learns from refusals cannot change a hash.
        template: rendered with each row's fields.
        options: options of `zlclient.chat` for every row; a row's own win.
    """

    def __init__(self, client: Client, source: Source, template: Prompt | None, options: Mapping[str, Any]) -> None:
        Request.of("-", **options)  # a wrong option is the run's mistake, not each row's
        self._client, self._template, self._options = client, template, dict(options)
        self._inputs = frozenset[str]() if template is None else {*template.inputs, *template.source.names}
        self.text_input = _text_input(template) if isinstance(source, FolderSource) else None
        self.settings = client.settings
        self.unused: set[str] = set()

    def make(self, row: Row) -> Made:
        """The job of `row`; a row that is wrong gets its failure."""
        if row.problem is not None:
            return Made(row, None, failure(InputError(row.problem)))
        try:
            prompt, options = self._from_template(row) if self._template is not None else self._from_row(row)
            options = {**self._options, **options}
            request = Request.of(prompt, **options)
            prepared = self._client.prepare(prompt, **options)
            return Made(row, Job(content_key(request, prepared), prompt, options, request, prepared))
        except InputError as error:
            return Made(row, None, failure(error))

    def _from_row(self, row: Row) -> tuple[Any, dict[str, Any]]:
        fields = {name: value for name, value in row.fields.items() if value is not None}
        if row.textual:
            fields = {name: _parsed(name, value) if name in _STRUCTURED else value for name, value in fields.items()}
        found = [name for name in _PROMPTS if name in fields]
        if len(found) != 1:
            raise InputError('a row needs either "prompt" or "messages"')
        options = {name: value for name, value in fields.items() if name not in OWN_FIELDS and name != found[0]}
        if "document" in options:
            options["document"] = Path(str(options["document"]))
        return fields[found[0]], options

    def _from_template(self, row: Row) -> tuple[Any, dict[str, Any]]:
        template = cast("Prompt", self._template)
        fields = dict(row.fields)
        if self.text_input is not None:
            fields[self.text_input] = fields.pop("text")
        values = {name: value for name, value in fields.items() if name in self._inputs}
        self.unused |= fields.keys() - values.keys() - {*OWN_FIELDS}
        if row.textual:
            kinds = {name: spec.kind for name, spec in template.inputs.items()}
            values = {
                name: _parsed(name, value) if kinds.get(name) in _STRUCTURED_KINDS else value
                for name, value in values.items()
            }
        return template.render(**values), {}


def chunks(rows: Iterator[Row], maker: Maker, most: int) -> Iterator[list[Made]]:
    """The rows as they are made, up to `most` at a time, or fewer where they are large."""
    chunk: list[Made] = []
    size = 0
    for row in rows:
        made = maker.make(row)
        chunk.append(made)
        size += made.size
        if len(chunk) == most or size >= CHUNK_BYTES:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def load_template(template: Any) -> Prompt | None:
    """The template that `template` is, names (of those bundled), or is the path of; None for None.

    Raises:
        ConfigError: there is none, or it is wrong.
    """
    from ..prompts.prompt import Prompt

    if template is None or isinstance(template, Prompt):
        return template
    path = Path(template)
    if isinstance(template, Path) or path.is_file() or path.suffix or "/" in template:
        return Prompt.load(path)
    return Prompt.bundled(template)


def _text_input(template: Prompt | None) -> str | None:
    """The input that a folder's text goes to: `text`, or the only one the template requires."""
    if template is None:
        return None
    required = [name for name, spec in template.inputs.items() if spec.required]
    return required[0] if "text" not in template.inputs and len(required) == 1 else "text"


def _parsed(name: str, cell: str) -> Any:
    try:
        return json.loads(cell)
    except ValueError:
        if name in ("timeout", "retry", "tool_choice"):
            return cell  # these are words, too
        raise InputError("is not JSON, which a cell of its kind is given as", where=name) from None


def content_key(request: Request, prepared: Prepared) -> str:
    """The hash of what is asked, of whom, and how it is checked: 64 hexadecimal digits.

    The order of keys does not matter, nor what only moves the sending: timeouts, retries, fallbacks, headers.
    """
    beside = {name: as_plain(getattr(request, name)) for name in _BESIDE_THE_BODY}
    if request.output is not None:
        beside["output"] = cast("Any", request.output).model_json_schema()
    if request.document is not None:
        beside["document"] = hashlib.sha256(request.document.source.encode("utf-8", "surrogatepass")).hexdigest()
    asked = {
        "provider": prepared.route.provider.name,
        "version": prepared.tuned.version,
        "body": batch_body(prepared),
        "beside": {name: value for name, value in beside.items() if value is not None and value != {}},
    }
    text = json.dumps(asked, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def batch_body(prepared: Prepared) -> dict[str, Any]:
    """The body without what asks for a stream."""
    return {name: value for name, value in prepared.body.items() if name not in _WIRE_ONLY}


def shown(made: Made, outcome: Outcome) -> Json:
    """The line of the output, or of the side file where the outcome is a failure."""
    row = made.row
    line: dict[str, Any] = {"id": as_plain(row.fields.get("id", row.number))}
    if "metadata" in row.fields:
        line["metadata"] = as_plain(row.fields["metadata"])
    if outcome.ok:
        return {**line, **outcome.body}
    return {**line, "row": row.number, "error": outcome.body, "input": as_plain(row.fields)}
