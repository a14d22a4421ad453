"""What a Stein operator is."""

from __future__ import annotations

from abc import abstractmethod

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from .._documents import is_ragged, pad_scores
from .._jax import float64, program
from .._validation import check_finite, check_moderate, to_numpy
from ..kernels import Kernel, as_kernel


class SteinOperator(eqx.Module):
    """Turns a kernel and scores into the Stein kernel h, and says what a score is."""

    @abstractmethod
    def observations(self, x, mask=None) -> np.ndarray:
        """``x`` checked and in the form that ``block`` takes."""

    @abstractmethod
    def score_shape(self, x: np.ndarray) -> tuple[int, ...]:
        """The shape of the scores that belong to ``x``."""

    @abstractmethod
    def check_kernel(self, kernel: Kernel) -> None:
        """Refuse a kernel that lives on another space."""

    @abstractmethod
    def block(self, kernel: Kernel, x, scores_x, y, scores_y):
        """h(x_i, y_j) for a stack of S models: scores (S, n, ...) and (S, m, ...) give (S, n, m)."""

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
        return check_moderate(name, check_finite(name, array))

    def __str__(self) -> str:
        return type(self).__name__


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
    arrays = (jnp.asarray(x), jnp.asarray(score_x)[None], jnp.asarray(y), jnp.asarray(score_y)[None])
    return np.asarray(_block(operator, kernel, *arrays)[0])


@program
def _block(operator: SteinOperator, kernel: Kernel, x, scores_x, y, scores_y):
    return operator.block(kernel, x, scores_x, y, scores_y)
