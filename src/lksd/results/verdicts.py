"""What tests say together, in words that do not depend on which of the models is called P."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from .._text import number, pvalue_text

if TYPE_CHECKING:
    from .base import DifferenceResult, TestResult
    from .comparison import ComparisonResult

POWER = 0.8  # of the new sample that would settle it


def mark_withheld(text: str, result: TestResult) -> str:
    """P-values, or the name of a column of them, said to be withheld where the verdict is."""
    return text if result.withheld is None else f"{text} (withheld)"


def sentence_of(result: ComparisonResult) -> str:
    """The verdict; with the models and their names exchanged it is the same."""
    if result.disputed:
        return disagreement(result)
    if result.better_role is not None:
        p = result.pvalue_reverse if result.better_role == "P" and result.pvalue_reverse is not None else result.pvalue
        by = by_margin(result.margin) + by_which(result)
        return f"{result.better_than(result.better_role)}{by} ({pvalue_text(p)})."
    if result.indistinguishable and (result.mmd is None or result.mmd.difference == 0):
        return "The models are indistinguishable on this data: their scores agree to rounding."
    whether = f" whether one fits better{by_margin(result.margin)}" if result.margin else ""
    size = size_to_settle(result)
    if not result.n < size < math.inf:
        return f"Undecided{whether} ({both_pvalues(result)})."
    return (
        f"Undecided{whether} ({both_pvalues(result)}): a new sample of {size:,.0f} would settle it with probability {POWER:g} "
        "if the true difference equals the estimate."
    )


def by_margin(margin: float) -> str:
    return f" by more than {number(margin)}" if margin else ""


def by_which(result: ComparisonResult) -> str:
    """Which of the KSD and the MMD says so, where both were asked."""
    if result.mmd is None:
        return ""
    found = ["the KSD"] if any(one.direction for one in result.ksd_tests) else []
    return f" by {' and '.join([*found, 'the MMD'] if result.mmd.direction else found)}"


def both_pvalues(result: DifferenceResult) -> str:
    """The p-values for either model, that of the leading one first; one p-value where the two sides are tested as one."""
    forward, reverse = result.pvalue, result.pvalue_reverse
    if reverse is None or reverse == forward:
        return pvalue_text(forward)
    p, q = result.names
    (first, lead), (second, behind) = ((forward, q), (reverse, p)) if forward < reverse else ((reverse, p), (forward, q))
    return f"{pvalue_text(first)} for {lead}, {pvalue_text(second).removeprefix('p = ')} for {behind}"


def size_to_settle(result: ComparisonResult) -> int | float:
    """How many new observations would show the leading model to be better, by the hypothesis that is shown."""
    if result.mmd is not None and result.mmd.significance < min(one.significance for one in result.ksd_tests):
        return math.inf
    forward, reverse = result.pvalue, result.pvalue_reverse
    towards_p = reverse is not None and (reverse < forward or (reverse == forward and result.difference < 0))
    return result._required_n(-result.difference if towards_p else result.difference, POWER)


def disagreement(result: ComparisonResult) -> str:
    """The most significant hypothesis on either side, by its name."""
    every = sorted(zip(result.every_test, labels(result), strict=True), key=lambda one: one[0].significance)
    decided = [(test.direction, label, pvalue_text(test.smaller_pvalue)) for test, label in every if test.direction]
    lead, label, p = decided[0]
    other, against = next((name, value) for way, name, value in decided if way != lead)
    better, worse = result.names if lead == "P" else result.names[::-1]
    return f"The tests disagree: {label} says that {better} fits better ({p}), {other} that {worse} does ({against})."


def labels(result: ComparisonResult) -> list[str]:
    """A short name for every test: by what tells it from the others."""
    named = ["the MMD"] if result.mmd is not None else []
    tests = result.ksd_tests
    return ["the KSD", *named] if len(tests) == 1 else [*short_labels([(t.operator, t.kernel) for t in tests]), *named]


def short_labels(pairs: Sequence[tuple[str, str]]) -> list[str]:
    """Operators and kernels as "operator with kernel"; what all have in common is left out, and parameters that tell nothing."""
    operators, kernels = (shorten(list(side)) for side in zip(*pairs, strict=True))
    if len(set(kernels)) == 1:
        return operators
    if len(set(operators)) == 1:
        return kernels
    return [f"{operator} with {kernel}" for operator, kernel in zip(operators, kernels, strict=True)]


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
