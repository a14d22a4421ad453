"""Operators for observations in {0, ..., L-1}^D: cyclic Difference, Barker and Gibbs."""

from __future__ import annotations

from abc import abstractmethod
from functools import partial
from typing import ClassVar, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from .._documents import as_tokens, is_sparse
from .._jax import in_parts, program
from .._validation import check_choice, check_finite, check_range, check_size
from ..kernels import Kernel
from .base import ELEMENTWISE_TILE, Data, SteinOperator
from .moves import Moves, matched_block, matched_slopes, shared_block, shared_slopes

Witness = Literal["per-coordinate", "shared"]
WITNESSES = ("per-coordinate", "shared")
ROWS = 256  # of a program of moves


class DiscreteOperator(SteinOperator):
    """An operator whose moves change one coordinate; positions where x is -1 do not exist.

    A subclass has the fields ``n_values``, ``witness`` and ``average`` (see
    [`Gibbs`][lksd.stein.Gibbs]), and needs ``moves`` and ``targets``. Its scores are then the
    ratios at the targets; ``score_of`` makes others of them.
    """

    data: ClassVar[Data] = "integers"
    linear: ClassVar[bool] = False

    n_values: eqx.AbstractVar[int]
    witness: eqx.AbstractVar[Witness]
    average: eqx.AbstractVar[bool]

    @abstractmethod
    def moves(self, x, scores) -> Moves:
        """The moves from x (n, D) with their weights under S models."""

    @abstractmethod
    def targets(self, x: np.ndarray) -> np.ndarray:
        """The values (n, D, M) whose probability, as a ratio to that of x, makes the scores; -1
        where x has no position.
        """

    def score_of(self, ratios, variances):
        """The scores from estimated ratios p(x with x_d -> target)/p(x) of shape (..., D, M) and
        their variances.
        """
        return ratios

    def slope_of(self, ratios, changes):
        """What small changes of the ratios make of the scores: here by differentiation, for
        ``score_of`` in jax.numpy.
        """
        ratios, changes = (jnp.asarray(part) for part in np.broadcast_arrays(ratios, changes))
        return np.asarray(
            jax.jvp(
                lambda known: self.score_of(known, jnp.zeros_like(known)), (ratios,), (changes,)
            )[1]
        )

    def score_shape(self, x: np.ndarray) -> tuple[int, ...]:
        ratios = np.ones(self.targets(x[:1]).shape)
        return (len(x), *np.shape(self.score_of(ratios, np.zeros_like(ratios)))[1:])

    @property
    def choices(self) -> int:
        """How many values a coordinate can take in one step, its own included."""
        return self.targets(np.zeros((1, 1), np.int64)).shape[-1] + 1

    @property
    def by_moves(self) -> bool:  # type: ignore[override]
        return type(self).block is DiscreteOperator.block

    def tile(self, kernel: Kernel, dim: int, models: int, numbers: int) -> tuple[int, float]:
        # Tables of all choices for each pair.
        return ELEMENTWISE_TILE, np.sqrt(numbers / (2 * dim * self.choices + 2 * self.choices**2))

    def __check_init__(self):
        check_size("n_values", self.n_values)
        check_choice("witness", self.witness, WITNESSES)

    def observations(self, x, mask=None) -> np.ndarray:
        if is_sparse(x) and self.witness != "shared":
            raise ValueError(
                f"x: expected token ids for the {self} operator, whose witnesses belong to "
                "positions; got word counts, "
                'which have none. Use witness="shared".'
            )
        tokens = as_tokens(x, mask)
        check_range("x", tokens, self.n_values)
        return tokens

    def check_kernel(self, kernel: Kernel) -> None:
        if kernel.domain == "real":
            raise ValueError(
                f"kernel: expected one on discrete data for the {self} operator; got {kernel}. Use "
                "Hamming(), OneHot(IMQ(), L), BagOfWords(IMQ(), L), or a function k(x, y) of your "
                "own."
            )
        size = getattr(kernel, "n_values", self.n_values)
        if size != self.n_values:
            raise ValueError(
                f"kernel: expected an alphabet of {self.n_values} values as in the operator; got "
                f"{size}. Give both the same size."
            )

    def block(self, kernel: Kernel, x, scores_x, y, scores_y):
        form = shared_block if self.witness == "shared" else matched_block
        return form(kernel, x, self.existing(x, scores_x), y, self.existing(y, scores_y))

    def slopes(self, kernel: Kernel, x, scores_x, y, scores_y, counted):
        """The derivatives of sum_j h(x_i, y_j) over the ``counted`` pairs (n, m) in the weights of
        x: (S, n, D, M + 1).
        """
        form = shared_slopes if self.witness == "shared" else matched_slopes
        return form(
            kernel, x, self.existing(x, scores_x).values, y, self.existing(y, scores_y), counted
        )

    def existing(self, x, scores) -> Moves:
        """The moves with weight zero at the positions that do not exist, over the number of those
        that do for an average.
        """
        moves, there = self.moves(x, scores), (x >= 0).astype(jnp.float64)
        share = there / jnp.sum(there, -1, keepdims=True) if self.average else there
        return Moves(moves.stay * share, moves.values, moves.weights * share[..., None])

    def __str__(self) -> str:
        ordered = ", ordered" if self.ordered and self.order is not None else ""  # type: ignore[attr-defined]
        averaged = ", averaged" if self.average else ""
        return (
            f"{type(self).__name__}({self.n_values} values, {self.witness} "
            f"witness{ordered}{averaged})"
        )


