"""What goes wrong between a template and its values. None of these holds a value or a line of the prompt."""

from __future__ import annotations

from ..errors import InputError


class PromptInputError(InputError):
    """An input is missing, unknown or of a wrong kind. `input`, and the `file` and `line` (1-based) where known."""

    def __init__(
        self,
        problem: str,
        *,
        input: str | None = None,  # noqa: A002
        file: str | None = None,
        line: int | None = None,
    ) -> None:
        place = f"{file}:{line}" if file and line else file or (f"line {line}" if line else None)
        super().__init__(f"{problem} ({place})" if place else problem, where=f"input {input!r}" if input else None)
        self.problem, self.input, self.file, self.line = problem, input, file, line

    def at(self, file: str | None, line: int | None) -> PromptInputError:
        """The same error with its place, where it has none yet."""
        if self.file or self.line:
            return self
        return type(self)(self.problem, input=self.input, file=file, line=line)


class StrictViolation(PromptInputError):
    """The value of an input declared `strict: true` holds a line that reads like a role line."""


class RenderLimitExceeded(PromptInputError):
    """Rendering would take more output, steps or memory than its `Limits` allow."""
