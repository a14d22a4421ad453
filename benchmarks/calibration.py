"""Rejection rates of the default tests where the null hypothesis is true, as a table: python
benchmarks/calibration.py [TRIALS].

Writes docs/null-problems.md. Every problem is run with its own fixed seeds; a rate is above its
level where an exact binomial test says so at 0.05 over the number of problems. The exit code is 1
if any is, of those whose level is claimed.
"""

from __future__ import annotations

import platform
import sys
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy import stats

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "inference")]
import nulls  # noqa: E402

import lksd  # noqa: E402
from lksd._jax import cores  # noqa: E402
from lksd.reproduce.runner import pool_of  # noqa: E402

LEVEL, TRIALS = 0.05, 400
HEAD = (
    "| models | tie | kernel | operator | n | rejected | rate | interval | p |\n"
    "|---|---|---|---|---|---|---|---|---|"
)
PAGE = """# Null problems

{count} problems in which the null hypothesis is true, at level {level}, {trials} trials each, made
by `make calibration` (lksd {version}, NumPy {numpy}, {machine}). Asymmetric ties are models that
are wrong in different ways and equally far from the data: found by quadrature for Gaussian data, by
enumeration for discrete data. Mirror images tie by symmetry. Everything else is the default of
`compare`, `compare_scores` or `rank_scores`; a ranking rejects if any of its differences comes out
significant.

The interval is Clopper and Pearson's of 95 %; p is that of an exact binomial test of "the rate is
at most {level}". With a Bonferroni correction for {count} problems a rate is above its level where
p < {threshold:.2g}: **{above} of {count} are**. The smallest p is {smallest:.2g}.

{rows}

## Small samples

The level is claimed for samples of at least {claimed}; results of smaller ones say so. The same
problems at n = {small}, of which {above_small} of {count_small} are above the level by the same
rule ([why](calibration.md#where-the-level-is-not-kept)):

{rows_small}
"""


class Rates(NamedTuple):
    """The rejections of some problems, and what an exact test says of each."""

    lines: list[str]
    pvalues: list[float]

    @property
    def threshold(self) -> float:
        return 0.05 / len(self.pvalues)

    @property
    def above(self) -> int:
        return sum(p < self.threshold for p in self.pvalues)

    @property
    def table(self) -> str:
        return "\n".join([HEAD, *self.lines])


def row(problem: nulls.Null, rejected: int, trials: int) -> tuple[str, float]:
    found = stats.binomtest(rejected, trials, LEVEL, alternative="greater")
    low, high = stats.binomtest(rejected, trials, LEVEL).proportion_ci(0.95)
    cells = (
        problem.family,
        problem.tie,
        problem.kernel,
        problem.operator,
        str(problem.n),
        f"{rejected} of {trials}",
    )
    return (
        f"| {' | '.join(cells)} | {rejected / trials:.3f} | {low:.3f} to {high:.3f} | "
        f"{found.pvalue:.2g} |",
        found.pvalue,
    )


def rejections(index: int, sizes: tuple[int, ...], trials: int) -> int:
    problem = nulls.problems(sizes)[index]
    rejected = sum(problem.rejects(number) for number in range(trials))
    print(row(problem, rejected, trials)[0], flush=True)
    return rejected


def rates(sizes: tuple[int, ...], trials: int) -> Rates:
    problems = nulls.problems(sizes)
    with pool_of(len(cores())) as pool:
        rejected = list(
            pool.map(partial(rejections, sizes=sizes, trials=trials), range(len(problems)))
        )
    lines, pvalues = zip(
        *(row(problem, count, trials) for problem, count in zip(problems, rejected, strict=True)),
        strict=True,
    )
    return Rates(list(lines), list(pvalues))


def main(trials: int) -> int:
    claimed, small = rates(nulls.SIZES, trials), rates(nulls.SMALL_SIZES, trials)
    page = PAGE.format(
        count=len(claimed.lines),
        level=LEVEL,
        trials=trials,
        version=lksd.__version__,
        numpy=np.__version__,
        machine=platform.machine(),
        threshold=claimed.threshold,
        above=claimed.above or "none",
        smallest=min(claimed.pvalues),
        rows=claimed.table,
        claimed=min(nulls.SIZES),
        small=" and ".join(map(str, nulls.SMALL_SIZES)),
        above_small=small.above or "none",
        count_small=len(small.lines),
        rows_small=small.table,
    )
    (ROOT / "docs" / "null-problems.md").write_text(page, encoding="utf-8")
    return int(claimed.above > 0)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else TRIALS))
