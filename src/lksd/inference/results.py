"""What the tests return: frozen records with a table as their text and JSON as their file."""

from __future__ import annotations

import json
import math
import platform
from dataclasses import dataclass, field, fields, is_dataclass
from importlib.metadata import version
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import ndtri

from .._validation import check_probability
from . import ustatistic
from .calibration import Bootstrap, Conservative, Edgeworth, NullDistribution
from .text import number, pvalue_text, table
from .ustatistic import Components

SCHEMA = 1


def versions() -> dict[str, str]:
    """What is needed to get the digits again."""
    return {"python": platform.python_version()} | {name: version(name) for name in ("lksd", "jax", "numpy", "scipy")}


@dataclass(frozen=True)
class Diagnostics:
    """How the scores of a comparison were made.

    ``rhat`` is the largest and ``ess`` the smallest over observations and models; ``noise_share`` is the part of
    the test's variance that more draws would remove; ``start_shift`` is what chains that began at different points
    differ by, in units of the statistic. None where no chains were run.
    """

    method_p: str
    method_q: str | None  # None for the test of one model
    rhat: float | None
    ess: float | None
    divergences: int
    noise_share: float | None = None
    start_shift: float | None = None

    def __str__(self) -> str:
        lines = [f"scores P {self.method_p}", f"scores Q {self.method_q}"] if self.method_q else [f"scores   {self.method_p}"]
        if self.rhat is not None and self.ess is not None:
            lines.append(f"R-hat at most {self.rhat:.3f}, ESS at least {self.ess:.0f}, {self.divergences} divergences")
        if self.noise_share is not None:
            started = "" if self.start_shift is None else f", the chains' beginnings move T by {self.start_shift:.2f}"
            lines.append(f"MCMC noise makes {self.noise_share:.2%} of the variance{started}")
        return "\n".join(lines)


@dataclass(frozen=True, eq=False)
class Words:
    """What each word (or value) of the data adds to a difference, the largest first: ``contributions`` sum to it."""

    ids: np.ndarray
    contributions: np.ndarray
    names: tuple[str, ...] = ()  # of the words, where the models know them

    def top(self, count: int = 5) -> list[tuple[str, float]]:
        """The words that decide, by name or id, with their contributions."""
        labels = self.names[:count] or [str(word) for word in self.ids[:count]]
        return list(zip(labels, self.contributions[:count].tolist(), strict=False))


@dataclass(frozen=True, eq=False)
class TestResult:
    """What every test has; the subclasses say what was compared."""

    statistic: float
    pvalue: float
    reject: bool
    alpha: float
    n: int
    kernel: str
    seed: int

    __test__ = False  # not a test class, whatever its name suggests to a test runner

    def to_json(self, path: str | Path | None = None) -> str:
        """The result as JSON text, also written to ``path`` if one is given; ``lksd.load_result`` reads it."""
        record = {"schema": SCHEMA, "kind": type(self).__name__, "versions": versions(), "result": encode(self)}
        text = json.dumps(record, indent=1, allow_nan=False)
        if path is not None:
            Path(path).write_text(text, encoding="utf-8")
        return text


@dataclass(frozen=True, eq=False)
class DifferenceResult(TestResult):
    """A test on the difference of two discrepancies."""

    difference: float
    standard_error: float
    null: NullDistribution

    def confidence_interval(self, level: float = 0.95) -> tuple[float, float]:
        """An interval for the difference of the squared discrepancies, with the test's calibration."""
        tail = (1 - check_probability("level", level)) / 2
        if self.standard_error == self.difference == 0:
            return (0.0, 0.0)
        if not self.standard_error > 0:
            return (-math.inf, math.inf)
        centre = self.statistic * self.standard_error  # the difference, or its regularised form
        return (
            centre - self.standard_error * self.null.upper_quantile(tail),
            centre - self.standard_error * self.null.lower_quantile(tail),
        )


