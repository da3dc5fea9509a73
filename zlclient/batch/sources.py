"""Where rows come from: JSON Lines, CSV, Parquet, a folder of texts, standard input, or any iterable.

A source is read as a stream, one row at a time. A row that cannot be read is a row with a `problem`, so that none is
lost and none shifts the ones after it.
"""

from __future__ import annotations

import csv
import io
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Protocol, cast

from ..errors import ConfigError, InputError

Fields = Mapping[str, Any]
STDIN = "-"
_LONGEST_CELL = 2**30
_PARQUET_ROWS = 256  # rows decoded at a time


@dataclass(frozen=True, slots=True)
class Row:
    """One row: `number` counts from 1; `textual` values are all strings, as CSV has them; `problem` is why not."""

    number: int
    fields: Fields
    textual: bool = False
    problem: str | None = None


class Source(Protocol):
    """Rows in order. `repeatable`: they can be read again from the start."""

    name: str
    repeatable: bool

    def rows(self) -> Iterator[Row]:
        """The rows, read as they are asked for.

        Raises:
            InputError: the source cannot be read on.
        """
        ...

    @property
    def fraction(self) -> float | None:
        """How much of the source was read, from 0 to 1; None where that cannot be known."""
        ...


def open_source(source: Any) -> Source:
    """The source that `source` names, or that it is.

    Args:
        source: a path (.jsonl, .ndjson, .csv, .tsv, .parquet, or a folder), "-" for JSON Lines on standard input, or an
            iterable of mappings or prompts.

    Raises:
        InputError: there is no such file, or it is of no known kind.
        ConfigError: reading it needs a package that is not installed.
    """
    if source == STDIN:
        return StdinSource()
    if not isinstance(source, str | Path):
        if isinstance(source, Mapping) or not isinstance(source, Iterable):
            kind = type(cast("object", source)).__name__
            raise InputError(f"must be a path or an iterable of rows, not {kind}", where="source")
        return IterableSource(cast("Iterable[Any]", source))
    path = Path(source)
    if path.is_dir():
        return FolderSource(path)
    if not path.exists():
        raise InputError("there is no such file", where=str(path))
    kind = _KINDS.get(path.suffix.lower())
    if kind is None:
        raise InputError(f"is of no known kind; known are {', '.join(_KINDS)} and folders", where=str(path))
    return kind(path)


class _FileSource:
    """A file whose share read so far is told by its position."""

    repeatable = True

    def __init__(self, path: Path) -> None:
        self.path, self.name = path, path.name
        self._file: IO[bytes] | None = None
        self._size = path.stat().st_size

    @property
    def fraction(self) -> float | None:
        """See `Source`."""
        file = self._file
        if file is None:
            return 0.0
        return 1.0 if file.closed or not self._size else min(1.0, file.tell() / self._size)

    def _open(self) -> IO[bytes]:
        try:
            self._file = self.path.open("rb")
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror}", where=str(self.path)) from None
        return self._file


class JsonLinesSource(_FileSource):
    """One JSON object a line, in UTF-8; empty lines are skipped."""

    def rows(self) -> Iterator[Row]:
        """See `Source`."""
        with self._open() as file:
            yield from json_lines(file)


class StdinSource:
    """JSON Lines on standard input."""

    name, repeatable, fraction = "standard input", False, None

    def rows(self) -> Iterator[Row]:
        """See `Source`."""
        yield from json_lines(sys.stdin.buffer)


def json_lines(lines: Iterable[bytes]) -> Iterator[Row]:
    """The rows of JSON Lines; a byte order mark before the first is taken off."""
    number = 0
    for at, line in enumerate(lines, 1):
        text = line.removeprefix(b"\xef\xbb\xbf") if at == 1 else line
        if not text.strip():
            continue
        number += 1
        try:
            found: Any = json.loads(text)
        except (ValueError, RecursionError):  # UnicodeDecodeError is a ValueError
            yield Row(number, {}, problem=f"line {at} is not JSON in UTF-8")
            continue
        if isinstance(found, dict):
            yield Row(number, cast("Fields", found))
        else:
            yield Row(number, {}, problem=f"line {at} is not a JSON object")


class CsvSource(_FileSource):
    """Comma-separated values with a header line, in UTF-8; tabs where the name ends in .tsv. Empty cells are absent."""

    def rows(self) -> Iterator[Row]:
        """See `Source`."""
        # csv's bound on a cell is the process's own; a prompt is often longer than its 128 KB.
        csv.field_size_limit(max(csv.field_size_limit(), _LONGEST_CELL))
        delimiter = "\t" if self.path.suffix.lower() == ".tsv" else ","
        with self._open() as file, io.TextIOWrapper(file, "utf-8-sig", newline="") as text:
            reader = csv.DictReader(text, delimiter=delimiter, restval="", strict=True)
            try:
                self._check_header(reader.fieldnames or [])
                for number, found in enumerate(reader, 1):
                    yield _csv_row(number, cast("dict[str | None, Any]", found))
            except UnicodeDecodeError:
                raise InputError(f"is not UTF-8, near line {reader.line_num + 1}", where=str(self.path)) from None
            except csv.Error as error:
                raise InputError(f"line {reader.line_num}: {error}", where=str(self.path)) from None

    def _check_header(self, names: Iterable[str]) -> None:
        seen: set[str] = set()
        for name in names:
            if name in seen or not name:
                raise InputError("the header has an empty or repeated name", where=str(self.path))
            seen.add(name)