class CyclicOperator(DiscreteOperator):
    """An operator on the cycle of values: each has a successor and a predecessor.

    Parameters
    ----------
    n_values : int
        L, the size of the alphabet.
    order : (L,) array, optional
        A permutation of the alphabet that says which value follows which; ``None`` is 0, 1, ...,
        L-1.
    witness : "per-coordinate" or "shared"
        One witness function for each coordinate (the paper's), or one for all.
    average : bool
        Divide by the number of coordinates of each observation, so that long documents do not
        dominate short ones.
    """

    ordered: ClassVar[bool] = True

    n_values: int = eqx.field(static=True)
    order: np.ndarray | None
    witness: Witness = eqx.field(static=True)
    average: bool = eqx.field(static=True)
    ranks: np.ndarray | None

    def __init__(
        self, n_values: int, order=None, witness: Witness = "per-coordinate", average: bool = False
    ):
        self.n_values = check_size("n_values", n_values)
        self.witness = witness
        self.average = bool(average)
        self.order = self.ranks = None
        if order is not None:
            self.order = np.asarray(order)
            if self.order.shape != (n_values,) or not np.array_equal(
                np.sort(self.order), np.arange(n_values)
            ):
                raise ValueError(
                    f"order: expected a permutation of 0 .. {n_values - 1}; got an array of shape "
                    f"{self.order.shape} that is none. List every value once, each followed by its "
                    "successor."
                )
            self.ranks = np.argsort(self.order)

    def neighbour(self, x, step: int):
        """The value ``step`` places after x."""
        if self.order is None:
            return (x + step) % self.n_values
        ranks, order = jnp.asarray(self.ranks, x.dtype), jnp.asarray(self.order, x.dtype)
        return order[(ranks[x] + step) % self.n_values]

    def neighbours(self, x: np.ndarray, steps: tuple[int, ...]) -> np.ndarray:
        """The values these steps away, in NumPy; -1 where x has no position."""
        order = np.arange(self.n_values) if self.order is None else self.order
        ranks = order if self.ranks is None else self.ranks
        moved = order[(ranks[x][..., None] + np.array(steps)) % self.n_values]
        return np.where(x[..., None] >= 0, moved, -1).astype(x.dtype)


class Difference(CyclicOperator):
    """s_d f_d + f_d(x) - f_d(x^-d), the paper's Section 2.1.

    Scores have shape (n, D): p(x with x_d -> its successor)/p(x) - 1.
    """

    linear: ClassVar[bool] = True
    needs_all_values: ClassVar[bool] = True

    def moves(self, x, scores) -> Moves:
        # A_d f = (s_d + 1) f(x) - f(x^-d): scores look forward, the witness backward.
        return Moves(
            scores + 1, self.neighbour(x, -1)[..., None], jnp.full((*scores.shape, 1), -1.0)
        )

    def targets(self, x: np.ndarray) -> np.ndarray:
        return self.neighbours(x, (1,))

    def score_of(self, ratios, variances):
        return ratios[..., 0] - 1

    def slope_of(self, ratios, changes):
        return changes[..., 0]


class Barker(CyclicOperator):
    """sum over the two cyclic neighbours of a_nu (f(nu x) - f(x)), Appendix B.2.

    Scores have shape (n, D, 2): p(nu x)/(p(x) + p(nu x)) for the successor and the predecessor.
    With two values the neighbours coincide and count once.
    """

    modified_posterior: ClassVar[bool] = True

    def moves(self, x, scores) -> Moves:
        steps = (1, -1) if self.n_values > 2 else (1,)
        values = jnp.stack([self.neighbour(x, step) for step in steps], -1)
        weights = scores[..., : len(steps)]
        return Moves(-weights.sum(-1), values, weights)

    def targets(self, x: np.ndarray) -> np.ndarray:
        return self.neighbours(x, (1, -1))

    def score_of(self, ratios, variances):
        """r / (1 + r) is concave: an estimate r of variance v makes it too small by v / (1 + r)^3,
        which is added back.
        """
        return ratios / (1 + ratios) + variances / (1 + ratios) ** 3

    def slope_of(self, ratios, changes):
        return changes / (1 + ratios) ** 2


