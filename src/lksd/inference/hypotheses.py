"""What is tested: every kernel with every operator, on checked observations and scores; or the
losses of models at each observation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .._documents import is_sparse
from .._jax import float64
from .._validation import check_choice, check_count
from ..domains import CONTINUOUS, DISCRETE, Prepared
from ..kernels import Kernel, Weighted, as_kernel, check_on
from ..kernels.discrete import Mismatches
from ..statistics.nulls import (
    EDGEWORTH_ROWS,
    Edgeworth,
    expansions,
    projections,
    quadratic_forms,
)
from ..statistics.ustatistic import Pairs, against_last, studentised_replicates
from ..stein import GramSums, Langevin, SteinOperator, gram_sums, paired
from .losses import Losses
from .matching import as_given


class Hypothesis(NamedTuple):
    """One kernel and one operator, with the observations and each model's scores in the form they
    take.
    """

    kernel: Kernel
    operator: SteinOperator
    x: np.ndarray
    scores: tuple[np.ndarray, ...]
    notes: tuple[str, ...] = ()
    smoothing: str = ""  # what was done to data and models
    criterion: str = "ksd"

    @property
    def operator_name(self) -> str:
        return f"{self.operator}{self.smoothing}"

    def only(self, rows: np.ndarray) -> Hypothesis:
        """The same on some of the observations."""
        return self._replace(x=self.x[rows], scores=tuple(score[rows] for score in self.scores))

    def at(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Some observations, and the (S, k, ...) scores at them."""
        return self.x[rows], np.stack([score[rows] for score in self.scores])

    def contributions(self, rows: np.ndarray) -> np.ndarray:
        """What each observation adds to a difference, from the row sums of its Gram matrix."""
        return rows / (rows.shape[-1] * (rows.shape[-1] - 1))

    @property
    def order(self) -> np.ndarray | None:
        """That of the values, where the operator has one."""
        return self.operator.order if self.operator.ordered else None  # type: ignore[attr-defined]

    def sums(self, contrasts: np.ndarray, weights: np.ndarray | None, **options) -> GramSums:
        """The sums of the Gram matrices of all models and of their ``contrasts``."""
        given = (self.operator, self.kernel, self.x, self.scores)
        return gram_sums(*given, contrasts, weights, **options)

    def at_pairs(self, order: np.ndarray, contrasts: np.ndarray) -> np.ndarray:
        """H of the contrasts at disjoint pairs of observations."""
        first, second = self.at(order[0::2]), self.at(order[1::2])
        return contrasts @ paired(self.operator, self.kernel, *first, *second)

    def replicates(self, sums: GramSums, weights: np.ndarray, pairs: Pairs) -> np.ndarray:
        """T of each difference in resamples."""
        return studentised_replicates(
            sums.rows, sums.model_diagonal, weights, pairs, sums.matrix, sums.products
        )

    def expansion(self, sums: GramSums, rows: np.ndarray, pairs: Pairs, seed: int) -> Edgeworth:
        """The Edgeworth expansions; g'Hg comes from at most ``EDGEWORTH_ROWS`` observations."""
        n, g = rows.shape[1], projections(sums.rows)
        subset = np.arange(n)
        if sums.matrix is not None:
            return expansions(rows, subset, quadratic_forms(sums.matrix @ g.T, g, pairs))
        if n > EDGEWORTH_ROWS:
            subset = np.sort(np.random.default_rng(seed).choice(n, EDGEWORTH_ROWS, replace=False))
        g = g[:, subset]
        part = self.only(subset).sums(against_last(len(self.scores)), g.T)
        return expansions(rows, subset, quadratic_forms(part.products, g, pairs))


Tested = Hypothesis | Losses


def prepared_family(prepared: Prepared, names: Sequence[str], smoothing: str) -> list[Hypothesis]:
    """All kernels and operators of a call with models."""

    def read(position: int, operator: SteinOperator):
        pairs = zip(names, prepared.scores, strict=True)
        return prepared.x, tuple(
            operator.scores(f"scores of {name}", parts[position], prepared.x)
            for name, parts in pairs
        )

    return crossed(prepared.kernel, prepared.operators, read, smoothing=smoothing)


