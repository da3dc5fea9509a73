"""The engine as a responder of the local server: models `auto` and `legacy`, from what the request itself holds.

It answers a question over a passage, sums one up, and reads fields out of one. What it cannot do (no passage, a tool's
result) it leaves to the next responder, and so, in the default chain, summaries and the questions that it is not sure
of. numpy and the weights are loaded with the first ask for one of its models.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from .base import Ask, Event, Responder
from .everyday import settled
from .forms import Form, form_of
from .reading import read, sentences

if TYPE_CHECKING:
    from ...engine.config import Generation
    from ...engine.runner import Engine

LARGEST = 200_000  # characters of a passage; a longer one is the next responder's, which is quicker


class EngineResponder(Responder):
    """Answers asks for `generation`'s model."""

    blocking = True

    def __init__(self, generation: Generation, engine: Engine | None = None, *, yields: bool = False) -> None:
        """`yields` leaves the questions that the model is not sure of, and summaries, to the next responder."""
        self.generation: Generation = generation
        self.name = f"engine-{generation}"
        self.models = (str(generation), f"local:{generation}")
        self._engine, self._yields = engine, yields

    @property
    def engine(self) -> Engine:
        """The engine that answers; loaded when first asked for, once a process."""
        if self._engine is None:
            from ...engine.runner import Engine

            self._engine = Engine.shipped(self.generation)
        return self._engine

    @property
    def loaded(self) -> Engine | None:
        """The engine, where it has been asked for."""
        return self._engine

    def respond(self, ask: Ask) -> Iterable[Event] | None:
        """Text as it is generated, or fields; None where the ask is another model's or left to the next responder.

        Raises:
            WireError: the engine has no room (429) or never will (413), or nothing satisfies a schema (400).
        """
        if ask.model not in self.models or ask.tool_results:
            return None
        reading = read(ask)
        prescribed = bool(ask.output_schema or ask.tools)
        form = Form() if prescribed else form_of(reading.request)
        if not prescribed and settled(reading, form) is not None:
            return None
        told = sentences(reading.passage) if len(reading.passage) <= LARGEST else []
        if not told:
            return None
        from .engine_answers import Task, answered
        from .extraction import extracted

        task = Task.of(ask, reading, told, form)
        found = extracted(self.engine, task)
        if found is not None or prescribed:
            return found
        return answered(self.engine, task, yields=self._yields)