@dataclass(frozen=True, eq=False)
class ComparisonResult(DifferenceResult):
    """The answer to "does Q fit better than P?".

    Attributes
    ----------
    statistic, pvalue, reject
        T = sqrt(n) U / sqrt(v), its p-value, and the decision at level ``alpha``.
    difference, standard_error
        U(P) - U(Q), positive when Q fits better, and sqrt(v/n).
    ksd_p, ksd_q, ksd_p_error, ksd_q_error
        Squared discrepancies (U-statistics, so they may be negative) and their standard errors.
    contributions : (n,) array
        What each observation adds to ``difference``.
    words : Words or None
        What each word adds to it, where discrete models were given.
    order : (L,) array or None
        The order of the values in a cyclic operator; None is their own.
    tests : tuple of ComparisonResult
        One entry for each kernel and operator where several were tested; p-values are adjusted.
    indistinguishable : bool
        Whether the models' scores agree to rounding on this data.
    diagnostics : Diagnostics or None
        How the scores were estimated, where models were given.
    notes : tuple of str
        What a reader should know about how this result came about.
    """

    ksd_p: float
    ksd_q: float
    ksd_p_error: float
    ksd_q_error: float
    alternative: str
    variance: str
    operator: str
    contributions: np.ndarray
    zeta: Components
    notes: tuple[str, ...] = ()
    tests: tuple[ComparisonResult, ...] = field(default=())
    diagnostics: Diagnostics | None = None
    indistinguishable: bool = False
    words: Words | None = None
    order: np.ndarray | None = None

    def documents(self, count: int = 5) -> list[tuple[int, float]]:
        """The observations that decide, with their contributions, the largest first."""
        order = np.argsort(-np.abs(self.contributions), kind="stable")[:count]
        return [(int(i), float(self.contributions[i])) for i in order]

    @property
    def calibration(self) -> str:
        return str(self.null)

    def required_n(self, power: float = 0.8) -> int | float:
        """How many new observations would reject with probability ``power`` if the true difference equals the estimate."""
        return self._required_n(self.difference, power)

    def required_n_interval(self, power: float = 0.8, level: float = 0.95) -> tuple[int | float, int | float]:
        """``required_n`` at the two ends of the confidence interval of the difference."""
        low, high = self.confidence_interval(level)
        sizes = sorted(self._required_n(end, power) for end in (low, high))
        return (sizes[0], math.inf if low <= 0 <= high else sizes[1])

    def _required_n(self, difference: float, power: float) -> int | float:
        power = check_probability("power", power)
        tail = self.alpha if self.alternative == "greater" else self.alpha / 2
        if self.alternative == "two-sided":
            difference = abs(difference)
        zeta = self.zeta
        if zeta.zeta_1 <= 0:  # where the unbiased estimate is not positive, what the test's own variance says
            zeta = zeta._replace(zeta_1=self.n * self.standard_error**2 / 4)
        return (
            ustatistic.required_n(difference, zeta, float(ndtri(1 - tail) + ndtri(power))) if self.standard_error > 0 else math.inf
        )

    def plot(self, ax=None):
        """A forest plot of both discrepancies and their difference (matplotlib axes)."""
        from ..report.plots import plot_comparison

        return plot_comparison(self, ax)

    @property
    def sentence(self) -> str:
        """The verdict in words."""
        p = pvalue_text(self.pvalue)
        if self.indistinguishable:
            return "P and Q are indistinguishable on this data: their scores agree to rounding."
        if self.reject:
            better, worse = ("Q", "P") if self.statistic > 0 else ("P", "Q")
            return f"{better} fits better than {worse} ({p})."
        if self.alternative == "greater" and self.difference <= 0:
            return f"No evidence that Q fits better than P ({p}): the estimated difference is not positive."
        size = self.required_n(0.8)
        if not self.n < size < math.inf:
            return f"Undecided ({p})."
        return (
            f"Undecided ({p}): a new sample of {size:,.0f} would reject with probability 0.8 "
            "if the true difference equals the estimate."
        )

    def __str__(self) -> str:
        low, high = self.confidence_interval()
        question = "H0: P fits at least as well as Q;  H1: Q fits better"
        if self.alternative == "two-sided":
            question = "H0: P and Q fit equally well;  H1: one fits better"
        rows = [
            ("P", number(self.ksd_p), number(self.ksd_p_error), ""),
            ("Q", number(self.ksd_q), number(self.ksd_q_error), ""),
            ("P - Q", number(self.difference), number(self.standard_error), f"[{number(low)}, {number(high)}]"),
        ]
        lines = [
            question,
            "",
            *table(("", "squared KSD", "std. error", "95 % interval"), rows),
            "",
            f"T = {self.statistic:.3f}, {pvalue_text(self.pvalue)}, n = {self.n}; {self.variance} variance",
            f"p-value  {self.calibration}",
            f"kernel   {self.kernel}",
            f"operator {self.operator}",
        ]
        if self.diagnostics is not None:
            lines += str(self.diagnostics).splitlines()
        if self.tests:
            several = [
                (f"{t.statistic:.3f}", f"{t.pvalue:.4f}", "yes" if t.reject else "no", t.operator, t.kernel) for t in self.tests
            ]
            lines += ["", *table(("T", "adjusted p", "rejected", "operator", "kernel"), several, left=(3, 4))]
        if self.words is not None:
            rows = [
                (f"{document}", number(share), word, number(part))
                for (document, share), (word, part) in zip_longest(self.documents(), self.words.top(), fillvalue=("", math.nan))
            ]
            header = ("document", "adds to P - Q", "word", "adds to P - Q")
            lines += ["", *table(header, [tuple(cell.replace("nan", "") for cell in row) for row in rows], left=(2,))]
        lines += ["", *(f"Note: {note}" for note in self.notes), self.sentence]
        return "\n".join(lines)


