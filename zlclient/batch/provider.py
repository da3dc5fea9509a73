"""The provider runner: rows become batches at the provider, at half the price and within a day.

Three passes, each of which may be broken off and taken up again:

    submit   rows the ledger does not know are spooled to a file and sent as batches; the ledger has each batch, with
             all that is in it, before it is created, and the provider's id right after
    collect  every open batch of the ledger is polled until it ends, and its results are written to the ledger
    write    the source is read again and every row written from the ledger

A run killed between creation and the noting of the id looks among the provider's newest batches for the one that was
not witnessed. Memory holds one row, and the hashes of one batch.
"""

from __future__ import annotations

import itertools
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING

from ..errors import InputError, RateLimited
from .jobs import Made, chunks
from .outcomes import Outcome, checked, failed, failure, usage_of
from .services import DISCOUNT, BatchService

if TYPE_CHECKING:
    from .jobs import Job
    from .ledger import OpenBatch
    from .local import Parts

CHUNK = 256  # rows read, and looked up in the ledger, at a time
FIRST_POLL, LONGEST_POLL = 1.0, 60.0  # seconds between two looks at the open batches; doubled in between
LIMITED_TRIES, LIMITED_WAIT = 5, 30.0
_NO_RESULT = failed("NoResult", "the batch ended without a result for it")


@dataclass(slots=True)
class _Spool:
    """The batch that is being gathered for one service and group."""

    service: BatchService
    provider: str
    group: str
    file: IO[bytes] = field(default_factory=tempfile.TemporaryFile)
    keys: dict[str, None] = field(default_factory=dict[str, None])
    size: int = 0

    def fits(self, entry: bytes) -> bool:
        """Whether `entry` can be added within the provider's limits."""
        limits, service = self.service.limits, self.service
        frame = len(service.head) + len(service.tail) + len(service.between)
        return len(self.keys) < limits.requests and self.size + frame + len(entry) <= limits.size

    def add(self, key: str, entry: bytes) -> None:
        """Write it behind the others."""
        lead = self.service.between if self.keys else self.service.head
        self.file.write(lead + entry)
        self.size += len(lead) + len(entry)
        self.keys[key] = None


