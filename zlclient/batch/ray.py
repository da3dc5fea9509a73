"""The Ray runner: Ray Data spreads the rows over a cluster, every worker asks as the local runner does.

    gather   rows the ledger does not know are put into Ray's object store in parts of 256 or more
    ask      Ray Data maps the parts over a pool of workers; each writes its answers to the ledger as they come
    write    the source is read again and every row written from the ledger

So a kill loses no more than with the local runner: what was in flight. Workers read the providers' keys from their own
environment. On several machines the ledger must be one that all of them reach: PostgreSQL.
"""

from __future__ import annotations

import logging
import math
import pickle
import sqlite3
import tempfile
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..client import AsyncClient, Client
from ..errors import ConfigError, InputError, ZlclientError
from ..sending.clock import SystemClock
from .budget import Budget
from .jobs import Made, Maker, chunks
from .ledger import open_ledger
from .local import LocalRunner, Parts, run_loop
from .output import Output
from .pace import Pace
from .progress import Progress
from .report import BatchReport
from .sources import Row

if TYPE_CHECKING:
    from ..prompts.prompt import Prompt
    from ..settings import Settings

PART = 256  # rows a worker is handed at a time; Ray's own cost a row is then nothing
PER_WORKER = 64  # requests in flight in one worker process, about what it can serve


@dataclass(frozen=True, slots=True)
class Orders:
    """What a worker needs to make, send and keep requests; pickled to it."""

    settings: Settings
    template: Prompt | None
    options: Mapping[str, Any]
    text_input: str | None
    ledger: str
    run: str
    concurrency: int