def given_family(x, scores, names: Sequence[str], kernel, operator, mask) -> list[Hypothesis]:
    """All kernels and operators of a call with scores; with several operators each score is a
    tuple, one for each.
    """
    scores, operator, notes, values = as_given(x, scores, names, operator, mask)
    several, sparse = isinstance(operator, (list, tuple)), is_sparse(x)

    def read(position: int, operator: SteinOperator):
        again = values is None or (position and sparse)  # counts, which some operators refuse
        observations: Any = operator.observations(x, mask) if again else values
        check_count("x", len(observations))
        own = zip(names, scores, strict=True)
        parts = [
            (name, part(score, name, position, len(wanted)) if several else score)
            for name, score in own
        ]
        return observations, tuple(
            operator.scores(name, score, observations) for name, score in parts
        )

    wanted = list(operator) if several else [operator]
    return crossed(kernel, wanted, read, notes, sparse=sparse)


def crossed(
    kernel, operators, read, notes: tuple[str, ...] = (), smoothing: str = "", sparse: bool = False
) -> list[Hypothesis]:
    """Every operator with every kernel; ``read`` gives the observations and scores of
    an operator.
    """
    kernels = list(map(as_kernel, kernel if isinstance(kernel, (list, tuple)) else [kernel]))
    if not kernels or not operators:
        raise ValueError(
            "kernel and operator: expected at least one of each; got an empty list. Give one."
        )
    found: list[Hypothesis] = []
    known: dict[tuple[int, str], Any] = {}
    for position, choice in enumerate(operators):
        for one in kernels:
            operator = choice if isinstance(choice, SteinOperator) else as_operator(choice, one)
            operator.check_kernel(one)
            if sparse and isinstance(one, Mismatches):
                raise ValueError(
                    "kernel: expected BagOfWords for word counts, which have no positions; got "
                    f"{one}. Use BagOfWords(IMQ(), L)."
                )
            if (key := (position, str(operator))) not in known:
                known[key] = read(position, operator)
                x = known[key][0]
                if (x[:2] == x[0]).all() and (x == x[0]).all():
                    raise ValueError(
                        "x: expected observations that differ; got n copies of one. There is "
                        "nothing to compare the models on."
                    )
            x, scores = known[key]
            check_on(one, x, scalar=operator.scalar)
            own = weight_notes(one, x) if isinstance(one, Weighted) else ()
            found.append(Hypothesis(one, operator, x, scores, (*notes, *own), smoothing))
    return found


def weight_notes(kernel: Weighted, observations: np.ndarray) -> tuple[str, ...]:
    """How many observations the kernel's weight leaves out."""
    left_out = int(np.sum(weights_of(kernel, observations) == 0))
    said = (
        f"{left_out} of {len(observations)} observations lie where the kernel's weight is zero and "
        "do not count."
    )
    return (said,) if left_out else ()


@float64
def weights_of(kernel: Weighted, observations: np.ndarray) -> np.ndarray:
    return np.asarray(
        jax.vmap(lambda point: jnp.asarray(kernel.weight(point)))(jnp.asarray(observations))
    )


def part(score, name: str, position: int, count: int):
    """The scores that belong to one of several operators."""
    if count == 1 and not isinstance(score, (list, tuple)):
        return score
    if not isinstance(score, (list, tuple)) or len(score) != count:
        raise ValueError(
            f"{name}: expected a tuple of {count} arrays, one for each operator; got "
            f"{type(score).__name__}. Give one for each."
        )
    return score[position]


def as_operator(choice, kernel: Kernel) -> SteinOperator:
    """An operator by its name, or by nothing (Langevin)."""
    if choice is None:
        if kernel.domain == "discrete":
            raise ValueError(
                f"operator: expected one for discrete data with the kernel {kernel}; got none. Say "
                "which operator the scores belong to, for example "
                "operator=lksd.stein.Difference(n_values)."
            )
        return Langevin()
    if not isinstance(choice, str):
        known = ", ".join([*CONTINUOUS, *DISCRETE])
        raise TypeError(
            f"operator: expected an operator object or one of {known}; got {choice!r}. Give an "
            "instance."
        )
    check_choice("operator", choice, [*CONTINUOUS, *DISCRETE])
    if choice in CONTINUOUS:
        return CONTINUOUS[choice]()
    if not hasattr(kernel, "n_values"):
        raise ValueError(
            f"operator: expected an object, since the kernel {kernel} does not say how many values "
            f"there are; got {choice!r}. Use lksd.stein.{DISCRETE[choice].__name__}(n_values)."
        )
    return DISCRETE[choice](kernel.n_values, witness="shared")
