"""What a Stein operator is."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, Literal

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from .._documents import is_ragged, pad_scores
from .._jax import float64, program
from .._validation import check_moderate, check_reals, to_numpy
from ..kernels import Kernel, as_kernel

ELEMENTWISE_TILE = 128  # rows of a tile, on a processor
TOLERANCE = 1e-6  # of the length of a unit vector
Data = Literal["reals", "directions", "integers"]

# the operators of this process by the names of their classes, as files name them
REGISTERED: dict[str, type[SteinOperator]] = {}


class SteinOperator(eqx.Module):
    """Turns a kernel and scores into the Stein kernel h, and says what observations and scores are.

    A subclass needs only ``block``. It then takes real vectors, and as scores the gradients of the
    log density, which models have; the facts below say otherwise. Its fields are numbers, strings,
    tuples or arrays, so that scores that belong to it can be saved. An operator on integers is
    built on [`DiscreteOperator`][lksd.stein.DiscreteOperator].
    """

    data: ClassVar[Data] = "reals"  # what observations are; directions are vectors of length 1
    # whether a kernel must be one number, not one for each coordinate
    scalar: ClassVar[bool] = True
    # whether the scores of a model are posterior means, so that they can be had without bias
    linear: ClassVar[bool] = True
    ordered: ClassVar[bool] = False  # whether a field ``order`` says which value follows which
    # whether h has mean zero only where no value has probability zero
    needs_all_values: ClassVar[bool] = False
    by_moves: ClassVar[bool] = (
        # whether ``block`` is the sum over the moves of a discrete operator, which shorter ways
        # compute
        False
    )
    # whether the paper estimates its scores by chains of their own
    modified_posterior: ClassVar[bool] = False

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        known = REGISTERED.get(cls.__name__)
        if known is None or not known.__module__.startswith("lksd."):
            REGISTERED[cls.__name__] = cls

    @abstractmethod
    def block(self, kernel: Kernel, x, scores_x, y, scores_y):
        """h(x_i, y_j) for a stack of S models: scores (S, n, ...) and (S, m, ...) give
        (S, n, m).
        """

    def observations(self, x, mask=None) -> np.ndarray:
        """``x`` checked and in the form that ``block`` takes."""
        if mask is not None:
            raise ValueError(
                f"mask: only discrete operators take a mask; got one with {self}. Impute missing "
                "values first."
            )
        return check_directions("x", x) if self.data == "directions" else check_reals("x", x)

    def score_shape(self, x: np.ndarray) -> tuple[int, ...]:
        """The shape of the scores that belong to ``x``."""
        return x.shape

    def check_kernel(self, kernel: Kernel) -> None:
        """Refuse a kernel that lives on another space."""
        if kernel.domain == "discrete":
            raise ValueError(
                f"kernel: expected one on real vectors for the {self} operator; got {kernel}. Use "
                "IMQ.median(x), or a discrete operator."
            )

    def tile(self, kernel: Kernel, dim: int, models: int, numbers: int) -> tuple[int, float]:
        """The rows of a tile that is fast on a processor, and of one whose ``block`` holds at most
        so many ``numbers``.
        """
        return ELEMENTWISE_TILE, np.sqrt(numbers / (models * dim**2))

    def scores(self, name: str, score, x: np.ndarray) -> np.ndarray:
        """``score`` checked against the observations it belongs to."""
        expected = self.score_shape(x)
        discrete = np.issubdtype(x.dtype, np.integer)
        if discrete and is_ragged(score):
            array = pad_scores(name, score, (x >= 0).sum(1), expected)
        else:
            array = to_numpy(name, score).astype(np.float64, copy=False)
        if array.ndim == 1 and expected == (len(array), 1):
            array = array[:, None]
        if array.shape != expected:
            raise ValueError(
                f"{name}: expected shape {expected} for the {self} operator; got {array.shape}. "
                "Give one score for each observation."
            )
        if discrete:  # what stands at a position that does not exist is not read
            array = np.where((x >= 0).reshape(x.shape + (1,) * (array.ndim - x.ndim)), array, 0.0)
        return check_moderate(name, array)

    def __str__(self) -> str:
        return type(self).__name__


def check_directions(name: str, value) -> np.ndarray:
    """Vectors of length 1 up to ``TOLERANCE``, made so to rounding."""
    rows = check_reals(name, value)
    if rows.shape[1] < 2:
        raise ValueError(
            f"{name}: expected unit vectors of at least 2 coordinates; got 1. Directions need a "
            "plane."
        )
    lengths = np.linalg.norm(rows, axis=1)
    off = np.abs(lengths - 1)
    if off.max() > TOLERANCE:
        index = int(off.argmax())
        raise ValueError(
            f"{name}: expected vectors of length 1, up to {TOLERANCE:g}; observation {index} has "
            f"length {lengths[index]:.8g} ({int(np.sum(off > TOLERANCE))} such observations). "
            "Divide each row by its length if only directions matter."
        )
    return rows / lengths[:, None]


@float64
def stein_kernel(operator: SteinOperator, kernel, x, score_x, y=None, score_y=None) -> np.ndarray:
    """The matrix h(x_i, y_j) in double precision, for inspection of small samples.

    Examples
    --------
    >>> import numpy as np, lksd
    >>> x = np.linspace(-1, 1, 5)[:, None]
    >>> h = lksd.stein.stein_kernel(lksd.stein.Langevin(), lksd.kernels.IMQ(), x, -x)
    >>> h.shape
    (5, 5)
    """
    kernel = as_kernel(kernel)
    operator.check_kernel(kernel)
    x = operator.observations(x)
    score_x = operator.scores("score_x", score_x, x)
    if y is None:
        y, score_y = x, score_x
    else:
        y = operator.observations(y)
        score_y = operator.scores("score_y", score_y, y)
    arrays = (
        jnp.asarray(x),
        jnp.asarray(score_x)[None],
        jnp.asarray(y),
        jnp.asarray(score_y)[None],
    )
    return np.asarray(_block(operator, kernel, *arrays)[0])


@program
def _block(operator: SteinOperator, kernel: Kernel, x, scores_x, y, scores_y):
    return operator.block(kernel, x, scores_x, y, scores_y)
