"""What a rule is. A rule looks at a Document and yields findings; the engine adds code, place and severity."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar

from zlclient.prompts.parts import Span

from .diagnostic import Finding, Fix, Severity

if TYPE_CHECKING:
    from .block import Block
    from .document import Document
    from .texts import RuleText


class Rule(ABC):
    """One rule: `code` is stable (ZL and three digits), `slug` its name, `message` what it says of a finding.

    `fix` is the strongest promise of its fixes, None where it has none. House rules have `default` False and are run
    only where selected. The long text (`text`) is data: `texts/<family>.toml`.
    """

    code: ClassVar[str]
    slug: ClassVar[str]
    message: ClassVar[str]
    severity: ClassVar[Severity] = "warning"
    fix: ClassVar[str | None] = None
    default: ClassVar[bool] = True
    family: ClassVar[str] = ""
    needs: ClassVar[str | None] = None
    """What a file must have for this rule to run: "tags" of a template, "models", "keys" of front matter or YAML."""

    lexicon: ClassVar[str] = ""
    """A word list that must be able to match somewhere for this rule to run; empty for none."""

    @abstractmethod
    def check(self, doc: Document) -> Iterable[Finding]:
        """Yield this rule's findings in `doc`."""

    @classmethod
    def text(cls) -> RuleText:
        """What the rule does, why, an example, and where it comes from."""
        from .texts import rule_texts

        return rule_texts()[cls.code]

    def found(self, span: Span | tuple[int, int], fix: Fix | None = None, **words: object) -> Finding:
        """A finding at the file's `span`; `words` fill the braces of `message`."""
        return Finding(span[0], span[1], self.message.format(**words), fix)

    def in_block(self, block: Block, start: int, end: int, fix: Fix | None = None, **words: object) -> Finding:
        """A finding at `block.text[start:end]`."""
        return self.found(block.span(start, end), fix, **words)
