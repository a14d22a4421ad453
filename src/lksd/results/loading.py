"""Results from files, and whether what a file says can be one: types, sizes, and numbers that
follow from each other.
"""

from __future__ import annotations

import json
import math
from dataclasses import fields, is_dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from .._validation import MINIMUM_OBSERVATIONS
from ..statistics.multiplicity import CORRECTIONS
from ..statistics.nulls import NULLS, Bootstrap, NullDistribution
from ..statistics.ustatistic import Components
from .base import (
    CHECKED,
    READABLE,
    SCHEMA,
    DifferenceResult,
    MissingClass,
    TestResult,
    decode,
    record_checksum,
)
from .comparison import ComparisonResult, MMDResult
from .details import Diagnostics, Pointwise, Unconverged, Words
from .fit import GoodnessOfFitResult
from .ranking import RankResult

RECORDS = (
    ComparisonResult,
    MMDResult,
    GoodnessOfFitResult,
    RankResult,
    Components,
    Diagnostics,
    Pointwise,
    Unconverged,
    Words,
)
KINDS: dict[str, type] = {kind.__name__: kind for kind in RECORDS}
CLOSE = 1e-6  # of numbers that are sums of the same terms in another order
NUMBER = (int, float)
TYPES: dict[str, Any] = {
    "float": NUMBER,
    "int": int,
    "bool": bool,
    "str": str,
    "np.ndarray": np.ndarray,
    "Any": NUMBER,
    "Components": Components,
    "NullDistribution": NullDistribution,
    "ComparisonResult": ComparisonResult,
    "RankResult": RankResult,
    "MMDResult": MMDResult,
    "Diagnostics": Diagnostics,
    "Pointwise": Pointwise,
    "Words": Words,
}


def load_result(path: str | Path):
    """Read a result written by ``to_json``. A file that was cut, changed or damaged since is
    refused.

    The module of a null distribution of your own must be imported before.
    """
    try:
        record = json.loads(
            Path(path).read_text(encoding="utf-8"),
            object_pairs_hook=without_doubles,
            parse_constant=refuse_constant,
        )
    except (ValueError, RecursionError, MemoryError) as error:
        raise ValueError(
            f"{path}: expected a result written by to_json; it is not JSON ({error}). Check the "
            "file."
        ) from error
    if (
        not isinstance(record, dict)
        or "result" not in record
        or record.get("schema") not in READABLE
    ):
        raise ValueError(
            f"{path}: expected a result of schema {SCHEMA} written by to_json; got something else. "
            "Check the file."
        )
    try:
        if "checksum" in record or record["schema"] >= CHECKED:
            need(
                record.get("checksum") == record_checksum(record),
                "the content is not what was written",
            )
        result = decode(record["result"], NULLS | KINDS)
        need(isinstance(result, TestResult), "no result inside")
        check_record(result)
        check_result(result)
        beside = {name: record[name] for name in ("settings", "versions")}
        need(
            all(isinstance(one, dict) for one in beside.values()),
            "settings or versions are no dictionary",
        )
        return replace(result, **beside)
    except MissingClass as error:
        raise ValueError(
            f"{path}: the result holds a {error}, a class that is not defined here. Import the "
            "module that defines it, and load the file again."
        ) from None
    except (
        ArithmeticError,
        AttributeError,
        LookupError,
        RecursionError,
        TypeError,
        ValueError,
    ) as error:
        raise ValueError(
            f"{path}: the result is damaged or from another version ({error}). Run the test again."
        ) from error


def without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    need(len(found) == len(pairs), "a name occurs twice in one record")
    return found


def refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number")


def need(condition: Any, said: str) -> None:
    if not condition:
        raise ValueError(said)