class ProviderRunner:
    """Settles every row through the batch services of the providers.

    Args:
        parts: what the run is made of.
        services: makes the service of a provider, by its name.
        now: seconds since 1970, for what is written to the ledger.
    """

    def __init__(
        self, parts: Parts, services: Callable[[str], BatchService], now: Callable[[], float] = time.time
    ) -> None:
        if not parts.source.repeatable:
            raise InputError("is read twice by the provider runner; give a file or a list", where="source")
        self._parts, self._make_service, self._now = parts, services, now
        self._services: dict[str, BatchService] = {}
        self._spools: dict[tuple[str, str], _Spool] = {}

    def run(self) -> None:
        """Run to the end. Ctrl-C leaves batches running; the next run collects them.

        Raises:
            SendError: a batch could not be created or read.
        """
        try:
            self._recover()
            self._submit()
            self._collect()
        except KeyboardInterrupt:
            self._parts.report.stopped = "interrupted"
        self._write()

    # Submit.

    def _recover(self) -> None:
        """Settle what an earlier run left: batches whose id was not noted, and those that are gone."""
        ledger = self._parts.ledger
        known = {batch.remote for batch in ledger.open_batches()}
        for batch in ledger.open_batches():
            service = self._service(batch.provider)
            if batch.remote is None:
                candidates = service.lost(batch.id, batch.size, batch.created)
                remote = next((one for one in candidates if one not in known), None)
                if remote is not None:
                    ledger.created(batch, remote)
                    known.add(remote)
                    continue
            if batch.remote is None or service.state(batch.remote) == "gone":
                ledger.close_batch(batch)

    def _submit(self) -> None:
        report = self._parts.report
        for made in self._chunks():
            jobs = [one.job for one in made if one.job is not None]
            keys = [job.key for job in jobs]
            known = {*self._parts.ledger.find(keys), *self._parts.ledger.submitted(keys)}
            for job in jobs:
                if job.key in known or any(job.key in spool.keys for spool in self._spools.values()):
                    report.reused += 1
                elif self._within_budget(job):
                    self._add(job)
                    known.add(job.key)  # its batch may be gone from the spools before its next row comes
                else:
                    report.stopped = "budget"
                    break
            self._parts.progress.tick("submitting")
            if report.stopped:
                break
        for spool in self._spools.values():
            self._create(spool)
        self._spools.clear()

    def _within_budget(self, job: Job) -> bool:
        budget = self._parts.budget
        return budget.reserve(job.expected(DISCOUNT) if budget.counts_tokens else None) is not None

    def _add(self, job: Job) -> None:
        name = job.prepared.route.provider.name
        service = self._service(name)
        group = service.group(job)
        place = (name, group)
        entry = service.entry(job)
        spool = self._spools.get(place)
        if spool is not None and not spool.fits(entry):
            self._create(spool)
            spool = None
        if spool is None:
            spool = self._spools[place] = _Spool(service, name, group)
        spool.add(job.key, entry)

    def _create(self, spool: _Spool) -> None:
        spool.file.write(spool.service.tail)
        batch = self._parts.ledger.intend(spool.provider, [*spool.keys], self._now())
        with spool.file:
            self._parts.ledger.created(batch, self._accepted(spool, batch))
        self._parts.report.requests += len(spool.keys)

    def _accepted(self, spool: _Spool, batch: OpenBatch) -> str:
        for attempt in itertools.count(1):
            spool.file.seek(0)
            try:
                return spool.service.create(spool.file, spool.group, batch.id)
            except RateLimited as error:  # refused for certain: nothing was created
                if attempt == LIMITED_TRIES:
                    raise
                self._parts.clock.sleep(error.retry_after or LIMITED_WAIT)
        raise AssertionError("unreachable")

    # Collect.

    def _collect(self) -> None:
        wait = FIRST_POLL
        while batches := self._parts.ledger.open_batches():
            ended = 0
            for batch in batches:
                service = self._service(batch.provider)
                state = "gone" if batch.remote is None else service.state(batch.remote)
                if state != "running":
                    ended += 1
                    self._fetch(batch, service if state == "ended" else None)
            left = len(batches) - ended
            if left:
                self._wait(wait, f"{left} batches running")
                wait = min(LONGEST_POLL, wait * 2)

    def _wait(self, seconds: float, note: str) -> None:
        while seconds > 0:
            self._parts.progress.tick(note)
            self._parts.clock.sleep(min(1.0, seconds))
            seconds -= 1.0

    def _fetch(self, batch: OpenBatch, service: BatchService | None) -> None:
        """Write what came of a batch; a request without a result is a failure, which the next run tries again."""
        ledger, report = self._parts.ledger, self._parts.report
        results = iter(()) if service is None or batch.remote is None else service.results(batch.remote)
        for piece in _pieces(results, CHUNK):
            ours = ledger.submitted([key for key, _ in piece])
            found = [(key, outcome) for key, outcome in piece if key in ours]
            ledger.keep(found)
            for _, outcome in found:
                if outcome.ok:
                    report.add(0, usage_of(outcome), outcome.body["cost"])
            self._parts.progress.tick("collecting")
        ledger.keep((key, _NO_RESULT) for key in ledger.close_batch(batch))

    # Write.

    def _write(self) -> None:
        parts = self._parts
        for made in self._chunks():
            known = parts.ledger.find([one.job.key for one in made if one.job is not None])
            for one in made:
                parts.output.put(one, self._outcome(one, known))
            parts.progress.tick("writing")

    def _outcome(self, made: Made, known: Mapping[str, Outcome]) -> Outcome | None:
        if made.job is None:
            return made.outcome
        outcome = known.get(made.job.key)
        return None if outcome is None else checked(outcome, made.job.request, self._parts.maker.settings)

    def _chunks(self) -> Iterator[list[Made]]:
        for chunk in chunks(self._parts.source.rows(), self._parts.maker, CHUNK):
            yield [self._taken(made) for made in chunk]

    @staticmethod
    def _taken(made: Made) -> Made:
        """The row, or its failure where no batch can carry it."""
        job = made.job
        problem = None
        if job is not None and job.request.document is not None:
            problem = "an answer over a document may take several requests; use the local runner"
        elif job is not None and job.request.experiment is not None:
            problem = "a request of an experiment is assigned when it is sent; use the local runner"
        return made if problem is None else Made(made.row, None, failure(InputError(problem)))

    def _service(self, name: str) -> BatchService:
        if name not in self._services:
            self._services[name] = self._make_service(name)
        return self._services[name]


def _pieces(results: Iterator[tuple[str, Outcome]], size: int) -> Iterator[list[tuple[str, Outcome]]]:
    while piece := list(itertools.islice(results, size)):
        yield piece