@dataclass(frozen=True, eq=False)
class MMDResult(DifferenceResult):
    """The relative maximum mean discrepancy test (Appendix B.5), on samples from the models."""

    mmd_p: float
    mmd_q: float
    n_p: int
    n_q: int

    def __str__(self) -> str:
        low, high = self.confidence_interval()
        rows = [
            ("P", number(self.mmd_p), "", ""),
            ("Q", number(self.mmd_q), "", ""),
            ("P - Q", number(self.difference), number(self.standard_error), f"[{number(low)}, {number(high)}]"),
        ]
        p = pvalue_text(self.pvalue)
        verdict = f"Q fits better than P ({p})." if self.reject else f"No evidence that Q fits better than P ({p})."
        lines = [
            "H0: MMD(P) <= MMD(Q);  H1: Q fits better",
            "",
            *table(("", "squared MMD", "std. error", "95 % interval"), rows),
            "",
            f"T = {self.statistic:.3f}, {p}; n = {self.n} observations, {self.n_p} from P, {self.n_q} from Q",
            f"kernel   {self.kernel}",
            "",
            verdict,
        ]
        return "\n".join(lines)


@dataclass(frozen=True, eq=False)
class GoodnessOfFitResult(TestResult):
    """Does the model fit at all? ``statistic`` is n times the squared KSD ``ksd``."""

    ksd: float
    operator: str
    contributions: np.ndarray
    replicates: int
    notes: tuple[str, ...] = ()
    diagnostics: Diagnostics | None = None

    def __str__(self) -> str:
        p = pvalue_text(self.pvalue)
        verdict = f"The model does not fit the data ({p})." if self.reject else f"No evidence against the model ({p})."
        lines = [
            "H0: the data come from the model",
            "",
            f"squared KSD = {number(self.ksd)}, n KSD^2 = {self.statistic:.3f}, {p}, n = {self.n}",
            f"bootstrap with {self.replicates} replicates",
            f"kernel   {self.kernel}",
            f"operator {self.operator}",
            *(str(self.diagnostics).splitlines() if self.diagnostics else ()),
            "",
            verdict,
            *(f"Note: {note}" for note in self.notes),
        ]
        return "\n".join(lines)


RECORDS: dict[str, type] = {
    cls.__name__: cls
    for cls in (
        ComparisonResult,
        MMDResult,
        GoodnessOfFitResult,
        Edgeworth,
        Bootstrap,
        Conservative,
        Components,
        Diagnostics,
        Words,
    )
}


def read_only(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array


def load_result(path: str | Path):
    """Read a result written by ``to_json``."""
    try:
        record = json.loads(Path(path).read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: expected a result written by to_json; it is not JSON ({error}). Check the file.") from error
    if not isinstance(record, dict) or "result" not in record or record.get("schema") != SCHEMA:
        raise ValueError(f"{path}: expected a result of schema {SCHEMA} written by to_json; got something else. Check the file.")
    try:
        result = decode(record["result"])
        if not isinstance(result, TestResult):
            raise TypeError("no result inside")
        return result
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path}: the result is damaged or from another version ({error}). Run the test again.") from error


def encode(value: Any) -> Any:
    """Records, arrays and non-finite numbers as plain JSON."""
    if isinstance(value, Components):
        return {"record": "Components", **{name: encode(part) for name, part in value._asdict().items()}}
    if is_dataclass(value):
        return {"record": type(value).__name__, **{f.name: encode(getattr(value, f.name)) for f in fields(value)}}
    if isinstance(value, np.ndarray):
        if np.issubdtype(value.dtype, np.integer):
            return {"integers": value.tolist()}
        return {"array": [encode(float(entry)) for entry in value]}
    if isinstance(value, tuple):
        return [encode(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": str(value)}
    return value


def decode(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(decode(entry) for entry in value)
    if not isinstance(value, dict):
        return value
    if "float" in value:
        return float(value["float"])
    if "integers" in value:
        return read_only(np.array(value["integers"], dtype=np.int64))
    if "array" in value:
        return read_only(np.array([decode(entry) for entry in value["array"]], dtype=np.float64))
    arguments = {name: decode(part) for name, part in value.items() if name != "record"}
    return RECORDS[value["record"]](**arguments)
