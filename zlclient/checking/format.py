"""Whether an answer has the form that was asked for: sentences, lengths, list, table, JSON."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, Literal, cast

from ..errors import InputError
from .markdown import Line, Table, lines, tables
from .output import OutputError, find_json, parse_output
from .schema import Schema, check_schema, is_model, schema_problems
from .sentences import sentences
from .text import CJK

if TYPE_CHECKING:
    from collections.abc import Mapping

ListKind = Literal["bullet", "numbered", "any"]
_COUNTS = (
    "sentences", "min_sentences", "max_sentences", "max_chars_per_sentence", "max_words_per_sentence", "max_chars",
    "max_words", "items", "min_items", "max_items", "rows", "min_rows", "max_rows",
)  # fmt: skip
_WORD = re.compile(rf"[{CJK}]|[^\W_{CJK}]+(?:[.,'’-][^\W_{CJK}]+)*%?")
_PROSE = ("sentences", "min_sentences", "max_sentences", "max_chars_per_sentence", "max_words_per_sentence")
_LIST = ("list", "items", "min_items", "max_items")
_TABLE = ("table", "columns", "rows", "min_rows", "max_rows")


@dataclass(frozen=True, slots=True, kw_only=True)
class FormatSpec:
    """The form an answer should have; whatever is None is not checked.

    Sentences are counted in prose and list items, not in headings, tables and fenced blocks. Characters are those that
    are written: no spaces, no punctuation. A word is a Latin word or number; in Chinese each character counts as one.
    `columns` is their number, or their titles in order. `json_schema` is a JSON schema (a dict) or a pydantic model.

    Raises InputError for an unknown option, a value that makes no sense, and options that contradict each other.
    """

    sentences: int | None = None
    min_sentences: int | None = None
    max_sentences: int | None = None
    max_chars_per_sentence: int | None = None
    max_words_per_sentence: int | None = None
    max_chars: int | None = None
    max_words: int | None = None
    list: ListKind | None = None
    items: int | None = None
    min_items: int | None = None
    max_items: int | None = None
    table: bool = False
    columns: int | tuple[str, ...] | None = None
    rows: int | None = None
    min_rows: int | None = None
    max_rows: int | None = None
    json: bool = False
    json_schema: Schema | None = None

    def __new__(cls, **options: object) -> FormatSpec:
        """Turns an unknown option into an InputError that names the known ones."""
        known = {field.name for field in fields(cls)}
        if unknown := sorted(options.keys() - known):
            raise InputError(f"unknown option; known are {', '.join(sorted(known))}", where=f"format.{unknown[0]}")
        return object.__new__(cls)

    def __post_init__(self) -> None:
        if isinstance(self.columns, list):
            object.__setattr__(self, "columns", tuple(self.columns))
        _check_values(self)
        _check_together(self)

    def given(self, names: tuple[str, ...]) -> list[str]:
        """Those of `names` that are asked for."""
        return [name for name in names if getattr(self, name) not in (None, False)]


def _check_values(spec: FormatSpec) -> None:
    for name in _COUNTS:
        value = getattr(spec, name)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
            raise InputError("needs a whole number from 0 up", where=f"format.{name}")
    if spec.list not in (None, "bullet", "numbered", "any"):
        raise InputError("needs bullet, numbered or any", where="format.list")
    good = spec.columns is None or _good_columns(spec.columns)
    if not good:
        raise InputError("needs a number of columns, or their titles", where="format.columns")
    for name in ("table", "json"):
        if not isinstance(getattr(spec, name), bool):
            raise InputError("needs True or False", where=f"format.{name}")
    if spec.json_schema is not None:
        check_schema(spec.json_schema)


def _good_columns(columns: object) -> bool:
    if isinstance(columns, tuple):
        titles = cast("tuple[object, ...]", columns)
        return bool(titles) and all(isinstance(title, str) for title in titles)
    return isinstance(columns, int) and not isinstance(columns, bool) and columns > 0


def _check_together(spec: FormatSpec) -> None:
    for what in ("sentences", "items", "rows"):
        exact, low, high = (getattr(spec, name) for name in (what, f"min_{what}", f"max_{what}"))
        if exact is not None and (low is not None or high is not None):
            raise InputError(f"contradicts min_{what} and max_{what}", where=f"format.{what}")
        if low is not None and high is not None and low > high:
            raise InputError(f"is above max_{what}", where=f"format.min_{what}")
    if (counts := spec.given(("items", "min_items", "max_items"))) and spec.list is None:
        raise InputError("needs list=", where=f"format.{counts[0]}")
    if (parts := spec.given(("columns", "rows", "min_rows", "max_rows"))) and not spec.table:
        raise InputError("needs table=True", where=f"format.{parts[0]}")
    if (spec.json or spec.json_schema is not None) and (others := spec.given((*_PROSE, *_LIST, *_TABLE))):
        raise InputError("contradicts a JSON answer", where=f"format.{others[0]}")


@dataclass(frozen=True, slots=True)
class FormatProblem:
    """A rule that is broken: what it wants, what there is, and where (offsets of a sentence, or a JSON path)."""

    rule: str
    expected: str
    actual: str
    start: int | None = None
    end: int | None = None
    path: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """A dict that json can write."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class FormatReport:
    """What is wrong with the form of an answer, and what was noted without being wrong ("fenced_json")."""

    problems: tuple[FormatProblem, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether the answer has the form asked for."""
        return not self.problems

    def as_dict(self) -> dict[str, Any]:
        """A dict that json can write."""
        return {"ok": self.ok, "problems": [problem.as_dict() for problem in self.problems], "notes": list(self.notes)}


def check_format(answer: str, spec: FormatSpec | Mapping[str, Any]) -> FormatReport:
    """Compare the form of `answer` with `spec` (or its options as a mapping). Never raises on any answer."""
    spec = spec if isinstance(spec, FormatSpec) else FormatSpec(**spec)
    if spec.json or spec.json_schema is not None:
        problems, notes = _json(answer, spec)
        return FormatReport((*problems, *_lengths(answer, spec)), notes)
    parsed = lines(answer)
    checks = (_sentences(answer, parsed, spec), _lengths(answer, spec), _list(parsed, spec), _table(parsed, spec))
    return FormatReport(tuple(problem for check in checks for problem in check))


def _in_bounds(rule: str, actual: int, exact: int | None, low: int | None, high: int | None) -> Iterator[FormatProblem]:
    if exact is not None and actual != exact:
        yield FormatProblem(rule, str(exact), str(actual))
    if low is not None and actual < low:
        yield FormatProblem(f"min_{rule}", f"at least {low}", str(actual))
    if high is not None and actual > high:
        yield FormatProblem(f"max_{rule}", f"at most {high}", str(actual))


def _sentences(answer: str, parsed: list[Line], spec: FormatSpec) -> Iterator[FormatProblem]:
    if not spec.given(_PROSE):
        return
    # Blanked out instead of cut out, so that the offsets stay those of the answer.
    prose = "".join(
        line.text if line.kind in ("prose", "bullet", "numbered", "blank") else " " * (len(line.text) - 1) + "\n"
        for line in parsed
    )
    spans = sentences(prose)
    yield from _in_bounds("sentences", len(spans), spec.sentences, spec.min_sentences, spec.max_sentences)
    for start, end in spans:
        for rule, most, count in (
            ("max_chars_per_sentence", spec.max_chars_per_sentence, count_chars),
            ("max_words_per_sentence", spec.max_words_per_sentence, count_words),
        ):
            if most is not None and (actual := count(answer[start:end])) > most:
                yield FormatProblem(rule, f"at most {most}", str(actual), start, end)


def _lengths(answer: str, spec: FormatSpec) -> Iterator[FormatProblem]:
    for rule, most, count in (
        ("max_chars", spec.max_chars, count_chars),
        ("max_words", spec.max_words, count_words),
    ):
        if most is not None and (actual := count(answer)) > most:
            yield FormatProblem(rule, f"at most {most}", str(actual))


def count_chars(text: str) -> int:
    """Written characters: neither spaces nor punctuation."""
    return sum(1 for char in text if unicodedata.category(char)[0] not in "ZPC")


def count_words(text: str) -> int:
    """Chinese characters, and Latin words and numbers (3.5, don't and 12% are one each)."""
    return len(_WORD.findall(text))


def _list(parsed: list[Line], spec: FormatSpec) -> Iterator[FormatProblem]:
    if spec.list is None:
        return
    marked = [line for line in parsed if line.kind in ("bullet", "numbered")]
    outer = min((line.indent for line in marked), default=0)
    # One space more or less is untidy, two begin a list inside the list.
    top = [line for line in marked if line.indent < outer + 2]
    wanted = [line for line in top if spec.list in ("any", line.kind)]
    if not wanted:
        yield FormatProblem(
            "list", f"a {spec.list} list" if spec.list != "any" else "a list", "none" if not top else top[0].kind
        )
        return
    if len(wanted) < len(top):
        yield FormatProblem("list", f"only {spec.list} items", f"{len(top) - len(wanted)} others")
    yield from _in_bounds("items", len(wanted), spec.items, spec.min_items, spec.max_items)


def _table(parsed: list[Line], spec: FormatSpec) -> Iterator[FormatProblem]:
    if not spec.table:
        return
    found = tables(parsed)
    if len(found) != 1:
        yield FormatProblem("table", "one Markdown table", str(len(found)))
        return
    yield from _columns(found[0], spec)
    yield from _in_bounds("rows", len(found[0].rows), spec.rows, spec.min_rows, spec.max_rows)


def _columns(table: Table, spec: FormatSpec) -> Iterator[FormatProblem]:
    if isinstance(spec.columns, int) and len(table.header) != spec.columns:
        yield FormatProblem("columns", str(spec.columns), str(len(table.header)))
    if isinstance(spec.columns, tuple) and table.header != spec.columns:
        missing = [title for title in spec.columns if title not in table.header]
        actual = f"missing {', '.join(missing)}" if missing else "other columns, or another order"
        yield FormatProblem("columns", ", ".join(spec.columns), actual)
    uneven = sum(len(row) != len(table.header) for row in table.rows)
    if uneven:
        yield FormatProblem("columns", f"{len(table.header)} cells in each row", f"{uneven} uneven rows")


def _json(answer: str, spec: FormatSpec) -> tuple[list[FormatProblem], tuple[str, ...]]:
    try:
        found = find_json(answer)
    except OutputError as error:
        return [FormatProblem("json", "one JSON value", error.reason)], ()
    notes = ("fenced_json",) if found.fenced else ()
    schema = spec.json_schema
    if schema is None:
        return [], notes
    if is_model(schema):
        try:
            parse_output(answer, schema)
        except OutputError as error:
            wrong = error.problems
        else:
            wrong = ()
    else:
        wrong = tuple(schema_problems(found.value, schema))
    return [
        FormatProblem("json_schema", problem.expected, problem.rule, path=problem.where) for problem in wrong
    ], notes
