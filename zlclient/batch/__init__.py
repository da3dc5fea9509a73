"""Bulk work: many prompts in, one reply each out, resumable.

    report = zlclient.batch("prompts.jsonl", output="replies.jsonl", concurrency=32)
    print(report)

A run that was killed goes on where it stopped when it is started again: what was answered is in a ledger.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from ..prompts.prompt import Prompt
    from ..sending.clock import Clock
    from ..settings import Settings
    from .report import BatchReport


def batch(
    source: Any,
    /,
    *,
    output: str | Path,
    template: Prompt | str | Path | None = None,
    runner: Literal["local", "provider", "ray"] = "local",
    ledger: str | None = None,
    errors: str | Path | None = None,
    ordered: bool = True,
    concurrency: int = 32,
    max_requests: int | None = None,
    max_tokens_total: int | None = None,
    max_cost: float | None = None,
    progress: bool = False,
    output_type: type | None = None,
    clients: Mapping[str, Any] | None = None,
    settings: Settings | None = None,
    clock: Clock | None = None,
    **options: Any,
) -> BatchReport:
    """Answer every row of `source` and write the replies to `output`, one JSON object a line.

    Args:
        source: a path (.jsonl, .csv, .tsv, .parquet, or a folder of texts), "-" for standard input, or an iterable of
            mappings or prompts.
        output: where replies go. It is written anew by every run; what was answered before comes from the ledger.
        template: a Prompt, a path, or the name of a bundled template; a row's fields are its inputs.
        runner: "local" sends requests from here; "provider" hands them to the provider's batch service; "ray" spreads
            them over a Ray cluster.
        ledger: `sqlite:///PATH` or `postgresql://…`; beside the output when None.
        errors: where rows that failed go, with their error; beside the output when None.
        ordered: whether replies come in the order of their rows, or as they are answered.
        concurrency: requests in flight, at most; fewer after a rate limit.
        max_requests, max_tokens_total, max_cost: what this run may spend (US dollars); it stops cleanly before more.
        progress: whether to draw a progress bar on standard error.
        output_type: a pydantic model class that every answer is constrained to and parsed into.
        clients: SDK clients of your own by provider name: asynchronous for "local", synchronous for "provider".
        settings: settings loaded elsewhere.
        clock: where time is read and spent; the system's by default.
        options: options of `zlclient.chat` for every row; a row's own win.

    Raises:
        InputError: an option or the source is wrong.
        ConfigError: the configuration, the template or the ledger's address is.
        LedgerUnavailable: the ledger cannot be reached.
        Unauthorized: the provider refuses the key.
        SendError: a batch could not be created or read ("provider").
        KeyboardInterrupt: Ctrl-C, once what was in flight has been answered and kept.
    """
    from .running import Plan, execute

    if output_type is not None:
        options["output"] = output_type
    plan = Plan(
        source=source,
        output=output,
        template=template,
        runner=runner,
        ledger=ledger,
        errors=errors,
        ordered=ordered,
        concurrency=concurrency,
        max_requests=max_requests,
        max_tokens_total=max_tokens_total,
        max_cost=max_cost,
        progress=progress,
        clients=clients or {},
        settings=settings,
        options=options,
        **({} if clock is None else {"clock": clock}),
    )
    report = execute(plan)
    if report.stopped == "interrupted":
        raise KeyboardInterrupt
    return report


class _Callable(ModuleType):
    """The package is called like its function: importing a submodule binds the package to `zlclient.batch`."""

    def __call__(self, *args: Any, **options: Any) -> Any:
        return batch(*args, **options)


sys.modules[__name__].__class__ = _Callable
