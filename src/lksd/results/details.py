"""What a result tells beside its numbers: the chains behind the scores, the words that decide, and
the verdict.

The words of a verdict do not depend on which of the models is called P.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from .._text import number, pvalue_text, rhat_text, visible

if TYPE_CHECKING:
    from .base import DifferenceResult, TestResult
    from .comparison import ComparisonResult
    from .ranking import RankResult

ROLES = ("P", "Q")  # the models of a comparison, in formulas and where they have no names
NOISY = 0.2  # share of MCMC error in the variance from which it is warned of
SHIFTED = 0.5  # of T, by the chains' starting points
POWER = 0.8  # of the new sample that would settle it
LONG_NAMES = {
    "ksd": "the kernel Stein discrepancy",
    "fisher": "the Fisher score",
    "conditional": "the conditional score",
    "log": "the log score",
    "mmd": "the maximum mean discrepancy",
}
MEASURES = {
    "ksd": "squared KSD",
    "fisher": "Fisher score",
    "conditional": "conditional log loss",
    "log": "log loss",
}


@dataclass(frozen=True)
class Unconverged:
    """Observations at which the chains of a model have not converged, and the answer without all
    such observations.

    ``observations`` are their ids, of ``n`` observations; ``statistic``, ``pvalue`` and ``reject``
    those of the test without them, None where too few are left.
    """

    model: str
    observations: tuple[int, ...]
    n: int
    statistic: float | None = None
    pvalue: float | None = None
    reject: bool | None = None

    def places(self, most: int) -> str:
        """The observations in words."""
        ids, more = (
            ", ".join(str(i) for i in self.observations[:most]),
            len(self.observations) - most,
        )
        return (
            f"observation{'s' * (len(self.observations) > 1)} "
            f"{ids}{f' and {more} more' if more > 0 else ''}"
        )

    def __str__(self) -> str:
        said = (
            f"chains of {visible(self.model)} have not converged at {self.places(10)} "
            f"({len(self.observations)} of {self.n})"
        )
        them = "it" if len(self.observations) == 1 else "them"
        if self.statistic is None or self.pvalue is None:
            return f"{said}; without {them} too few are left"
        return (
            f"{said}; without {them} the statistic is {self.statistic:.3f}, "
            f"{pvalue_text(self.pvalue)}"
        )


@dataclass(frozen=True)
class Diagnostics:
    """How the scores of a comparison were made.

    ``rhat`` is the largest and ``ess`` the smallest over observations and models; ``noise_share``
    is the part of the test's variance that more draws would remove; ``start_shift`` is what chains
    that began at different points differ by, in units of the statistic. None where no chains were
    run. ``rhats`` and ``esses`` are the worst of the models at each observation. ``unconverged``
    names the observations whose chains have not converged, and ``withheld`` is the reason for which
    the verdict is withheld, where it is.
    """

    method_p: str
    method_q: str | None  # None for the test of one model
    rhat: float | None
    ess: float | None
    divergences: int
    noise_share: float | None = None
    start_shift: float | None = None
    rhats: np.ndarray | None = field(default=None, compare=False)
    esses: np.ndarray | None = field(default=None, compare=False)
    unconverged: tuple[Unconverged, ...] = ()
    withheld: str | None = None

    def lines(self, names: tuple[str, str] = ROLES) -> list[str]:
        """The diagnostics in words, for models that are called so."""
        p, q = (
            f"scores {role}" if name == role else f"scores of {name}:"
            for role, name in zip(ROLES, names, strict=True)
        )
        lines = (
            [f"{p} {self.method_p}", f"{q} {self.method_q}"]
            if self.method_q
            else [f"scores   {self.method_p}"]
        )
        if self.rhat is not None and self.ess is not None:
            lines.append(
                f"R-hat at most {rhat_text(self.rhat)}, ESS at least {self.ess:.0f}, "
                f"{self.divergences} divergences"
            )
        if self.noise_share is not None:
            of = "difference" if self.method_q else "statistic"
            shift = (
                ""
                if self.start_shift is None
                else f"; the chains' starting points shift T by at most {self.start_shift:.2f}"
            )
            lines.append(
                f"MCMC error accounts for {self.noise_share:.2%} of the variance of the "
                f"{of}{shift}."
            )
        return [visible(line) for line in lines]

    def __str__(self) -> str:
        return "\n".join(self.lines())


@dataclass(frozen=True, eq=False)
class Words:
    """What each word (or value, or column) of the data adds to a difference, the largest first:
    ``contributions`` sum to it.
    """

    ids: np.ndarray
    contributions: np.ndarray
    names: tuple[str, ...] = ()  # of the words, where the models know them
    # whether the observations are documents, made of words, or anything else, made of values
    documents: bool = True
    columns: bool = False  # whether these are columns, such as the items of a test

    @property
    def kinds(self) -> tuple[str, str]:
        """What an observation is called, and what it is made of."""
        if self.columns:
            return "observation", "column"
        return ("document", "word") if self.documents else ("observation", "value")

    def top(self, count: int = 5) -> list[tuple[str, float]]:
        """The words that decide, by name or id, with their contributions."""
        labels = self.names[:count] or [str(word) for word in self.ids[:count]]
        return list(zip(labels, self.contributions[:count].tolist(), strict=False))


@dataclass(frozen=True, eq=False)
class Pointwise:
    """The loss of each observation by additive criteria, under every model: ``losses`` and their
    Monte Carlo standard ``errors`` are (n, models, criteria) arrays, the models in the order in
    which they were given.

    As an array it is (n, criteria): the loss of the first model minus that of the second.
    """

    criteria: tuple[str, ...]
    losses: np.ndarray
    errors: np.ndarray

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        return np.asarray(self.losses[:, 0] - self.losses[:, 1], dtype)

    @property
    def shape(self) -> tuple[int, int]:
        return self.losses.shape[0], self.losses.shape[2]


def mark_withheld(text: str, result: TestResult) -> str:
    """P-values, or the name of a column of them, said to be withheld where the verdict is."""
    return text if result.withheld is None else f"{text} (withheld)"


def measure_of(criterion: str) -> str:
    """What a criterion measures, in words."""
    return MEASURES.get(criterion, f"mean {visible(criterion)}")


def criterion_lines(result: ComparisonResult | RankResult) -> list[str]:
    """By what the models are compared."""
    if result.criterion != "ksd":
        beside = [one for one in result.beside if one.criterion == "ksd"]
        return [
            f"criterion {visible(result.criterion)}",
            *(visible(f"beside   ksd: {one.operator}, {one.kernel}") for one in beside),  # type: ignore[union-attr]
        ]
    return [f"kernel   {visible(result.kernel)}", f"operator {visible(result.operator)}"]


def sentence_of(result: ComparisonResult) -> str:
    """The verdict; with the models and their names exchanged it is the same."""
    if result.disputed:
        return disagreement(result)
    if result.better_role is not None:
        p = (
            result.pvalue_reverse
            if result.better_role == "P" and result.pvalue_reverse is not None
            else result.pvalue
        )
        by = by_margin(result.margin) + by_which(result)
        caution = f", {result.caution}" if result.caution else ""
        said = f"{result.better_than(result.better_role)}{by} ({pvalue_text(p)}){caution}"
        return f"{said}{others_say(result)}."
    if result.indistinguishable and (result.mmd is None or result.mmd.difference == 0):
        agree = "scores" if result.criterion == "ksd" else "losses"
        return f"The models are indistinguishable on this data: their {agree} agree to rounding."
    size, said = size_to_settle(result), both_pvalues(result)
    open_still = f"Undecided whether one fits better{by_margin(result.margin)}"
    if not result.margin:
        open_still = "No difference found" if result.alternative == "two-sided" else "Undecided"
    if not result.n < size < math.inf:
        return f"{open_still} ({said}){others_say(result)}."
    return (
        f"{open_still} ({said}): a new sample of {size:,.0f} would settle it with probability "
        f"{POWER:g} if the true difference equals the estimate{others_say(result)}."
    )


def others_say(result: ComparisonResult) -> str:
    """What the secondary criteria say of the verdict, each in a few words."""
    own, said = result.better_role, []
    for one in result.beside:
        other, name = one.better_role, LONG_NAMES.get(one.criterion, one.criterion)
        if one.withheld is not None:
            said.append(f"what {name} says is withheld")
        elif one.disputed:
            said.append(f"{name} contradicts itself")
        elif own is None:
            said.append(
                f"{name} does not tell either"
                if other is None
                else f"by {name} {one.better_than(other)} ({pvalue_text(one.smaller_pvalue)})"
            )
        elif other is None:
            said.append(f"{name} does not tell")
        else:
            said.append(f"{name} {'agrees' if other == own else 'says the opposite'}")
    return "".join(f"; {one}" for one in said)


def by_margin(margin: float) -> str:
    return f" by more than {number(margin)}" if margin else ""


def by_which(result: ComparisonResult) -> str:
    """Which of the KSD and the MMD says so, where both were asked."""
    if result.mmd is None:
        return ""
    found = ["the KSD"] if any(one.direction for one in result.ksd_tests) else []
    return f" by {' and '.join([*found, 'the MMD'] if result.mmd.direction else found)}"


def both_pvalues(result: DifferenceResult) -> str:
    """The p-values for either model, that of the leading one first; one p-value where the two sides
    are tested as one.
    """
    forward, reverse = result.pvalue, result.pvalue_reverse
    if reverse is None or reverse == forward:
        return pvalue_text(forward)
    p, q = result.names
    (first, lead), (second, behind) = (
        ((forward, q), (reverse, p)) if forward < reverse else ((reverse, p), (forward, q))
    )
    return (
        f"{pvalue_text(first)} for {lead}, {pvalue_text(second).removeprefix('p = ')} for {behind}"
    )


def size_to_settle(result: ComparisonResult) -> int | float:
    """How many new observations would show the leading model to be better, by the hypothesis that
    is shown.
    """
    if result.mmd is not None and result.mmd.significance < min(
        one.significance for one in result.ksd_tests
    ):
        return math.inf
    forward, reverse = result.pvalue, result.pvalue_reverse
    towards_p = reverse is not None and (
        reverse < forward or (reverse == forward and result.difference < 0)
    )
    return result._required_n(-result.difference if towards_p else result.difference, POWER)


def disagreement(result: ComparisonResult) -> str:
    """The most significant hypothesis on either side, by its name."""
    every = sorted(
        zip(result.every_test, labels(result), strict=True), key=lambda one: one[0].significance
    )
    decided = [
        (test.direction, label, pvalue_text(test.smaller_pvalue))
        for test, label in every
        if test.direction
    ]
    lead, label, p = decided[0]
    other, against = next((name, value) for way, name, value in decided if way != lead)
    better, worse = result.names if lead == "P" else result.names[::-1]
    return (
        f"The tests disagree: {label} says that {better} fits better ({p}), {other} that {worse} "
        f"does ({against})."
    )


def labels(result: ComparisonResult) -> list[str]:
    """A short name for every test: by what tells it from the others."""
    named = ["the MMD"] if result.mmd is not None else []
    tests = result.ksd_tests
    return (
        ["the KSD", *named]
        if len(tests) == 1
        else [*short_labels([(t.operator, t.kernel) for t in tests]), *named]
    )


def short_labels(pairs: Sequence[tuple[str, str]]) -> list[str]:
    """Operators and kernels as "operator with kernel"; what all have in common is left out, and
    parameters that tell nothing.
    """
    operators, kernels = (shorten(list(side)) for side in zip(*pairs, strict=True))
    if len(set(kernels)) == 1:
        return operators
    if len(set(operators)) == 1:
        return kernels
    return [
        f"{operator} with {kernel}" for operator, kernel in zip(operators, kernels, strict=True)
    ]


def shorten(names: list[str]) -> list[str]:
    """Names without what stands in brackets, if they still differ."""
    brief = [without_brackets(name) for name in names]
    return brief if len(set(brief)) == len(set(names)) else names


def without_brackets(text: str) -> str:
    kept, depth = [], 0
    for char in text:
        depth += char == "("
        if not depth:
            kept.append(char)
        depth -= char == ")"
    return "".join(kept)
