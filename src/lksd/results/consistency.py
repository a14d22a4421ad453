"""Whether the numbers of a result can be those of a test: in their ranges, and following from each
other.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._validation import MINIMUM_OBSERVATIONS, SEEDS
from ..statistics import ustatistic
from ..statistics.multiplicity import CORRECTIONS
from ..statistics.nulls import is_own
from .base import DifferenceResult, TestResult
from .choice import Choice
from .comparison import ComparisonResult, MMDResult
from .details import Pointwise
from .fit import GoodnessOfFitResult
from .ranking import RankResult

CLOSE = 1e-6  # of numbers that are sums of the same terms in another order
PROBABILITY, NOT_NEGATIVE = (0.0, 1.0), (0.0, math.inf)
# of the fields of all records, by their names; numbers in other fields are finite
RANGES: dict[str, tuple[float, float]] = {
    "pvalue": PROBABILITY,
    "pvalue_reverse": PROBABILITY,
    "pvalues": PROBABILITY,
    "selective_pvalues": PROBABILITY,
    "alpha": PROBABILITY,
    "n": (MINIMUM_OBSERVATIONS, math.inf),
    "n_p": (MINIMUM_OBSERVATIONS, math.inf),
    "n_q": (MINIMUM_OBSERVATIONS, math.inf),
    "seed": NOT_NEGATIVE,
    "replicates": NOT_NEGATIVE,
    "margin": NOT_NEGATIVE,
    "standard_error": NOT_NEGATIVE,
    "standard_errors": NOT_NEGATIVE,
    "ksd_p_error": NOT_NEGATIVE,
    "ksd_q_error": NOT_NEGATIVE,
    "ksd_errors": NOT_NEGATIVE,
    "loss_p_error": NOT_NEGATIVE,
    "loss_q_error": NOT_NEGATIVE,
    "loss_errors": NOT_NEGATIVE,
    "errors": NOT_NEGATIVE,
    "null_deviation": NOT_NEGATIVE,
    "divergences": NOT_NEGATIVE,
    "observations": NOT_NEGATIVE,
    "kept": NOT_NEGATIVE,
    "order": NOT_NEGATIVE,
    "ids": NOT_NEGATIVE,
    "ratio": NOT_NEGATIVE,
    "rhat": NOT_NEGATIVE,
    "rhats": NOT_NEGATIVE,
    "ess": NOT_NEGATIVE,
    "esses": NOT_NEGATIVE,
    "noise_share": NOT_NEGATIVE,
    "start_shift": (-math.inf, math.inf),
}
KINDS = ("ksd", "loss")  # of estimates, of which a result may have one alone
# where a variance is negative, chains stand still, or a file of an older version says nothing
MAY_BE_NAN = frozenset(
    [
        "statistic",
        "standard_error",
        "standard_errors",
        "null_deviation",
        "rhat",
        "rhats",
        "ess",
        "esses",
        "noise_share",
        "start_shift",
        "errors",
        *(f"{kind}_{role}{part}" for kind in KINDS for role in "pq" for part in ("", "_error")),
        *("ksd", "ksd_errors"),  # of a ranking by another criterion
    ]
)
# ends of intervals, replicates without a spread, and chains that stand still
MAY_BE_INFINITE = frozenset(["lower", "rhat", "rhats", "start_shift", "noise_share"])


def need(condition: Any, said: str) -> None:
    if not condition:
        raise ValueError(said)


def check_ranges(name: str, value: Any) -> None:
    """The numbers of one field, alone, in an array or in a tuple."""
    if isinstance(value, tuple) and (not value or isinstance(value[0], (str, TestResult))):
        return
    if name == "replicates" and isinstance(value, tuple):  # of a bootstrap: any number, in order
        return
    if not isinstance(value, (int, float, tuple, np.ndarray)):
        return
    try:
        found = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):  # a tuple of records
        return
    said = np.array2string(found, threshold=4, edgeitems=1) if found.ndim else value
    known = found[~np.isnan(found)]
    need(name in MAY_BE_NAN or known.size == found.size, f"{name} is {said}, which is no number")
    need(name in MAY_BE_INFINITE or np.isfinite(known).all(), f"{name} is {said}, not finite")
    low, high = RANGES.get(name, (-math.inf, math.inf))
    inside = ((known >= low) & (known <= high)).all()
    need(inside, f"{name} is {said}, not between {low:g} and {high:g}")


def check_result(result: TestResult, withheld: bool = False, inside: bool = False) -> None:
    """Numbers that follow from others; ``inside`` of another result p-values are adjusted, and
    where its verdict is ``withheld`` none is given.
    """
    n, withheld = result.n, withheld or result.withheld is not None
    need(0 < result.alpha < 1, f"alpha is {result.alpha}")
    need(result.seed < SEEDS, f"seed is {result.seed}, not below 2^63")
    need(not (withheld and result.reject), "a verdict that is withheld rejects")
    if isinstance(result, DifferenceResult):
        check_difference(result)
    if isinstance(result, ComparisonResult):
        check_comparison(result, withheld)
        if not inside and not result.tests and result.mmd is None:
            check_own_pvalues(result, result.alternative == "two-sided")
    if isinstance(result, ComparisonResult | GoodnessOfFitResult):
        need(
            result.labels is None or len(result.labels) == n,
            "the labels are not those of n observations",
        )
    if isinstance(result, MMDResult):
        if not inside:
            check_own_pvalues(result, two_sided=False)
        need(
            close(
                result.difference,
                result.mmd_p - result.mmd_q,
                abs(result.mmd_p) + abs(result.mmd_q),
            ),
            "MMDs do not add up",
        )
        need(
            withheld or result.reject == (result.direction == "Q"),
            "the decision does not follow from the p-values",
        )
    if isinstance(result, GoodnessOfFitResult):
        if result.null is None:
            fits = result.replicates >= 1 and result.pvalue * (result.replicates + 1) > 1 - CLOSE
            steps = result.pvalue * (result.replicates + 1)
            fits = fits and abs(steps - round(steps)) < 1e-3
            need(fits, f"pvalue is {result.pvalue:g}, which the bootstrap cannot give")
        need(
            close(result.statistic, n * result.ksd, abs(result.statistic)),
            "the statistic is not n times the squared KSD",
        )
        need(
            withheld or result.reject == (result.pvalue <= result.alpha),
            "the decision does not follow from the p-value",
        )
        check_contributions(result.contributions, n, result.ksd)
    if isinstance(result, RankResult):
        check_ranking(result, withheld, inside)
    if isinstance(result, Choice):
        check_candidates(result)


def check_difference(result: DifferenceResult) -> None:
    need(len(result.names) == 2, f"the names of the models are {result.names}")
    error = result.standard_error
    alone = not getattr(result, "tests", ()) and getattr(result, "mmd", None) is None
    if not error > 0:
        expected = 0.0 if error == 0 else math.nan
        need(
            np.array_equal(result.statistic, expected, equal_nan=True),
            f"statistic is {result.statistic:g}, though standard_error is {error:g}",
        )
        need(
            not alone or (result.pvalue == 1 and result.pvalue_reverse in (None, 1)),
            f"pvalue is {result.pvalue:g}, though standard_error is {error:g}",
        )
        return
    wanted = [(result.estimate + sign * result.margin) / error for sign in (1, -1)]
    need(
        any(close(result.statistic, one, abs(one)) for one in wanted),
        f"statistic is {result.statistic:g}, not the difference over standard_error",
    )


def check_own_pvalues(result: DifferenceResult, two_sided: bool) -> None:
    """Those of a difference that was tested by itself, which its null distribution gives."""
    if not result.standard_error > 0 or not is_own(type(result.null)):
        return
    forward, reverse = (
        result.null.upper((result.estimate - result.margin) / result.standard_error),
        result.null.lower((result.estimate + result.margin) / result.standard_error),
    )
    if two_sided:
        forward = reverse = min(1.0, 2 * min(forward, reverse))
    for name, wanted in (("pvalue", forward), ("pvalue_reverse", reverse)):
        given = getattr(result, name)
        need(
            given is None or close(given, wanted, wanted),
            f"{name} is {given}, where the null distribution gives {wanted:g}",
        )


def check_comparison(result: ComparisonResult, withheld: bool) -> None:
    need(result.correction in CORRECTIONS, f"the correction is {result.correction!r}")
    need(
        result.alternative in ("greater", "two-sided"), f"the alternative is {result.alternative!r}"
    )
    better = result.better_role
    rejected = better is not None and (result.alternative == "two-sided" or better == "Q")
    need(withheld or result.reject == rejected, "the decision does not follow from the p-values")
    (p, _), (q, _) = result.estimates
    kind = "ksd" if math.isnan(result.loss_p) else "loss"
    for name in (f"{kind}_p", f"{kind}_q", f"{kind}_p_error", f"{kind}_q_error"):
        value = getattr(result, name)
        need(math.isfinite(value), f"{name} is {value}, which is no number")
    need(close(result.difference, p - q, abs(p) + abs(q)), "the discrepancies do not add up")
    check_contributions(result.contributions, result.n, result.difference)
    check_variances(result)
    check_pointwise(result.pointwise, result.n, 2)
    for name, array in (("kept", result.kept), ("order", result.order)):
        need(
            array is None or (array.ndim == 1 and array.dtype.kind in "iu"),
            f"{name} is no list of rows",
        )
    need(result.kept is None or len(result.kept) == result.n, "the rows that were kept are not n")
    if result.diagnostics is not None:
        for each in (result.diagnostics.rhats, result.diagnostics.esses):
            need(each is None or each.shape == (result.n,), "diagnostics are not of n observations")
    for one in (*result.tests, *(() if result.mmd is None else (result.mmd,))):
        need(
            one.n == result.n and one.alpha == result.alpha,
            "tests of one result differ in n or level",
        )
        check_result(one, withheld and not one.reject, inside=True)
    for one in result.tests:
        need(one.seed == result.seed, f"seed is {result.seed}, and {one.seed} in tests")
    for one in result.beside:
        need(
            one.n == result.n and one.alpha == result.alpha,
            "criteria of one result differ in n or level",
        )
        check_result(one, inside=True)


def check_pointwise(found: Pointwise | None, n: int, models: int) -> None:
    if found is not None:
        shape = (n, models, len(found.criteria))
        for part in (found.losses, found.errors):
            need(part.shape == shape, f"pointwise losses of shape {part.shape}, not {shape}")


def check_variances(result: ComparisonResult) -> None:
    """The standard error and the variance components, which follow from the contributions."""
    n = result.n
    rows = result.contributions * (n * (n - 1))
    if not math.isnan(result.loss_p):  # a mean of n times the contributions
        variance = float(np.var(n * result.contributions, ddof=1))
        expected = math.sqrt(variance / n)
        same = not result.standard_error > 0 or close(result.standard_error, expected, expected)
        need(same, f"standard_error is {result.standard_error:g}, not {expected:g}")
        zeta = abs(4 * result.zeta.zeta_1 - variance) + abs(2 * result.zeta.zeta_2 - variance)
        need(zeta <= 1e-3 * variance + 1e-300, f"zeta is {result.zeta}, not that of a mean")
        return
    if result.variance == "jackknife" and result.standard_error > 0:
        expected = math.sqrt(ustatistic.jackknife_variance(rows) / n)
        need(
            close(result.standard_error, expected, expected),
            f"standard_error is {result.standard_error:g}, where contributions give {expected:g}",
        )
    if result.variance == "incomplete":
        return
    # zeta_2 is linear in the sum of squares, from which zeta_1 follows
    none, one = ustatistic.components(rows, 0.0), ustatistic.components(rows, 1.0)
    squares = (result.zeta.zeta_2 - none.zeta_2) / (one.zeta_2 - none.zeta_2)
    expected = none.zeta_1 + squares * (one.zeta_1 - none.zeta_1)
    sizes = abs(none.zeta_1) + abs(expected) + abs(result.zeta.zeta_2)
    need(
        squares >= -CLOSE * np.sum(rows**2) and close(result.zeta.zeta_1, expected, sizes),
        f"zeta is {result.zeta.zeta_1:g}, {result.zeta.zeta_2:g}, which contributions do not give",
    )


def check_contributions(parts: np.ndarray, n: int, total: float) -> None:
    need(
        parts.shape == (n,) and parts.dtype.kind == "f",
        f"contributions of shape {parts.shape} for n = {n}",
    )
    need(
        close(float(parts.sum()), total, float(np.abs(parts).sum())),
        "the contributions do not add up to the difference",
    )


def check_candidates(result: Choice) -> None:
    ranking, n, count = result.ranking, result.n, len(result.candidates)
    need(sorted(result.candidates) == sorted(ranking.names), "candidates and ranking differ")
    need(len(result.short) == count, "the short names are not those of all candidates")
    for name in ("n", "alpha", "pvalue", "reject", "statistic", "withheld"):
        same = getattr(ranking, name) == getattr(result, name)
        need(same, f"{name} is {getattr(result, name)}, and another in the ranking")
    for name in ("losses", "loss_errors"):
        need(getattr(result, name).shape == (n, count), f"{name} is not of n and all candidates")
    need(result.folds >= 2 and result.repeats >= 1, "there are no folds")
    parts = result.folds * result.repeats
    need(result.fold_losses.shape == (parts, count), "fold_losses are not of all folds")
    need(result.fold_numbers.shape == (result.repeats, n), "fold_numbers are not of all repeats")
    inside = (result.fold_numbers >= 0) & (result.fold_numbers < result.folds)
    need(inside.all(), "fold_numbers are not those of folds")
    need(result.labels is None or len(result.labels) == n, "the labels are not of n observations")
    order = [result.candidates.index(name) for name in ranking.names]
    means, known = result.losses.mean(0)[order], ranking.estimates[0]
    need(
        all(close(one, other, abs(one)) for one, other in zip(means, known, strict=True)),
        "the mean losses are not those of the ranking",
    )
    check_result(ranking)


def check_ranking(result: RankResult, withheld: bool, inside: bool) -> None:
    count = len(result.names)
    need(result.correction in CORRECTIONS, f"the correction is {result.correction!r}")
    need(count >= 2 and len(set(result.names)) == count, "names of models are missing or double")
    for name in ("ksd", "ksd_errors", "losses", "loss_errors", "selective_pvalues"):
        own = getattr(result, name)
        need(own is None or own.shape == (count,), f"{name} is not of {count} models")
    need((result.losses is None) == (result.loss_errors is None), "losses or errors are missing")
    kinds = ("ksd", "ksd_errors") if result.losses is None else ("losses", "loss_errors")
    for name, own in zip(kinds, result.estimates, strict=True):
        need(np.isfinite(own).all(), f"{name} is {own}, which is no number")
    values = result.estimates[0]
    check_pointwise(result.pointwise, result.n, count)
    for name in ("differences", "standard_errors", "pvalues", "lower"):
        need(getattr(result, name).shape == (count, count), f"{name} is not of {count} models")
    errors, apart = result.standard_errors, ~np.eye(count, dtype=bool)
    need(np.array_equal(errors, errors.T, equal_nan=True), "standard_errors are not symmetric")
    need(not np.diag(errors).any(), "standard_errors of a model and itself are not 0")
    ordered = not np.diff(values).min(initial=0) < 0
    need(ordered, f"{kinds[0]} is not in order, the smallest first")
    need((np.diag(result.pvalues) == 1).all(), "pvalues of a model and itself are not 1")
    dead = apart & ~(errors > 0)
    need(
        result.tests or (result.pvalues[dead] == 1).all(),
        "pvalues are below 1 where standard_errors are 0 or no number",
    )
    need(result.statistic >= 0, f"statistic is {result.statistic:g}, below 0")
    if not inside and "regularised" not in f"{result.settings}{result.notes}":
        live = errors > 0
        expected = max(
            0.0, ((result.differences - result.margin)[live] / errors[live]).max(initial=0)
        )
        need(
            close(result.statistic, expected, expected),
            f"statistic is {result.statistic:g}, where differences over standard_errors give "
            f"{expected:g}",
        )
    sizes = np.abs(values)[:, None] + np.abs(values)
    wrong = np.abs(result.differences - (values[:, None] - values))
    need((wrong <= CLOSE * sizes).all(), "differences are not those of the discrepancies")
    need(close(result.pvalue, float(result.pvalues.min()), 1.0), "the p-value is not the smallest")
    shown = result.shown_worse.any() if result.tests else result.pvalue <= result.alpha
    need(withheld or result.reject == bool(shown), "the decision does not follow from the p-values")
    need(len(result.diagnostics) in (0, count), "diagnostics are not of the models")
    for one in result.tests:
        need(
            one.n == result.n and set(one.names) == set(result.names),
            "tests of one result differ in n or models",
        )
        need(one.seed == result.seed, f"seed is {result.seed}, and {one.seed} in tests")
        need(one.alpha == result.alpha, f"alpha is {result.alpha}, and {one.alpha} in tests")
        check_result(one, withheld and not one.reject, inside=True)
    for one in result.beside:
        same = one.n == result.n and set(one.names) == set(result.names)
        need(same, "criteria of one result differ in n or models")
        check_result(one)


def close(value: float, wanted: float, scale: float) -> bool:
    return abs(value - wanted) <= CLOSE * max(scale, 1e-300)
