"""Where observations can lie, and coordinates in which that is all of space.

Stein's identity for the Langevin operator has a boundary term wherever a density does not vanish at
the edge of its support. In coordinates u = T(x) without an edge it has none: with J = dx/du and a
score s_x of x, the score of u is s_u = J' s_x + grad_u log |det J|.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from ._validation import check_choice

INFINITE = float("inf")
BOUNDS = {"real": (-INFINITE, INFINITE), "positive": (0.0, INFINITE), "unit": (0.0, 1.0)}
NAMES = (*BOUNDS, "simplex")
EXPECTED = f"{', '.join(map(repr, NAMES))}, a pair of bounds, or one of these for each column"
SUM = 1e-6  # by which the parts of a point on the simplex may fail to add up to one


@dataclass(frozen=True)
class Support:
    """Open intervals, one for all columns or one for each; or simplexes of ``simplex`` consecutive
    columns each.
    """

    lower: tuple[float, ...] = (-INFINITE,)
    upper: tuple[float, ...] = (INFINITE,)
    simplex: int = 0

    @property
    def is_real(self) -> bool:
        return not self.simplex and set(self.lower) == {-INFINITE} and set(self.upper) == {INFINITE}

    def bounds(self, dim: int) -> tuple[Float[np.ndarray, " D"], Float[np.ndarray, " D"]]:
        """The ends of each column's interval."""
        if len(self.lower) not in (1, dim):
            raise ValueError(
                f"support: expected one entry for each of {dim} columns; got {len(self.lower)}. "
                "List them all."
            )
        return np.broadcast_to(self.lower, dim).astype(float), np.broadcast_to(
            self.upper, dim
        ).astype(float)

    def reordered(self, order) -> Support:
        """With the columns in another order."""
        if len(self.lower) == 1:
            return self
        return Support(tuple(self.lower[i] for i in order), tuple(self.upper[i] for i in order))

    def __str__(self) -> str:
        if self.simplex:
            return "the simplex"
        pairs = set(zip(self.lower, self.upper, strict=True))
        if len(pairs) > 1:
            return "intervals of its own in each column"
        (pair,) = pairs
        words = {BOUNDS["real"]: "all real numbers", BOUNDS["positive"]: "positive numbers"}
        if pair in words:
            return words[pair]
        if INFINITE in pair or -INFINITE in pair:
            return (
                f"numbers above {pair[0]:g}"
                if pair[1] == INFINITE
                else f"numbers below {pair[1]:g}"
            )
        return f"numbers between {pair[0]:g} and {pair[1]:g}"


REAL = Support()


def read_support(declared: Any, dim: int) -> Support | None:
    """What a model declares: a name, a pair of bounds, or one of these for each column; None for
    nothing.
    """
    if declared is None or isinstance(declared, Support):
        return declared
    if isinstance(declared, str):
        check_choice("support", declared, NAMES)
        return (
            Support(simplex=dim)
            if declared == "simplex"
            else Support(BOUNDS[declared][:1], BOUNDS[declared][1:])
        )
    if not isinstance(declared, (tuple, list)) or not declared:
        raise TypeError(f"support: expected {EXPECTED}; got {declared!r}. Declare one of these.")
    if len(declared) == 2 and all(
        np.ndim(part) == 0 and not isinstance(part, (str, Support)) for part in declared
    ):
        return interval(*declared)
    columns = [one for one in (read_support(part, 1) for part in declared) if one is not None]
    if len(columns) < len(declared) or any(one.simplex or len(one.lower) > 1 for one in columns):
        raise ValueError(
            f"support: expected {EXPECTED}; got {declared!r}. A simplex takes all columns."
        )
    return Support(tuple(one.lower[0] for one in columns), tuple(one.upper[0] for one in columns))


def interval(lower: Any, upper: Any) -> Support:
    """The numbers between two bounds."""
    try:
        low, high = float(lower), float(upper)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"support: expected two numbers as bounds; got {lower!r} and {upper!r}. Use inf for "
            "none."
        ) from error
    if not low < high:
        raise ValueError(
            f"support: expected a lower bound below the upper one; got {low:g} and {high:g}. Check "
            "them."
        )
    return Support((low,), (high,))