def check_record(record: Any) -> None:
    """Every field of the type that it is declared with, also in the records inside."""
    if isinstance(record, tuple):
        if hasattr(record, "_asdict"):
            need(
                all(isinstance(one, NUMBER) for one in record), f"{short(record)} holds no numbers"
            )
        for one in record:
            check_record(one)
    if not is_dataclass(record) or not type(record).__module__.startswith("lksd."):
        return
    for field in fields(record):
        value, kind = getattr(record, field.name), str(field.type)
        if "beside" in field.metadata:
            continue
        need(is_a(value, kind), f"{field.name} is {short(value)}, where {kind} is expected")
        check_record(value)
    if isinstance(record, Words):
        need(
            record.ids.shape == record.contributions.shape, "words and their parts differ in number"
        )
        need(
            record.ids.ndim == 1 and len(record.names) in (0, len(record.ids)),
            "words and their names differ in number",
        )
    if isinstance(record, Bootstrap):
        values = record.replicates
        need(values and all(a <= b for a, b in pairwise(values)), "the replicates are not in order")


def is_a(value: Any, kind: str) -> bool:
    """Whether a value is of a type as it is written in a record: a name, several with |, or a tuple
    of one.
    """
    if " | " in kind:
        return any(is_a(value, one) for one in kind.split(" | "))
    if kind == "None":
        return value is None
    if kind.startswith("tuple["):
        inner = kind.removeprefix("tuple[").removesuffix("]").split(",")[0].strip()
        return (
            isinstance(value, tuple)
            and not hasattr(value, "_asdict")
            and all(is_a(one, inner) for one in value)
        )
    if kind != "bool" and isinstance(value, bool):
        return False
    return isinstance(value, TYPES.get(kind, object))


def short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:40]}..."


def check_result(result: TestResult, withheld: bool = False) -> None:
    """Numbers in their range, and those that follow from others; inside of a result whose verdict
    is ``withheld`` none is given.
    """
    n, withheld = result.n, withheld or result.withheld is not None
    need(n >= MINIMUM_OBSERVATIONS, f"n is {n}")
    need(0 < result.alpha < 1, f"alpha is {result.alpha}")
    need(0 <= result.pvalue <= 1, f"the p-value is {result.pvalue}")
    need(result.seed >= 0, f"the seed is {result.seed}")
    need(not (withheld and result.reject), "a verdict that is withheld rejects")
    if isinstance(result, DifferenceResult):
        check_difference(result)
    if isinstance(result, ComparisonResult):
        check_comparison(result, withheld)
    if isinstance(result, ComparisonResult | GoodnessOfFitResult):
        need(
            result.labels is None or len(result.labels) == n,
            "the labels are not those of n observations",
        )
    if isinstance(result, MMDResult):
        need(min(result.n_p, result.n_q) >= MINIMUM_OBSERVATIONS, "a sample is too small")
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
            need(fits, "the p-value is none of the bootstrap")
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
        check_ranking(result, withheld)


def check_difference(result: DifferenceResult) -> None:
    reverse = result.pvalue_reverse
    need(reverse is None or 0 <= reverse <= 1, f"the reverse p-value is {reverse}")
    need(not result.standard_error < 0, f"the standard error is {result.standard_error}")
    need(
        math.isfinite(result.difference) and math.isfinite(result.estimate),
        "the difference is not finite",
    )
    need(len(result.names) == 2, f"the names of the models are {result.names}")
    need(result.margin >= 0, f"the margin is {result.margin}")
    if result.standard_error > 0 and not math.isnan(result.statistic):
        wanted = [
            (result.estimate + sign * result.margin) / result.standard_error for sign in (1, -1)
        ]
        need(
            any(close(result.statistic, one, abs(one)) for one in wanted),
            f"the statistic {result.statistic:g} is not the difference over its error",
        )