class RayRunner:
    """Settles every row through workers on a Ray cluster, or on a local one that is started for this run.

    Raises:
        ConfigError: Ray is not installed, or the ledger is a file and there are several machines.
        InputError: the source cannot be read twice.
    """

    def __init__(self, parts: Parts, orders: Orders) -> None:
        if not parts.source.repeatable:
            raise InputError("is read twice by the Ray runner; give a file or a list", where="source")
        self._parts, self._orders = parts, orders

    def run(self) -> None:
        """Run to the end. Ctrl-C gives up what is in flight."""
        try:
            with _cluster(self._orders.ledger) as ray:
                gathered = self._gather(ray)
                if gathered:
                    self._ask(gathered)
        except KeyboardInterrupt:
            self._parts.report.stopped = "interrupted"
        self._write()

    def _gather(self, ray: Any) -> list[Any]:
        """The unknown rows, one for each content, as parts in the object store."""
        refs: list[Any] = []
        rows: list[Row] = []
        parts = self._parts
        with _Seen() as seen:
            for chunk in chunks(parts.source.rows(), parts.maker, PART):
                rows += self._unknown(chunk, seen)
                parts.progress.tick("gathering")
                if len(rows) >= PART:
                    refs.append(_put(ray, rows))
                    rows = []
                if parts.report.stopped:
                    break
        if rows:
            refs.append(_put(ray, rows))
        return refs

    def _unknown(self, chunk: Sequence[Made], seen: _Seen) -> list[Row]:
        """The rows of `chunk` to be asked, as many as the budget allows."""
        report, budget = self._parts.report, self._parts.budget
        known = self._parts.ledger.find([made.job.key for made in chunk if made.job is not None])
        rows: list[Row] = []
        for made in chunk:
            job = made.job
            if job is None:
                continue
            if job.key in known or not seen.add(job.key):
                report.reused += 1
            elif budget.reserve(job.expected() if budget.counts_tokens else None) is not None:
                rows.append(made.row)
            else:
                report.stopped = "budget"
                break
        return rows

    def _ask(self, refs: Sequence[Any]) -> None:
        data = import_module("ray.data")
        context = data.DataContext.get_current()
        context.enable_progress_bars = context.print_on_execution_start = False
        logging.getLogger("ray.data").setLevel(logging.WARNING)
        workers = max(1, min(len(refs), self._orders.concurrency // PER_WORKER))
        each = math.ceil(self._orders.concurrency / workers)
        asked = data.from_arrow_refs(refs).map_batches(
            Worker,
            fn_constructor_args=(pickle.dumps(self._orders), each),
            batch_size=1,  # a row of this dataset is a part of ours
            compute=data.ActorPoolStrategy(size=workers),
            num_cpus=0.5,
        )
        for row in asked.iter_rows():
            found: BatchReport | ZlclientError = pickle.loads(row["report"])  # noqa: S301 - from our own worker
            if isinstance(found, ZlclientError):
                raise found
            self._parts.report.add(found.requests, found.usage, found.cost)
            self._parts.progress.tick("asking")

    def _write(self) -> None:
        parts = self._parts
        for chunk in chunks(parts.source.rows(), parts.maker, PART):
            known = parts.ledger.find([made.job.key for made in chunk if made.job is not None])
            for made in chunk:
                parts.output.put(made, made.outcome if made.job is None else known.get(made.job.key))
            parts.progress.tick("writing")


class Worker:
    """One process of the pool: answers parts with the local runner and reports what each took."""

    def __init__(self, orders: bytes, concurrency: int) -> None:
        self._orders: Orders = pickle.loads(orders)  # noqa: S301 - from the driver of this run
        self._concurrency = concurrency

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, list[bytes]]:
        """The reports of the parts in `batch`, or the error that every further request would meet."""
        return {"report": [pickle.dumps(self._answered(part)) for part in batch["rows"]]}

    def _answered(self, part: bytes) -> BatchReport | ZlclientError:
        orders = self._orders
        rows = _PartSource(pickle.loads(part))  # noqa: S301 - from the driver of this run
        ledger = open_ledger(orders.ledger, orders.run)
        with tempfile.TemporaryDirectory() as folder, Client(settings=orders.settings) as preparing:
            report = BatchReport(output=Path(folder, "o"), errors=Path(folder, "e"), ledger="")
            maker = Maker(preparing, rows, orders.template, orders.options)
            maker.text_input = orders.text_input
            clock = SystemClock()
            progress = Progress(report, lambda: None, clock.monotonic, quiet=True)

            async def main() -> None:
                async with AsyncClient(settings=orders.settings) as client:
                    with Output(report) as output:
                        parts = Parts(rows, maker, ledger, output, report, progress, Budget(), clock)
                        await LocalRunner(parts, client, Pace(self._concurrency)).run()

            try:
                run_loop(main())
            except ZlclientError as error:
                return error
            finally:
                ledger.close()
        return report


class _PartSource:
    """The rows of one part."""

    name, repeatable, fraction = "part", True, None

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows = rows

    def rows(self) -> Generator[Row]:
        """See `Source`."""
        yield from self._rows


class _Seen:
    """A set of hashes on disk, so that memory does not grow with the rows."""

    def __enter__(self) -> _Seen:
        self._connection = sqlite3.connect("", isolation_level=None)  # a file that SQLite makes and removes
        self._connection.execute("CREATE TABLE seen (key TEXT PRIMARY KEY) WITHOUT ROWID")
        self._connection.execute("BEGIN")
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def add(self, key: str) -> bool:
        """Whether it is new."""
        return self._connection.execute("INSERT OR IGNORE INTO seen VALUES (?)", (key,)).rowcount == 1


def _put(ray: Any, rows: Sequence[Row]) -> Any:
    import pyarrow  # pyright: ignore

    arrow: Any = pyarrow
    return ray.put(arrow.table({"rows": [pickle.dumps(rows)]}))


@contextmanager
def _cluster(ledger: str) -> Generator[Any]:
    """Ray, connected: to the cluster in use, to that of RAY_ADDRESS, or to a local one that ends with the run."""
    try:
        ray = import_module("ray")
        import_module("ray.data")
    except ImportError:
        raise ConfigError("needs Ray: pip install 'zlclient[ray]'", key="runner") from None
    started = not ray.is_initialized()
    if started:
        ray.init(include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    try:
        machines = sum(node["Alive"] for node in ray.nodes())
        if machines > 1 and ledger.startswith("sqlite"):
            problem = f"{machines} machines cannot share a file; give a postgresql:// address"
            raise ConfigError(problem, key="ledger")
        yield ray
    finally:
        if started:
            ray.shutdown()