def _csv_row(number: int, found: dict[str | None, Any]) -> Row:
    if None in found:
        return Row(number, {}, problem=f"row {number} has more cells than the header")
    fields = {cast("str", name): value for name, value in found.items() if value != ""}
    return Row(number, fields, textual=True)


class ParquetSource:
    """A Parquet file, read row group by row group. Nulls are absent; values JSON has no twin for become text."""

    repeatable = True

    def __init__(self, path: Path) -> None:
        try:
            import pyarrow.parquet  # pyright: ignore
        except ImportError:
            raise ConfigError("reading Parquet needs pyarrow: pip install 'zlclient[parquet]'") from None
        self._parquet: Any = pyarrow.parquet
        self.path, self.name = path, path.name
        self._read, self._total = 0, 0

    @property
    def fraction(self) -> float | None:
        """See `Source`."""
        return self._read / self._total if self._total else 0.0

    def rows(self) -> Iterator[Row]:
        """See `Source`."""
        from ..reply import as_plain

        self._read = 0
        try:
            with self._parquet.ParquetFile(self.path) as file:
                self._total = file.metadata.num_rows
                for batch in file.iter_batches(batch_size=_PARQUET_ROWS):
                    for found in batch.to_pylist():
                        self._read += 1
                        fields = {name: as_plain(value) for name, value in found.items() if value is not None}
                        yield Row(self._read, fields)
        except (OSError, ValueError) as error:  # pyarrow's own errors derive from these
            raise InputError(f"cannot be read as Parquet: {type(error).__name__}", where=str(self.path)) from None


class FolderSource:
    """A folder's text files, by name, its own folders included: `id` is the path inside it, `text` what it says.

    Text, Markdown, HTML, PDF and DOCX are read as `Document` reads them; other files and hidden ones are left out.
    """

    repeatable = True
    _SUFFIXES = frozenset([".txt", ".text", ".md", ".markdown", ".html", ".htm", ".xhtml", ".pdf", ".docx"])

    def __init__(self, path: Path) -> None:
        self.path, self.name = path, path.name
        self._read, self._total = 0, 0

    @property
    def fraction(self) -> float | None:
        """See `Source`."""
        return self._read / self._total if self._total else 0.0

    def rows(self) -> Iterator[Row]:
        """See `Source`."""
        from ..shaping.documents import Document

        names = sorted(self._names())
        self._read, self._total = 0, len(names)
        for number, name in enumerate(names, 1):
            self._read = number
            try:
                text = Document.from_path(self.path / name).source
            except OSError as error:
                yield Row(number, {"id": name}, problem=f"cannot be read: {error.strerror}")
            except InputError as error:
                yield Row(number, {"id": name}, problem=str(error))
            else:
                yield Row(number, {"id": name, "text": text})

    def _names(self) -> Iterator[str]:
        for folder, inner, files in os.walk(self.path):
            inner[:] = [name for name in inner if not name.startswith(".")]
            for name in files:
                path = Path(folder, name)
                if path.suffix.lower() in self._SUFFIXES and not name.startswith("."):
                    yield path.relative_to(self.path).as_posix()


class IterableSource:
    """Rows out of Python: mappings, or strings, which are prompts."""

    name = "rows"

    def __init__(self, rows: Iterable[Any]) -> None:
        self._rows = rows
        self.repeatable = not isinstance(rows, Iterator)
        self._read = 0

    @property
    def fraction(self) -> float | None:
        """See `Source`."""
        total = len(self._rows) if isinstance(self._rows, list | tuple) else 0
        return self._read / total if total else None

    def rows(self) -> Iterator[Row]:
        """See `Source`."""
        for number, found in enumerate(self._rows, 1):
            self._read = number
            if isinstance(found, str):
                yield Row(number, {"prompt": found})
            elif isinstance(found, Mapping):
                yield Row(number, cast("Fields", found))
            else:
                yield Row(number, {}, problem=f"row {number} is neither a mapping nor a prompt")


_KINDS: dict[str, Any] = {
    ".jsonl": JsonLinesSource,
    ".ndjson": JsonLinesSource,
    ".csv": CsvSource,
    ".tsv": CsvSource,
    ".parquet": ParquetSource,
}
