"""What speaks against trusting an answer, and when it is withheld: observations that could decide
it by themselves, those far from all others, exact copies, and the few that carry it.

An answer that is another without the observations far from all others, or with one of each group of
copies, is withheld. Observations that are only outlying, as those of heavy-tailed data are, are not
mentioned where they do not change it. Few observations that carry most of a difference, and
neighbours that resemble each other, are said.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.special import ndtri, pdtrc

from .._text import pvalue_text
from .._validation import MINIMUM_OBSERVATIONS
from ..kernels import BagOfWords
from ..kernels.radial import FAR, is_far
from ..results.details import Diagnostics, Unconverged
from ..scores.result import row_digests
from .hypotheses import Hypothesis

LARGE_SCORE = 100  # times the median length of a score
# of what is far: from here on an observation is named where the answer is another without it
OUTLYING = 0.2
# the share of the observations up to which they are far from the others, and not the tail of all
FEW = 0.02
SHORTEST_DOCUMENT = 10  # words: shorter documents coincide by chance
# of equal observations from which on it is no chance that all have sizes with a common factor
GROUPS = 20
# times the pairs that coincide in independent columns may coincide in dependent ones
DEPENDENCE = 10
RECURRING = 0.3  # share of the numbers in a column
UNLIKELY = 1e-3
# a share of the observations, and the share of the variation that they carry
CARRYING, CARRIED = 0.05, 0.85
SERIAL = 5e-4  # the level at which neighbours are said to resemble each other
LISTED = 5


class Case(NamedTuple):
    """An answer whose doubts are to be found.

    ``test`` gives the answer of another family of hypotheses, such as the same on fewer
    observations, and ``verdict`` takes of an answer what must not change.
    """

    answer: Callable[[], Any]
    family: list[Any]
    test: Callable[[list[Any]], Any]
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
        return Doubts(
            self.notes + other.notes,
            self.withheld or other.withheld,
            self.unconverged + other.unconverged,
        )

    def of(self, quality: Diagnostics, name: str | None = None) -> Diagnostics:
        """In the diagnostics of one model, or of all."""
        every = self.unconverged
        own = every if name is None else tuple(one for one in every if one.model == name)
        return replace(quality, unconverged=own, withheld=self.withheld)

    def applied(self, result: Any) -> Any:
        """The result with the notes, and without its verdict where that is withheld."""
        result = replace(result, notes=(*result.notes, *self.notes))
        if self.withheld is None:
            return result
        without = {"reject": False, "withheld": self.withheld}
        tests = (
            {"tests": tuple(replace(one, **without) for one in result.tests)}
            if hasattr(result, "tests")
            else {}
        )
        return replace(result, **without, **tests)


# ------------------------------------------------------------- single observations


class Suspects(NamedTuple):
    """Observations to leave out, why, and what a user can do about them."""

    rows: Bool[np.ndarray, " n"]
    one: str  # what a single one does ...
    several: str  # ... and several do
    remedy: str

    def said(self, ids: np.ndarray, which: str = "") -> str:
        """The observations and what is the matter with them, in words."""
        found = ids[self.rows].tolist()
        named = ", ".join(str(i) for i in found[:LISTED]) + (
            f" and {len(found) - LISTED} more" if len(found) > LISTED else ""
        )
        return (
            f"observation {named}{which} {self.one}"
            if len(found) == 1
            else f"observations {named}{which} {self.several}"
        )


FAR_FROM_OTHERS = (
    "lies far from all others",
    "lie far from all others",
    "Look for a code of a missing value, or an error; correct it or leave it out.",
)
COPIES = (
    "is an exact copy of another",
    "are exact copies of others",
    "Observations must be independent: keep one of each, unless they were drawn independently.",
)


def row_doubts(
    case: Case,
    x: np.ndarray,
    ids: np.ndarray | None = None,
    family: list[Hypothesis] | None = None,
) -> Doubts:
    """Of single observations; ``x`` are the data in their own coordinates, and ``ids`` name their
    rows. They are looked for in the ``family``, by default that of the case.
    """
    family = case.family if family is None else family
    if not family:
        return Doubts()
    ids = np.arange(len(family[0].x)) if ids is None else ids
    doubts, far = Doubts(), far_rows(family)
    if np.issubdtype(family[0].x.dtype, np.floating):
        # real numbers that heavy-tailed data may have, and an error may be
        outlying = Suspects(far_rows(family, OUTLYING) & ~far, *FAR_FROM_OTHERS)
        if outlying.rows.any() and (found := doubt_of(case, outlying, ids)).withheld is not None:
            doubts = found
    for suspects in (
        Suspects(far, *FAR_FROM_OTHERS),
        Suspects(copied_rows(x, family[0]), *COPIES),
    ):
        if suspects.rows.any():
            doubts = doubts.also(doubt_of(case, suspects, ids))
    return doubts


def doubt_of(case: Case, suspects: Suspects, ids: np.ndarray) -> Doubts:
    """What is said of suspicious observations, with the answer without them."""
    said, them = suspects.said(ids), "it" if suspects.rows.sum() == 1 else "them"
    if (~suspects.rows).sum() < MINIMUM_OBSERVATIONS:
        return Doubts(
            (f"{said}; without {them} too few are left.",),
            f"{said}, and without {them} too few are left.",
        )
    without, p = case.without(suspects.rows), pvalue_text(case.answer().pvalue)
    note = (
        f"{said}; without {them} the statistic is {without.statistic:.3f}, "
        f"{pvalue_text(without.pvalue)}."
    )
    if not case.changes(without):
        return Doubts((note,))
    reason = (
        f"the answer depends on {suspects.said(ids, ', which')}: {p} with {them}, "
        f"{pvalue_text(without.pvalue)} without."
    )
    return Doubts((note,), f"{reason} {suspects.remedy}")


# ------------------------------------------------------------- far from all others


def far_rows(family: list[Hypothesis], share: float = 1.0) -> Bool[np.ndarray, " n"]:
    """Observations whose numbers, or scores, are of another order of magnitude than those of all
    others, or reach a share of that.
    """
    far = np.zeros(len(family[0].x), dtype=bool)
    for one in family:
        for score in one.scores:
            far |= has_large_score(score, share * LARGE_SCORE)
        if np.issubdtype(one.x.dtype, np.floating):
            far |= is_far(one.x, share * FAR)
    return far if far.sum() <= max(1.0, FEW * len(far)) else np.zeros_like(far)


def has_large_score(score: Float[np.ndarray, "n ..."], times: float) -> Bool[np.ndarray, " n"]:
    """Scores longer than so many times their median."""
    flat = score.reshape(len(score), -1)
    squared = np.einsum("nd,nd->n", flat, flat)
    return squared > times**2 * np.median(squared[squared > 0]) if squared.any() else squared > 0


# ------------------------------------------------------------- copies


def copied_rows(x, hypothesis: Hypothesis) -> Bool[np.ndarray, " n"]:
    """All but one of each group of equal observations, where chance does not explain so many of
    them.

    Where every observation occurs twice, or any other number of times, a part of the data was read
    more than once, and chance is the reason for the groups that remain in one such part.
    """
    discrete, documents = (
        hypothesis.operator.data == "integers",
        isinstance(hypothesis.kernel, BagOfWords),
    )
    rows = hypothesis.x if discrete else x
    digests = row_digests(np.sort(rows, axis=1) if documents else rows)
    _, group, sizes = np.unique(digests, return_inverse=True, return_counts=True)
    if len(sizes) == len(rows):
        return np.zeros(len(rows), dtype=bool)
    times = int(np.gcd.reduce(sizes)) if len(sizes) >= GROUPS else 1
    if times > 1:
        return occurrence(group) >= sizes[group] // times
    copies = occurrence(group) > 0
    if documents:
        return copies & (np.sum(rows >= 0, axis=1) >= SHORTEST_DOCUMENT)
    if discrete:
        return np.zeros_like(copies)
    n, pairs = len(rows), np.sum(sizes * (sizes - 1.0)) / 2
    by_chance = DEPENDENCE * n * (n - 1) / 2 * np.prod([coincidence(column) for column in rows.T])
    return copies if pdtrc(pairs - 1, by_chance) < UNLIKELY else np.zeros_like(copies)


def occurrence(group: Int[np.ndarray, " n"]) -> Int[np.ndarray, " n"]:
    """How many earlier rows belong to the same group."""
    order = np.argsort(group, kind="stable")
    first = np.searchsorted(group[order], group[order])
    found = np.empty(len(group), dtype=np.int64)
    found[order] = np.arange(len(group)) - first
    return found


def coincidence(column: Float[np.ndarray, " n"]) -> float:
    """How often two numbers of a column are equal since they are rounded; 0 where they do not look
    rounded.

    They do where many recur, or where no two of those that differ are nearly equal: of m numbers
    anywhere in an interval the nearest two are further apart than a share g of it with probability
    exp(-m (m - 1) g) at most.
    """
    n = len(column)
    values, sizes = np.unique(column, return_counts=True)
    m = len(values)
    if m < 2:
        return 1.0
    nearest = np.diff(values).min() / (values[-1] - values[0])
    rounded = n - m > RECURRING * n or np.exp(-m * (m - 1) * nearest) < UNLIKELY
    return float(np.sum(sizes * (sizes - 1.0)) / (n * (n - 1))) if rounded else 0.0


# ------------------------------------------------------------- what contributions look like


def contribution_notes(rows: Float[np.ndarray, "A n"]) -> tuple[str, ...]:
    """Of each of several differences the parts of the observations, in the order given."""
    return (*serial_notes(rows), *carrying_notes(rows))


def carried_shares(rows: Float[np.ndarray, "A n"]) -> tuple[int, Float[np.ndarray, " A"]]:
    """How many observations are few, and the share of the variation that the farthest carry; 0
    where there is none.
    """
    count = int(np.ceil(CARRYING * rows.shape[1]))
    squared = np.sort((rows - np.median(rows, axis=1, keepdims=True)) ** 2, axis=1)
    whole = squared.sum(1)
    return count, squared[:, -count:].sum(1) / np.where(whole > 0, whole, 1.0)


def few_decide(case: Case, differences: Float[np.ndarray, " n"]) -> str | None:
    """In words that few observations decide: those farthest from the median of the differences, if
    they carry nearly all of the variation and the answer is another without them.
    """
    count, (share,) = carried_shares(differences[None])
    if share <= CARRIED or len(differences) - count < MINIMUM_OBSERVATIONS:
        return None
    far = np.argsort(np.abs(differences - np.median(differences)), kind="stable")[-count:]
    rows = np.isin(np.arange(len(differences)), far)
    decided = case.changes(case.without(rows))
    return f"decided by {count} of {len(differences)} observations" if decided else None


def serial_notes(rows: Float[np.ndarray, "A n"]) -> tuple[str, ...]:
    """Where neighbours resemble each other more than independent observations in random
    order do.
    """
    rows = rows[np.ptp(rows, axis=1) > 0]
    if not len(rows):
        return ()
    centred = rows - rows.mean(1, keepdims=True)
    found = np.sum(centred[:, 1:] * centred[:, :-1], 1) / np.sum(centred**2, 1)
    largest = float(found.max())
    if largest * np.sqrt(rows.shape[1]) <= -ndtri(SERIAL / len(rows)):
        return ()
    return (
        f"contributions of neighbouring observations are correlated ({largest:.2f}). Unless the "
        "rows were sorted, they depend on each other (a series, or repeated measurements), and "
        "p-values are too small.",
    )


def carrying_notes(rows: Float[np.ndarray, "A n"]) -> tuple[str, ...]:
    """Where a difference rests on so few observations that others like them may be missing from the
    sample.
    """
    n, (count, shares) = rows.shape[1], carried_shares(rows)
    if shares.max() <= CARRIED:
        return ()
    return (
        f"{count} of {n} observations carry {shares.max():.0%} of the variation of a difference. "
        "It rests on so few that the level of the test is not claimed: look at them, or collect "
        "more like them.",
    )
