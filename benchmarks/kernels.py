"""Candidates for the default kernel of real data, side by side: python benchmarks/kernels.py
[TRIALS [PROBLEM ...]].

Prints for every problem how often each kernel finds the better model at level 0.05, with exact
scores and the normal threshold (the default one takes resamples, and time); in brackets how often
it prefers the worse one, where it does.
"""

from __future__ import annotations

import sys
from pathlib import Path

import equinox as eqx
import numpy as np

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "inference")]
import factor_counts  # noqa: E402
import studies  # noqa: E402

import lksd  # noqa: E402
from lksd.kernels import (  # noqa: E402
    IMQ,
    Gaussian,
    PerCoordinate,
    Standardised,
    Sum,
    Weighted,
    family,
)
from lksd.stein import Langevin, stein_kernel  # noqa: E402

TRIALS = 40
TABLES = ROOT.parent / "shared" / "data" / "tables"


class Constant(eqx.Module):
    """A weight that is the same everywhere."""

    value: np.ndarray

    def __call__(self, x):
        return self.value


def balanced(x, score):
    """PerCoordinate and IMQ with the covariance, each over the mean diagonal of its Stein
    kernel.
    """
    parts = [PerCoordinate.median(x), IMQ.covariance(x)]
    sizes = [np.diag(stein_kernel(Langevin(), one, x[:100], score[:100])).mean() for one in parts]
    weights = [Constant(np.asarray(size**-0.5)) for size in sizes]
    return Sum(*(Weighted(one, weight) for one, weight in zip(parts, weights, strict=True)))


KERNELS = {
    "default": lambda x, score: Standardised.median(x),
    "Gaussian, half the median": lambda x, score: Gaussian(Gaussian.median(x).preconditioner / 4),
    "Gaussian": lambda x, score: Gaussian.median(x),
    "per coordinate": lambda x, score: PerCoordinate.median(x),
    "IMQ": lambda x, score: IMQ.median(x),
    "IMQ, covariance": lambda x, score: IMQ.covariance(x),
    "family": lambda x, score: family(x),
    "default and per coordinate": lambda x, score: [
        Standardised.median(x),
        PerCoordinate.median(x),
    ],
    "sum": balanced,
}


def gaussian(covariance, x):
    return -x @ np.linalg.inv(covariance)


def ppca(n: int):
    """Problem 2 of the paper."""

    def trial(rng):
        weight = rng.random((100, 10))
        x = rng.normal(size=(n, 10)) @ weight.T + rng.normal(size=(n, 100))
        changed = [weight + delta * np.eye(100, 10)[:, :1] @ np.eye(1, 10) for delta in (2, 1)]
        changed = [np.where(np.arange(100)[:, None] == 0, one, weight) for one in changed]
        return x, *(gaussian(one @ one.T + np.eye(100), x) for one in changed)

    return trial


def factor_count(n: int):
    """PPCA with 2 and 3 factors fitted to data with 3."""

    def trial(rng):
        weight = rng.normal(size=(12, 3)) * [1, 0.8, 0.45]
        rows = rng.normal(size=(500 + n, 3)) @ weight.T + rng.normal(size=(500 + n, 12))
        values, vectors = np.linalg.eigh(np.cov(rows[:500], rowvar=False))

        def fitted(count):
            noise, top = values[:-count].mean(), vectors[:, -count:]
            return (top * (values[-count:] - noise)) @ top.T + noise * np.eye(12)

        x = rows[500:] - rows[:500].mean(0)
        return x, gaussian(fitted(2), x), gaussian(fitted(3), x)

    return trial


def scales(dim: int, n: int, of_p: float, of_q: float):
    def trial(rng):
        x = rng.normal(size=(n, dim))
        return x, -x / of_p**2, -x / of_q**2

    return trial


def tails(dim: int, n: int):
    """Student data with 5 degrees of freedom in every column; a normal model against one with 8."""

    def trial(rng):
        x = rng.standard_t(5, size=(n, dim))
        return x, -x / (5 / 3), -9 * x / (8 + x**2)

    return trial


def correlations(dim: int, n: int, of_p: float, of_q: float, truth: float = 0.5):
    def matrix(r):
        return (1 - r) * np.eye(dim) + r

    def trial(rng):
        x = rng.normal(size=(n, dim)) @ np.linalg.cholesky(matrix(truth)).T
        return x, gaussian(matrix(of_p), x), gaussian(matrix(of_q), x)

    return trial


def in_units(trial):
    """The same in columns of very different units."""

    def changed(rng):
        x, p, q = trial(rng)
        units = np.geomspace(1, 30, x.shape[1])
        return x * units, p / units, q / units

    return changed


PROBLEMS = {
    "PPCA (2, 1), D = 100, n = 100": ppca(100),
    "factor count 2 or 3, D = 12, n = 200": factor_count(200),
    "questionnaire, 1 or 5 factors, n = 250": factor_counts.questionnaire(1, 5, 250),
    "questionnaire, 3 or 5 factors, n = 250": factor_counts.questionnaire(3, 5, 250),
    "mean shift, D = 1, n = 100": studies.shifts(1, 100, 0.6, 0.3),
    "mean shift, D = 5, n = 100": studies.shifts(5, 100, 0.6, 0.3),
    "mean shift, D = 20, n = 100": studies.shifts(20, 100, 0.8, 0.4),
    "scale, D = 20, n = 100": scales(20, 100, 1.2, 1.1),
    "t tails, D = 5, n = 200": tails(5, 200),
    "correlation, D = 20, n = 100": correlations(20, 100, 0.2, 0.35),
    "factor count, other units": in_units(factor_count(200)),
    "t tails, other units": in_units(tails(5, 200)),
    "mirror images, D = 5, n = 100": studies.mirror(5, 100),
    "mirror images, D = 20, n = 100": studies.mirror(20, 100),
}
if TABLES.exists():
    for larger in (3, 4, 5):
        PROBLEMS[f"ability tests, 1 or {larger} factors, n = 151"] = (
            factor_counts.holzinger_swineford(TABLES, 1, larger)
        )


def rates(trial, trials: int) -> list[str]:
    counts = {name: np.zeros(2, int) for name in KERNELS}
    for number in range(trials):
        x, p, q = trial(np.random.default_rng([number, 5]))
        for name, kernel in KERNELS.items():
            result = lksd.compare_scores(x, p, q, kernel(x, p), seed=number, calibration="normal")
            counts[name] += [result.favours == "Q", result.favours == "P"]
    return [
        f"{found / trials:.2f}" + (f" (-{wrong / trials:.2f})" if wrong else "")
        for found, wrong in counts.values()
    ]


def main() -> None:
    trials = int(sys.argv[1]) if len(sys.argv) > 1 else TRIALS
    wanted = sys.argv[2:]
    print("| problem | " + " | ".join(KERNELS) + " |")
    print("|" + "---|" * (len(KERNELS) + 1))
    for name, trial in PROBLEMS.items():
        if not wanted or any(part in name for part in wanted):
            print(f"| {name} | " + " | ".join(rates(trial, trials)) + " |", flush=True)


if __name__ == "__main__":
    main()