@dataclass(frozen=True, eq=False)
class Coordinates:
    """The map from observations inside a support of D columns to all of space, and back for scores.

    log(x - a), -log(b - x) or logit between two bounds; on the simplex V' log(x), V an orthonormal
    basis of the vectors that add up to zero (isometric log ratios), so that a rotation of u is the
    only choice in it.
    """

    lower: Float[np.ndarray, " D"]
    upper: Float[np.ndarray, " D"]
    simplex: int = 0

    @classmethod
    def of(cls, support: Support, dim: int) -> Coordinates:
        if support.simplex and (dim % support.simplex or support.simplex < 2):
            raise ValueError(
                f"support: expected simplexes of {support.simplex} columns; x has {dim} columns. "
                "Check them."
            )
        return cls(*support.bounds(dim), support.simplex)

    @property
    def basis(self) -> Float[np.ndarray, "K K-1"]:
        from scipy.linalg import helmert

        return helmert(self.simplex).T

    def inside(self, x: Float[np.ndarray, "n D"]) -> Bool[np.ndarray, "n D"]:
        """Which numbers lie inside the support; a point whose parts do not add up to one lies
        outside with all of them.
        """
        if not self.simplex:
            return (x > self.lower) & (x < self.upper)
        parts = self.parts(x)
        whole = np.abs(parts.sum(-1, keepdims=True) - 1) <= SUM
        return ((parts > 0) & whole).reshape(x.shape)

    def forward(self, x: Float[np.ndarray, "n D"]) -> Float[np.ndarray, "n E"]:
        """u = T(x)."""
        if self.simplex:
            return (np.log(self.parts(x)) @ self.basis).reshape(len(x), -1)
        below, above = np.isfinite(self.lower), np.isfinite(self.upper)
        left, right, u = x - self.lower, self.upper - x, np.array(x, dtype=float)
        u[:, below] = np.log(left[:, below])
        u[:, above] = np.where(below[above], u[:, above], 0.0) - np.log(right[:, above])
        return u

    def score(
        self, x: Float[np.ndarray, "n D"], score: Float[np.ndarray, "n ... D"]
    ) -> Float[np.ndarray, "n ... E"]:
        """The scores of u from scores of x; axes between the first and the last are of several
        scores at one x.
        """
        middle = score.ndim - 2
        if self.simplex:
            x, score = (self.parts(each) for each in (with_axes(x, middle), score))
            weighted = x * score
            # J = (diag(x) - x x') V, and log |det J| is the sum of log x, up to a constant
            slopes = weighted - x * weighted.sum(-1, keepdims=True) - self.simplex * x
            return (slopes @ self.basis).reshape(
                *score.shape[:-2], score.shape[-2] * (self.simplex - 1)
            )
        slope, own = self.slopes(x)
        return score * with_axes(slope, middle) + with_axes(own, middle)

    def slopes(
        self, x: Float[np.ndarray, "n D"]
    ) -> tuple[Float[np.ndarray, "n D"], Float[np.ndarray, "n D"]]:
        """dx/du, and the derivative of its logarithm, in each column."""
        below, above = np.isfinite(self.lower), np.isfinite(self.upper)
        left, right = x - self.lower, self.upper - x
        slope, own = np.ones(x.shape), np.zeros(x.shape)
        for where, value, constant in ((below & ~above, left, 1.0), (above & ~below, right, -1.0)):
            slope[:, where], own[:, where] = value[:, where], constant
        both = below & above
        width = self.upper[both] - self.lower[both]
        slope[:, both], own[:, both] = (
            left[:, both] * right[:, both] / width,
            (right[:, both] - left[:, both]) / width,
        )
        return slope, own

    def parts(self, x: Float[np.ndarray, "... D"]) -> Float[np.ndarray, "... B K"]:
        """The columns in blocks, each of which lies on a simplex."""
        return x.reshape(*x.shape[:-1], x.shape[-1] // self.simplex, self.simplex)

    def __str__(self) -> str:
        if self.simplex:
            return "isometric log ratios of the parts"
        pairs = list(zip(self.lower.tolist(), self.upper.tolist(), strict=True))
        if len(set(pairs)) == 1:
            return f"u = {formula(*pairs[0])}"
        changed = [
            f"{formula(*pair)} in column {d}"
            for d, pair in enumerate(pairs)
            if formula(*pair) != "x"
        ]
        more = f" and {len(changed) - 3} more" if len(changed) > 3 else ""
        return f"u = {', '.join(changed[:3])}{more}, x elsewhere"


def formula(lower: float, upper: float) -> str:
    """The map of one column, in words."""
    left = "x" if lower == 0 else f"x + {-lower:g}" if lower < 0 else f"x - {lower:g}"
    if not np.isfinite(lower):
        return "x" if not np.isfinite(upper) else f"-log({upper:g} - x)"
    if not np.isfinite(upper):
        return f"log({left})"
    return f"log(({left}) / ({upper:g} - x))" if lower else f"log(x / ({upper:g} - x))"


def with_axes(values: np.ndarray, middle: int) -> np.ndarray:
    """(n, D) with as many axes of length one in between."""
    return values.reshape(len(values), *(1,) * middle, values.shape[-1])