def check_comparison(result: ComparisonResult, withheld: bool) -> None:
    need(result.correction in CORRECTIONS, f"the correction is {result.correction!r}")
    need(
        result.alternative in ("greater", "two-sided"), f"the alternative is {result.alternative!r}"
    )
    better = result.better_role
    rejected = better is not None and (result.alternative == "two-sided" or better == "Q")
    need(withheld or result.reject == rejected, "the decision does not follow from the p-values")
    (p, p_error), (q, q_error) = result.estimates
    sizes = abs(p) + abs(q)
    need(
        close(result.difference, p - q, sizes),
        "the discrepancies do not add up",
    )
    need(not (p_error < 0 or q_error < 0), "a standard error is negative")
    check_contributions(result.contributions, result.n, result.difference)
    for name, array in (("kept", result.kept), ("order", result.order)):
        need(
            array is None
            or (array.ndim == 1 and array.dtype.kind in "iu" and array.min(initial=0) >= 0),
            f"{name} is no list of rows",
        )
    need(result.kept is None or len(result.kept) == result.n, "the rows that were kept are not n")
    if result.diagnostics is not None:
        for each in (result.diagnostics.rhats, result.diagnostics.esses):
            need(each is None or each.shape == (result.n,), "diagnostics are not of n observations")
    check_pointwise(result.pointwise, result.n, 2)
    for one in (*result.tests, *result.beside, *(() if result.mmd is None else (result.mmd,))):
        need(
            one.n == result.n and one.alpha == result.alpha,
            "tests of one result differ in n or level",
        )
        check_result(one, withheld and not one.reject)


def check_pointwise(found: Pointwise | None, n: int, models: int) -> None:
    if found is not None:
        shape = (n, models, len(found.criteria))
        for part in (found.losses, found.errors):
            need(part.shape == shape, f"pointwise losses of shape {part.shape}, not {shape}")


def check_contributions(parts: np.ndarray, n: int, total: float) -> None:
    need(
        parts.shape == (n,) and parts.dtype.kind == "f",
        f"contributions of shape {parts.shape} for n = {n}",
    )
    need(
        close(float(parts.sum()), total, float(np.abs(parts).sum())),
        "the contributions do not add up to the difference",
    )


def check_ranking(result: RankResult, withheld: bool) -> None:
    count = len(result.names)
    need(result.correction in CORRECTIONS, f"the correction is {result.correction!r}")
    need(count >= 2 and len(set(result.names)) == count, "names of models are missing or double")
    values, errors = result.estimates
    for name in ("ksd", "ksd_errors", "losses", "loss_errors", "selective_pvalues"):
        own = getattr(result, name)
        need(own is None or own.shape == (count,), f"{name} is not of {count} models")
    need(
        (result.criterion == "ksd") == (result.losses is None) == (result.loss_errors is None),
        "losses and the criterion do not go together",
    )
    for name in ("differences", "standard_errors", "pvalues", "lower"):
        need(getattr(result, name).shape == (count, count), f"{name} is not of {count} models")
    for own in (result.pvalues, result.selective_pvalues):
        need(((own >= 0) & (own <= 1)).all(), "a p-value is not between 0 and 1")
    need(
        not (errors < 0).any() and not (result.standard_errors < 0).any(),
        "a standard error is negative",
    )
    sizes = np.abs(values)[:, None] + np.abs(values)
    apart = np.abs(result.differences - (values[:, None] - values))
    need((apart <= CLOSE * sizes).all(), "differences are not those of the discrepancies")
    need(close(result.pvalue, float(result.pvalues.min()), 1.0), "the p-value is not the smallest")
    shown = result.shown_worse.any() if result.tests else result.pvalue <= result.alpha
    need(withheld or result.reject == bool(shown), "the decision does not follow from the p-values")
    need(len(result.diagnostics) in (0, count), "diagnostics are not of the models")
    check_pointwise(result.pointwise, result.n, count)
    for one in (*result.tests, *result.beside):
        need(
            one.n == result.n and set(one.names) == set(result.names),
            "tests of one result differ in n or models",
        )
        check_result(one, withheld and not one.reject)


def close(value: float, wanted: float, scale: float) -> bool:
    return abs(value - wanted) <= CLOSE * max(scale, 1e-300)
