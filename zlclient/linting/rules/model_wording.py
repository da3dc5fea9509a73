"""Wording that one generation of models wanted and the next does worse with."""

# ruff: noqa: D101 - what a rule does is said in texts/, for people who read no code

from __future__ import annotations

from collections.abc import Iterable

from ..diagnostic import Finding
from ..document import Document
from ..rule import Rule
from ..target import Target
from ._text import delete_sentence, phrase_hits

FAMILY = "model"


class _ModelPhrase(Rule):
    """A word list that matters for some models only."""

    def check(self, doc: Document) -> Iterable[Finding]:
        target = next((target for target in doc.targets if self.concerns(target)), None)
        if target is None:
            return
        for block, sentence, start, end, phrase in phrase_hits(doc, self.lexicon):
            fix = delete_sentence(doc, block, sentence, "Delete the sentence")
            short = len(sentence.text) <= len(phrase) + 30
            yield self.in_block(block, start, end, fix if short else None, phrase=phrase, model=target.model.id)

    def concerns(self, target: Target) -> bool:
        """Whether the rule speaks of this model."""
        raise NotImplementedError


class VerifyAgain(_ModelPhrase):
    needs = "models"
    code, slug, fix = "ZL450", "verify-again", "unsafe"
    message = "`{phrase}` makes {model} check what it checks anyway; state the test that the answer must pass"
    lexicon = "verify"

    def concerns(self, target: Target) -> bool:
        """Claude 5 models of the Opus and Fable lines."""
        return target.model.id.startswith(("claude-opus-5", "claude-fable-5"))


class ThinkStepByStep(_ModelPhrase):
    needs = "models"
    code, slug, fix = "ZL451", "chain-of-thought-phrase", "unsafe"
    message = "`{phrase}`: {model} reasons by itself; say what the answer must hold instead"
    lexicon = "step_by_step"

    def concerns(self, target: Target) -> bool:
        """Models that reason: those that take an effort."""
        return bool(target.model.effort) and target.model.known
