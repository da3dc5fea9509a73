"""A run from end to end: what was asked is checked, the parts are opened, the runner runs, the report is told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..client import AsyncClient, Client
from ..errors import InputError
from ..sending.clock import Clock, SystemClock
from .budget import Budget
from .jobs import Maker, load_template
from .ledger import open_ledger
from .local import LocalRunner, Parts, run_loop
from .output import Output
from .pace import Pace
from .progress import Progress
from .report import BatchReport
from .sources import open_source

if TYPE_CHECKING:
    from ..prompts.prompt import Prompt
    from ..settings import Settings

RUNNERS = ("local", "provider", "ray")
MOST_AT_ONCE = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Everything a run is told; see `zlclient.batch` for what each means."""

    source: Any
    output: str | Path
    template: Any = None
    runner: str = "local"
    ledger: str | None = None
    errors: str | Path | None = None
    ordered: bool = True
    concurrency: int = 32
    max_requests: int | None = None
    max_tokens_total: int | None = None
    max_cost: float | None = None
    progress: bool = False
    clients: Mapping[str, Any] = field(default_factory=dict[str, Any])
    settings: Settings | None = None
    clock: Clock = field(default_factory=SystemClock)
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def __post_init__(self) -> None:
        if self.runner not in RUNNERS:
            raise InputError(f"must be one of {', '.join(RUNNERS)}, not {self.runner!r}", where="runner")
        if not 1 <= self.concurrency <= MOST_AT_ONCE:
            raise InputError(f"must be from 1 to {MOST_AT_ONCE}", where="concurrency")
        for name in ("max_requests", "max_tokens_total", "max_cost"):
            value = getattr(self, name)
            if value is not None and value <= 0:
                raise InputError("must be more than 0", where=name)
        if isinstance(self.source, str | Path):
            self._keep_apart(Path(self.source))

    def _keep_apart(self, source: Path) -> None:
        for name, path in (("output", Path(self.output)), ("errors", self.errors_path)):
            if path.exists() and source.exists() and path.samefile(source):
                raise InputError("would overwrite the source", where=name)

    @property
    def errors_path(self) -> Path:
        """The side file: `replies.errors.jsonl` beside `replies.jsonl`."""
        return Path(self.output).with_suffix(".errors.jsonl") if self.errors is None else Path(self.errors)

    @property
    def ledger_url(self) -> str:
        """The ledger's address: `replies.ledger.db` beside `replies.jsonl`."""
        return self.ledger or f"sqlite:///{Path(self.output).with_suffix('.ledger.db').absolute()}"

    @property
    def run(self) -> str:
        """The name that the ledger knows this run by: whoever writes the same output goes on with it."""
        return str(Path(self.output).resolve())


def execute(plan: Plan) -> BatchReport:
    """Run `plan`; see `zlclient.batch` for what it raises, KeyboardInterrupt apart: the report tells of that."""
    source, template = open_source(plan.source), load_template(plan.template)
    with Client(settings=plan.settings, clock=plan.clock) as preparing:
        settings = _for_many(preparing.settings, plan.concurrency)
        options = _patient(settings, plan.options)
        maker = Maker(preparing, source, template, options)
        ledger = open_ledger(plan.ledger_url, plan.run)
        try:
            report = BatchReport(
                output=Path(plan.output), errors=plan.errors_path, ledger=_without_user(plan.ledger_url)
            )
            progress = Progress(report, lambda: source.fraction, plan.clock.monotonic, quiet=not plan.progress)
            with Output(report, ordered=plan.ordered) as output, progress:
                budget = Budget(plan.max_requests, plan.max_tokens_total, plan.max_cost)
                parts = Parts(source, maker, ledger, output, report, progress, budget, plan.clock)
                began = plan.clock.monotonic()
                if plan.runner == "ray":
                    _run_ray(plan, parts, settings, template, options)
                else:
                    _run(plan, parts, settings)
            report.seconds = plan.clock.monotonic() - began
            report.unused = tuple(sorted(maker.unused))
            if report.stopped is None:
                ledger.end()
            return report
        finally:
            ledger.close()


def _run(plan: Plan, parts: Parts, settings: Settings) -> None:
    if plan.runner == "provider":
        from .provider import ProviderRunner
        from .services import open_service

        def service(name: str) -> Any:
            return open_service(settings.providers[name], plan.clients.get(name))

        ProviderRunner(parts, service).run()
        return

    async def main() -> None:
        async with AsyncClient(settings=settings, clients=plan.clients, clock=plan.clock) as client:
            await LocalRunner(parts, client, Pace(plan.concurrency)).run()

    run_loop(main())


def _run_ray(plan: Plan, parts: Parts, settings: Settings, template: Prompt | None, options: Mapping[str, Any]) -> None:
    from .ray import Orders, RayRunner

    if plan.clients:
        raise InputError("cannot be sent to Ray's workers; configure the providers instead", where="clients")
    text = parts.maker.text_input
    fresh = None if template is None else replace(template)  # what it has compiled cannot be pickled
    RayRunner(parts, Orders(settings, fresh, options, text, plan.ledger_url, plan.run, plan.concurrency)).run()


def _for_many(settings: Settings, concurrency: int) -> Settings:
    """Settings whose connection pools hold every request in flight."""
    providers = {
        name: replace(provider, max_connections=max(provider.max_connections, concurrency))
        for name, provider in settings.providers.items()
    }
    return replace(settings, providers=providers)


def _patient(settings: Settings, options: Mapping[str, Any]) -> Mapping[str, Any]:
    """Options with which a 429 comes back at once, so that the pace slows down all requests and not one.

    Not where the user has said what a 429 means, or has a fallback that it would send every request to.
    """
    said = "on_rate_limit" in options or "on_rate_limit" in settings.origins
    if said or settings.fallback or options.get("fallback"):
        return options
    return {**options, "on_rate_limit": "fallback"}


def _without_user(url: str) -> str:
    scheme, mark, rest = url.partition("://")
    return f"{scheme}{mark}{rest.rpartition('@')[2]}" if "@" in rest else url
