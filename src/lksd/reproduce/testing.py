"""All tests of a trial: cases by methods by sample sizes, with everything that they share computed
once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from ..inference.comparison import decide
from ..inference.contrasts import studentise
from ..inference.hypotheses import Hypothesis
from ..inference.kernel_sums import Prefixes, cross_sums, own_sums
from ..inference.losses import Losses
from ..inference.mmd import SampleMeans, judge_means, mmd_of_means
from ..kernels import Kernel, PerCoordinate
from ..options import Decision
from ..statistics.nulls import BOOTSTRAP_LIMIT
from ..stein import Langevin, SteinOperator
from ..stein.gram import gram_matrix
from .experiment import Outcome, Task, timed

# roles: the chains and samples of P and Q are independent even where both are the same model
OF_P, OF_Q = 1, 2
ADDITIVE = ("fisher", "conditional", "log")  # kinds of tests that are means of losses
Label = Hashable  # what tells one model of a family from another
# all that ``relative_mmd`` computes of its three samples
Means = tuple[SampleMeans, SampleMeans, float]


@dataclass(frozen=True, eq=False)
class Scored:
    """A model's scores at the data, with the operators that they belong to; or its losses."""

    parts: tuple[np.ndarray, ...]
    operators: tuple[SteinOperator, ...] = (Langevin(),)


class Sample(NamedTuple):
    """All that the MMD needs of one model's sample: against itself, and against the data from both
    sides.
    """

    own: Prefixes
    at_data: Prefixes
    at_sample: Prefixes

    def means(self, n: int, count: int) -> SampleMeans:
        """The means for the first n data points and the first ``count`` of the model's."""
        own = self.own.at(count, count) / (count - 1)
        return SampleMeans(own, self.at_data.at(count, n) / count, self.at_sample.at(n, count) / n)


def means_of(p: Sample, q: Sample, own_data: Prefixes, n: int, count: int) -> Means:
    """Those of the first n data points and the first ``count`` of each model's."""
    return p.means(n, count), q.means(n, count), float(np.mean(own_data.at(n, n) / (n - 1)))


def sample_sums(
    kernels: tuple[Kernel, ...],
    x: np.ndarray,
    y: np.ndarray,
    sizes: tuple[int, ...],
    counts: tuple[int, ...],
) -> list[Sample]:
    """The sums of a sample y of the model for each kernel, for some sizes of the data x
    and of y.
    """
    own, cross = own_sums(kernels, y, counts), cross_sums(kernels, x, y, sizes, counts)
    return [Sample(among, *between) for among, between in zip(own, cross, strict=True)]


def usual_test(kind: str) -> tuple[str, str]:
    """The variance and the calibration of a test: the normal threshold, as in the paper, for all
    methods but ours.
    """
    return "auto", "auto" if kind in ("ours", "calibrated", "together", *ADDITIVE) else "normal"


def run_tests(
    task: Task,
    x: np.ndarray,
    *,
    pairs: Callable[[str], tuple[Label, Label]],
    score: Callable[[str, Any, int, Any], tuple[Scored, float]],
    kernel: Callable[[str], Kernel],
    judged: Callable[[str], tuple[str, str]] = usual_test,
    sample: Callable[[Any, int, int], np.ndarray] | None = None,
    count: Callable[[str, int], int] = lambda kind, n: n,
    default: str = "",
    scaled: bool = False,
) -> Iterator[Outcome]:
    """The outcomes of a trial on the data ``x``, of which smaller samples are prefixes.

    A method is called kind-kernel, or by its kind alone where it takes the default kernel. Kinds
    that begin with "mmd" compare samples of the models, "together" samples and scores, additive
    ones losses, all others scores.

    Parameters
    ----------
    pairs : from a case to the labels of P and Q
    score : (kind, label, role, pair) to the model's scores at ``x`` and the seconds that they took;
    tests share what belongs to the
        same object
    kernel : from a name to a kernel
    judged : from a kind to the variance and the calibration of its test
    sample : (label, role, count) to a sample of the model
    count : (kind, n) to the size of the models' samples
    default : the name of the default kernel; none for the one that ``compare`` makes of real data
    scaled : whether the case is the squared scale of the kernel
    """
    sizes, largest = task.sizes, task.largest
    of_mmd = [method for method in task.methods if of_samples(kind_of(method))]
    counts = tuple(sorted({count(kind_of(method), n) for method in of_mmd for n in sizes}))

    def kernel_name(method: str, case: str) -> str:
        name = method.partition("-")[2] or default
        return f"{name}@{case}" if scaled else name

    names = tuple(
        dict.fromkeys(kernel_name(method, case) for case in task.cases for method in of_mmd)
    )

    @timed
    def sums(label: Label, role: int):
        """Of a model's sample, for all kernels at once, by their names."""
        assert sample is not None
        made = sample_sums(
            tuple(map(kernel, names)), x, sample(label, role, max(counts)), sizes, counts
        )
        return dict(zip(names, made, strict=True))

    between = cache(
        lambda: dict(zip(names, own_sums(tuple(map(kernel, names)), x, sizes), strict=True))
    )
    grams = Grams(x, kernel)
    for case in task.cases:
        pair = pairs(case)
        for method in task.methods:
            kind, name = kind_of(method), kernel_name(method, case)
            roles = list(zip(pair, (OF_P, OF_Q), strict=True))
            samples = [sums(*one) for one in roles] if of_samples(kind) else []
            scores = [] if kind.startswith("mmd") else [score(kind, *one, pair) for one in roles]
            seconds = sum(took for _, took in scores) + sum(took for _, took in samples) / max(
                len(names), 1
            )
            for n in sizes:
                means, took = None, 0.0
                if samples:
                    means = means_of(
                        samples[0][0][name], samples[1][0][name], between()[name], n, count(kind, n)
                    )
                judge: Any = None if means is None else partial(judge_means, *means, kernel(name))
                if kind in ADDITIVE:
                    losses = tuple(one.parts[0][:n] for one, _ in scores)
                    judge = partial(loss_test, Losses(kind, losses), task.seed)
                elif scores:
                    of_models = tuple(one for one, _ in scores)
                    known, took = grams.known(of_models, name, n)
                    judge = partial(
                        score_test,
                        grams.family(of_models, name, n),
                        known,
                        judged(kind),
                        task.seed,
                        means,
                    )
                yield from outcomes(
                    case, method, n, task.alphas, judge, seconds * n / largest + took
                )


