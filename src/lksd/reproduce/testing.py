"""All tests of a trial: cases by methods by sample sizes, with everything that they share computed once."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterator
from functools import cache, partial
from typing import Any

import numpy as np

from ..inference.kernel_sums import own_sums
from ..inference.mmd import judge_means
from ..kernels import PerCoordinate
from .experiment import Outcome, Task, timed
from .mmd import means_of, sample_sums

OF_P, OF_Q = 1, 2  # roles: the chains and samples of P and Q are independent even where both are the same model
Label = Hashable  # what tells one model of a family from another


def run_tests(
    task: Task,
    x: np.ndarray,
    *,
    pairs: Callable[[str], tuple[Label, Label]],
    score: Callable[[str, Any, int, Any], tuple[Any, float]],
    test: Callable[..., Any],
    kernel: Callable[[str], Any],
    sample: Callable[[Any, int, int], np.ndarray] | None = None,
    count: Callable[[str, int], int] = lambda kind, n: n,
    default: Callable[[np.ndarray], Any] = PerCoordinate.median,
    scaled: bool = False,
) -> Iterator[Outcome]:
    """The outcomes of a trial on the data ``x``, of which smaller samples are prefixes.

    A method is called kind-kernel, or by its kind alone where it takes the default kernel. Kinds that begin with "mmd" compare
    samples of the models, "together" samples and scores, all others scores.

    Parameters
    ----------
    pairs : from a case to the labels of P and Q
    score : (kind, label, role, pair) to the model's scores at ``x`` and the seconds that they took
    test : (kind, x, scores of P, scores of Q, kernel, seed, alpha) to a result; for "together" with the samples' ``means``
    kernel : from a name to a kernel
    sample : (label, role, count) to a sample of the model
    count : (kind, n) to the size of the models' samples
    default : from data to a kernel
    scaled : whether the case is the squared scale of the kernel
    """
    sizes, largest = task.sizes, task.largest
    counts = tuple(sorted({count(kind, n) for kind in map(kind_of, task.methods) if of_samples(kind) for n in sizes}))

    def kernel_name(method: str, case: str) -> str:
        name = method.partition("-")[2]
        return f"{name}@{case}" if scaled else name

    names = tuple(
        {kernel_name(method, case): None for case in task.cases for method in task.methods if of_samples(kind_of(method))}
    )

    @timed
    def sums(label: Label, role: int):
        """Of a model's sample, for all kernels at once, by their names."""
        assert sample is not None
        made = sample_sums(tuple(map(kernel, names)), x, sample(label, role, max(counts)), sizes, counts)
        return dict(zip(names, made, strict=True))

    between = cache(lambda: dict(zip(names, own_sums(tuple(map(kernel, names)), x, sizes), strict=True)))
    of_size = cache(lambda n: default(x[:n]))
    for case in task.cases:
        pair = pairs(case)
        for method in task.methods:
            kind, name = kind_of(method), kernel_name(method, case)
            roles = list(zip(pair, (OF_P, OF_Q), strict=True))
            samples = [sums(*one) for one in roles] if of_samples(kind) else []
            scores = [] if kind.startswith("mmd") else [score(kind, *one, pair) for one in roles]
            seconds = sum(took for _, took in scores) + sum(took for _, took in samples) / max(len(names), 1)
            for n in sizes:
                chosen = kernel(name) if name else of_size(n)
                means = None
                if samples:
                    of_p, of_q = (made[name] for made, _ in samples)
                    means = means_of(of_p, of_q, between()[name], n, count(kind, n))
                judge: Callable[[float], Any]
                if scores:
                    given = (first(values, n) for values, _ in scores)
                    judge = partial(test, kind, x[:n], *given, chosen, task.seed, **{"means": means} if means else {})
                else:
                    assert means is not None
                    judge = partial(judge_means, *means, chosen)
                yield from outcomes(case, method, n, task.alphas, judge, seconds * n / largest)


def kind_of(method: str) -> str:
    return method.partition("-")[0]


def of_samples(kind: str) -> bool:
    return kind.startswith("mmd") or kind == "together"


def first(scores: Any, n: int) -> Any:
    """The scores of the first n observations, for each operator where there are several."""
    return tuple(part[:n] for part in scores) if isinstance(scores, tuple) else scores[:n]


def outcomes(case: str, method: str, n: int, alphas: tuple[float, ...], test: Callable, shared: float) -> Iterator[Outcome]:
    """One p-value judged at all levels; ``shared`` are the seconds spent before on what the test needs."""
    began = time.perf_counter()
    result = test(min(alphas))
    seconds = time.perf_counter() - began + shared
    for alpha in alphas:
        yield Outcome(case, method, n, alpha, result.statistic, result.pvalue, bool(result.pvalue <= alpha), seconds)