class Gibbs(DiscreteOperator):
    """E[f(x) | all coordinates but d] - f(x), for small alphabets.

    Scores have shape (n, D, L): the probabilities of all values of coordinate d given the others.
    """

    n_values: int = eqx.field(static=True)
    witness: Witness = eqx.field(default="per-coordinate", static=True)
    average: bool = eqx.field(default=False, static=True)

    @property
    def choices(self) -> int:
        return self.n_values

    def moves(self, x, scores) -> Moves:
        # The move to a coordinate's own value stays, so it adds its weight to that of staying.
        own = jnp.maximum(x, 0)[..., None]
        values = (own + jnp.arange(1, self.n_values, dtype=x.dtype)) % self.n_values

        def at(places):
            return jnp.take_along_axis(
                scores, jnp.broadcast_to(places, (*scores.shape[:-1], places.shape[-1])), -1
            )

        return Moves(at(own)[..., 0] - 1, values, at(values))

    def targets(self, x: np.ndarray) -> np.ndarray:
        values = np.arange(self.n_values, dtype=x.dtype)
        return np.where(x[..., None] >= 0, values, -1)

    def score_of(self, ratios, variances):
        return ratios / ratios.sum(-1, keepdims=True)

    def slope_of(self, ratios, changes):
        total = ratios.sum(-1, keepdims=True)
        return changes / total - ratios * changes.sum(-1, keepdims=True) / total**2


def vocabulary_order(probabilities) -> Int[np.ndarray, " L"]:
    """The better of two orders for values with these (mean) probabilities: ascending, or up and
    down again.

    The order decides whose neighbour a value is in the cyclic operators. Any is valid; the variance
    of the scores depends on it: p(x with x_d -> its successor) / p(x) stays near one where
    neighbours have similar probabilities.

    Take the probabilities from the models, never from the test data.

    Examples
    --------
    >>> import lksd
    >>> lksd.stein.vocabulary_order([0.4, 0.1, 0.2, 0.3])
    array([1, 2, 3, 0])
    """
    values = check_finite("probabilities", np.asarray(probabilities, dtype=np.float64))
    if values.ndim != 1 or len(values) < 2 or (values < 0).any():
        raise ValueError(
            "probabilities: expected at least two numbers, none negative; got shape "
            f"{values.shape}. Give one for each value."
        )
    ascending = np.argsort(values, kind="stable")
    # no jump where the cycle closes
    up_and_down = np.concatenate([ascending[0::2], ascending[1::2][::-1]])
    return min((up_and_down, ascending), key=partial(squared_score, values))


def squared_score(probabilities: Float[np.ndarray, " L"], order: Int[np.ndarray, " L"]) -> float:
    """E (p(successor)/p(value) - 1)^2 over values that can occur."""
    own = probabilities[order]
    change = np.roll(own, -1) - own
    return float(np.sum(change[own > 0] ** 2 / own[own > 0]))


# How the row sums depend on the scores -------------------------------------------------------


class Sensitivity(NamedTuple):
    """How sum_{j != i} h(x_i, x_j) depends on document i."""

    scores: Float[np.ndarray, "S n ..."]  # its derivative in the scores of i
    positions: Float[np.ndarray, "S n D"]  # what each position of i adds to it


def chain_rule(operator: DiscreteOperator, x, scores, at_stay, at_moves) -> Sensitivity:
    """From the slopes in the weights of staying and moving to those in the scores, and to the parts
    of the positions.
    """
    given = x, np.swapaxes(scores, 0, 1), np.swapaxes(at_stay, 0, 1), np.swapaxes(at_moves, 0, 1)
    stay, weights, slopes = in_parts(partial(_chain_rule, operator), given, ROWS, ROWS)
    parts = np.swapaxes(stay, 0, 1) * at_stay + np.sum(np.swapaxes(weights, 0, 1) * at_moves, -1)
    return Sensitivity(np.swapaxes(slopes, 0, 1), parts)


@program
def _chain_rule(operator, x, scores, at_stay, at_moves):
    """With the axis of observations first."""

    def weights(scores):
        moves = operator.existing(x, jnp.swapaxes(scores, 0, 1))
        return jnp.swapaxes(moves.stay, 0, 1), jnp.swapaxes(moves.weights, 0, 1)

    moves, back = jax.vjp(weights, scores)
    return *moves, back((at_stay, at_moves))[0]