class Grams:
    """Stein Gram matrices of models at the data: one serves all pairs that a model is in, and
    smaller samples by its corner.
    """

    def __init__(self, x: np.ndarray, named: Callable[[str], Kernel]):
        of_size = cache(lambda n: PerCoordinate.median(x[:n]))

        @cache
        def checked(scored: Scored) -> list[tuple[SteinOperator, np.ndarray, np.ndarray]]:
            found = [(operator, operator.observations(x)) for operator in scored.operators]
            return [
                (*one, one[0].scores("scores", part, one[1]))
                for one, part in zip(found, scored.parts, strict=True)
            ]

        def family(scored: tuple[Scored, ...], name: str, n: int) -> list[Hypothesis]:
            """What is tested on the first n observations, for each operator; no name means the
            default kernel for real data.
            """
            kernel = named(name) if name else of_size(n)
            of_operators = zip(*map(checked, scored), strict=True)
            return [
                Hypothesis(
                    kernel,
                    models[0][0],
                    models[0][1][:n],
                    tuple(score[:n] for _, _, score in models),
                )
                for models in of_operators
            ]

        @timed
        def matrices(scored: Scored, name: str, n: int) -> list[np.ndarray]:
            return [
                gram_matrix(one.operator, one.kernel, one.x, one.scores[0])
                for one in family((scored,), name, n)
            ]

        self.size, self.family, self.matrices = len(x), family, matrices

    def known(
        self, scored: tuple[Scored, ...], name: str, n: int
    ) -> tuple[list[np.ndarray] | None, float]:
        """The models' matrices at the first n observations for each operator, where they are small
        enough to hold; with their share of the seconds that they took.
        """
        whole = self.size if name else n
        if whole > BOOTSTRAP_LIMIT:
            return None, 0.0
        found = [self.matrices(one, name, whole) for one in scored]
        of_operators = zip(*(matrices for matrices, _ in found), strict=True)
        share = sum(took for _, took in found) * (n / whole) ** 2
        return [np.stack([matrix[:n, :n] for matrix in models]) for models in of_operators], share


def score_test(
    family: list[Hypothesis],
    known: list[np.ndarray] | None,
    how: tuple[str, str],
    seed: int,
    means: Means | None,
    alpha: float,
):
    """``compare_scores``, and beside the MMD where its ``means`` are given."""
    decision = Decision(alternative="greater", alpha=alpha, variance=how[0], calibration=how[1])
    tests = studentise(family, decision, seed, known=known)
    mmd = None if means is None else mmd_of_means(*means, family[0].kernel, alpha, seed)
    result, _ = decide(tests, decision, mmd)
    strongest = min(result.ksd_tests, key=lambda one: (one.pvalue, -one.statistic))
    return (
        strongest
        if result.mmd is None
        else min((strongest, result.mmd), key=lambda one: one.pvalue)
    )


def loss_test(losses: Losses, seed: int, alpha: float):
    """``compare_pointwise`` with the paper's question."""
    decision = Decision(alternative="greater", alpha=alpha)
    return decide(studentise([losses], decision, seed), decision)[0]


def kind_of(method: str) -> str:
    return method.partition("-")[0]


def of_samples(kind: str) -> bool:
    return kind.startswith("mmd") or kind == "together"


def outcomes(
    case: str, method: str, n: int, alphas: tuple[float, ...], test: Callable, shared: float
) -> Iterator[Outcome]:
    """One p-value judged at all levels; ``shared`` are the seconds spent before on what the test
    needs.
    """
    began = time.perf_counter()
    result = test(min(alphas))
    seconds = time.perf_counter() - began + shared
    for alpha in alphas:
        yield Outcome(
            case,
            method,
            n,
            alpha,
            result.statistic,
            result.pvalue,
            bool(result.pvalue <= alpha),
            seconds,
        )
