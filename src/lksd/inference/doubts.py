"""What speaks against trusting an answer, and when it is withheld for that."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

from ..results.details import Diagnostics, Unconverged
from .hypotheses import Hypothesis


class Case(NamedTuple):
    """An answer whose doubts are to be found.

    ``test`` gives the answer of another family of hypotheses, such as the same on fewer observations, and ``verdict`` takes of
    an answer what must not change.
    """

    answer: Callable[[], Any]
    family: list[Hypothesis]
    test: Callable[[list[Hypothesis]], Any]
    verdict: Callable[[Any], Any]

    def without(self, rows) -> Any:
        """The answer without some of the observations."""
        return self.test([one.only(~rows) for one in self.family])

    def changes(self, other: Any) -> bool:
        """Whether another answer says something else."""
        return self.verdict(other) != self.verdict(self.answer())


class Doubts(NamedTuple):
    """What a reader should know of an answer, and why it is withheld, if it is."""

    notes: tuple[str, ...] = ()
    withheld: str | None = None
    unconverged: tuple[Unconverged, ...] = ()

    def also(self, other: Doubts) -> Doubts:
        """Those of both; the first reason to withhold the verdict is the one that is said."""
        return Doubts(self.notes + other.notes, self.withheld or other.withheld, self.unconverged + other.unconverged)

    def of(self, quality: Diagnostics, name: str | None = None) -> Diagnostics:
        """In the diagnostics of one model, or of all."""
        own = tuple(one for one in self.unconverged if name is None or one.model == name)
        return replace(quality, unconverged=own, withheld=self.withheld)

    def applied(self, result: Any) -> Any:
        """The result with the notes, and without its verdict where that is withheld."""
        result = replace(result, notes=(*result.notes, *self.notes))
        if self.withheld is None:
            return result
        without = {"reject": False, "withheld": self.withheld}
        tests = {"tests": tuple(replace(one, **without) for one in result.tests)} if hasattr(result, "tests") else {}
        return replace(result, **without, **tests)
