"""The distribution of T = sqrt(n) (U - E U) / sqrt(v) against which a statistic is judged.

The normal limit is skewed at order n^-1/2, and where the two models tie without being mirror images
the paper's threshold rejects too often; the bootstrap and the Edgeworth expansion correct it. Near
degeneracy it is the other way round: the normal threshold keeps the level and the resamples do not.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from scipy.special import ndtr, ndtri

from .ustatistic import Pairs, jackknife_variance, u_statistic

REPLICATES = 1_999
MANY_MODELS, FEWER_REPLICATES = 10, 999  # of models, the resamples of whose Gram matrices take time
BOOTSTRAP_LIMIT = 1_000  # observations up to which calibration="auto" bootstraps
SMALLEST_ALPHA = 0.0005  # below which a bootstrap would need more than 20,000 replicates
EDGEWORTH_ROWS = 2_000  # observations from which the expansion's second moment is taken

NULLS: dict[str, type[NullDistribution]] = {}  # by their names, as files know them


def is_own(kind: type) -> bool:
    return kind.__module__.startswith("lksd.")


@dataclass(frozen=True, eq=False)
class Evidence:
    """What a calibration sees of a difference of two models.

    Attributes
    ----------
    n : int
        The number of observations.
    statistic, difference, standard_error : float
        T = difference / standard_error, with the difference U(P) - U(Q).
    influences : (n,) array
        The influence of each observation on the difference, centred: U - E U is about their mean
        over a new sample, and the jackknife's standard error is their standard deviation
        (``ddof=1``) over the root of n.
    """

    n: int
    statistic: float
    difference: float
    standard_error: float
    influences: Float[np.ndarray, " n"]


class NullDistribution(ABC):
    """The distribution of T when the true difference is zero.

    A subclass is known by its name as soon as it is defined, so that results which hold it can be
    read from files. It should be a frozen dataclass whose fields are numbers, strings, arrays, or
    tuples of these.
    """

    def __init_subclass__(cls, **options) -> None:
        super().__init_subclass__(**options)
        known = NULLS.get(cls.__name__)
        if known is not None and is_own(known) and not is_own(cls):
            raise TypeError(
                f"{cls.__name__}: expected a name that no null distribution of lksd has. Rename "
                "the class."
            )
        NULLS[cls.__name__] = cls

    @abstractmethod
    def upper(self, t: float) -> float:
        """P(T >= t)."""

    @abstractmethod
    def lower(self, t: float) -> float:
        """P(T <= t)."""

    @abstractmethod
    def upper_quantile(self, probability: float) -> float:
        """The t that T exceeds with this probability."""

    @abstractmethod
    def lower_quantile(self, probability: float) -> float:
        """The t that T stays below with this probability."""

    @abstractmethod
    def __str__(self) -> str: ...

    @property
    def details(self) -> str:
        """Figures that its text leaves out."""
        return ""


class Calibration(ABC):
    """How the null distribution of a statistic is found: ``calibration=`` takes an object of a
    subclass.
    """

    @abstractmethod
    def null(self, sample: Evidence) -> NullDistribution:
        """The distribution of T under a true difference of zero."""


@dataclass(frozen=True)
class Edgeworth(NullDistribution):
    """T + a T^2 + a^2 T^3 / 3 + c is standard normal to order 1/n (Helmers 1991; monotone after
    Hall 1992).

    With a = c = 0 it is the paper's normal approximation. ``transformed`` and ``quantile`` also
    take one a and c for each of several statistics.
    """

    a: Any = 0.0
    c: Any = 0.0

    def transformed(self, t):
        return t + self.a * t**2 + self.a**2 * t**3 / 3 + self.c

    def quantile(self, z):
        """The inverse of ``transformed``, which is ((1 + a t)^3 - 1) / (3 a) + c."""
        a = np.where(np.abs(self.a) < 1e-12, 1e-12, self.a)  # the limit, to rounding
        return np.where(a == 1e-12, z - self.c, (np.cbrt(1 + 3 * a * (z - self.c)) - 1) / a)

    def upper(self, t: float) -> float:
        return float(ndtr(-self.transformed(t)))

    def lower(self, t: float) -> float:
        return float(ndtr(self.transformed(t)))

    def upper_quantile(self, probability: float) -> float:
        return float(self.quantile(-ndtri(probability)))

    def lower_quantile(self, probability: float) -> float:
        return float(self.quantile(ndtri(probability)))

    def __str__(self) -> str:
        return "normal" if self.a == self.c == 0 else "Edgeworth"

    @property
    def details(self) -> str:
        return "" if self.a == self.c == 0 else f"Edgeworth with a = {self.a:.3g}, c = {self.c:.3g}"


@dataclass(frozen=True)
class Bootstrap(NullDistribution):
    """Replicates of T; the statistic itself counts as one, so that no p-value is zero."""

    replicates: tuple[float, ...]  # sorted

    @classmethod
    def of(cls, replicates) -> Bootstrap:
        values = np.asarray(replicates, dtype=np.float64)
        # resamples that speak for no rejection: beyond any t, on either side
        spreadless = int(np.isnan(values).sum())
        ends = np.repeat([-np.inf, np.inf], spreadless)
        return cls(tuple(np.sort(np.concatenate([values[~np.isnan(values)], ends])).tolist()))

    def upper(self, t: float) -> float:
        count = len(self.replicates)
        return (count - int(np.searchsorted(self.replicates, t, "left")) + 1) / (count + 1)

    def lower(self, t: float) -> float:
        return (int(np.searchsorted(self.replicates, t, "right")) + 1) / (len(self.replicates) + 1)

    def upper_quantile(self, probability: float) -> float:
        rank = self.rank(probability)
        return self.replicates[-rank] if rank else np.inf

    def lower_quantile(self, probability: float) -> float:
        rank = self.rank(probability)
        return self.replicates[rank - 1] if rank else -np.inf

    def rank(self, probability: float) -> int:
        """How many replicates may lie beyond a quantile; rounding guards 0.05 * 2000 =
        100.00000000000001.
        """
        return int(np.floor(round(probability * (len(self.replicates) + 1), 9)))

    def __str__(self) -> str:
        return f"bootstrap with {len(self.replicates):,} resamples"


@dataclass(frozen=True)
class Conservative(NullDistribution):
    """Corrected distributions, none of which is trusted to be narrower than the others or than the
    normal limit.

    Where the U-statistic is nearly degenerate (two models that differ by noise in their scores) and
    U is large by chance, the bootstrap inherits that error and understates the p-value; the normal
    threshold is safe there. Where T is strongly skewed the resamples correct too little of it. So a
    correction may raise a p-value above the normal one, not lower it.
    """

    corrected: tuple[NullDistribution, ...]

    @property
    def every(self) -> tuple[NullDistribution, ...]:
        return (*self.corrected, Edgeworth())

    def upper(self, t: float) -> float:
        return max(one.upper(t) for one in self.every)

    def lower(self, t: float) -> float:
        return max(one.lower(t) for one in self.every)

    def upper_quantile(self, probability: float) -> float:
        return max(one.upper_quantile(probability) for one in self.every)

    def lower_quantile(self, probability: float) -> float:
        return min(one.lower_quantile(probability) for one in self.every)

    def __str__(self) -> str:
        return largest_of([str(one) for one in self.every])

    @property
    def details(self) -> str:
        return ", ".join(filter(None, (one.details for one in self.corrected)))


@dataclass(frozen=True)
class Steadied(NullDistribution):
    """Of the regularised T, where U's own T = (regularised T - offset) / ratio must be as far out
    by its own distribution.
    """

    null: NullDistribution
    ratio: float  # of U's standard error to that of the regularised form
    offset: float  # of the regularised form from U, in the former's standard errors

    def upper(self, t: float) -> float:
        return max(float(ndtr(-t)), self.null.upper((t - self.offset) / self.ratio))

    def lower(self, t: float) -> float:
        return max(float(ndtr(t)), self.null.lower((t - self.offset) / self.ratio))

    def upper_quantile(self, probability: float) -> float:
        return max(
            float(-ndtri(probability)),
            self.ratio * self.null.upper_quantile(probability) + self.offset,
        )

    def lower_quantile(self, probability: float) -> float:
        return min(
            float(ndtri(probability)),
            self.ratio * self.null.lower_quantile(probability) + self.offset,
        )

    def __str__(self) -> str:
        return f"the larger of two (normal; for U itself {self.null})"

    @property
    def details(self) -> str:
        return self.null.details


def largest_of(names: Sequence[str]) -> str:
    """The words for the largest p-value of two or three distributions."""
    count = "larger of two" if len(names) == 2 else "largest of three"
    return f"the {count} ({', '.join(names)})"


def replicate_count(alpha: float, models: int = 2) -> int:
    """Enough replicates for the tail beyond alpha to hold at least ten of them."""
    if alpha < SMALLEST_ALPHA:
        raise ValueError(
            f"alpha: expected at least {SMALLEST_ALPHA} with a bootstrap, whose p-values are "
            f"multiples of 1/(B + 1); got {alpha}. Use calibration='edgeworth' or 'normal'."
        )
    return max(
        REPLICATES if models <= MANY_MODELS else FEWER_REPLICATES, int(np.ceil(10 / alpha)) - 1
    )


def expansions(
    rows: Float[np.ndarray, "A n"],
    subset: Int[np.ndarray, " m"],
    quadratic: Float[np.ndarray, " A"],
) -> Edgeworth:
    """The expansion of each difference from its row sums and g'Hg without its diagonal, g the
    projections on ``subset``.

    A = E g^3 / s^3 and B = E g_1 q(1,2) g_2 / s^3 with q the degenerate part of H.
    """
    n = rows.shape[1]
    u = u_statistic(rows)
    g = projections(rows)
    s = np.sqrt(jackknife_variance(rows)) / 2
    part = g[:, subset]
    m = len(subset)
    pairs = part.sum(1) ** 2 - np.sum(part**2, 1)  # sum_{i != j} g_i g_j
    skewed = np.sum(part**2, 1) * part.sum(1) - np.sum(part**3, 1)  # sum_{i != j} g_i^2 g_j
    # a difference of identical models, which is not judged
    with np.errstate(divide="ignore", invalid="ignore"):
        curvature = (quadratic - u * pairs - 2 * skewed) / (m * (m - 1)) / s**3
        skewness = np.mean(g * g * g, 1) / s**3
    root = 6 * np.sqrt(n)
    return Edgeworth(a=(2 * skewness + 3 * curvature) / root, c=(skewness + 3 * curvature) / root)


def projections(rows: Float[np.ndarray, "A n"]) -> Float[np.ndarray, "A n"]:
    """g_i = r_i / (n - 1) - U."""
    return rows / (rows.shape[1] - 1) - u_statistic(rows)[:, None]


def quadratic_forms(
    products: Float[np.ndarray, "C m C"], g: Float[np.ndarray, "C m"], pairs: Pairs
) -> Float[np.ndarray, " A"]:
    """g'Hg of every difference, from the products H g of all models' H with all models' g."""
    forms = np.zeros(3 * (len(g) + 1,))  # g_k' H_c g_l
    forms[:-1, :-1, :-1] = np.einsum("kn,cnl->ckl", g, products)
    i, j = pairs
    of_models = forms[:, i, i] - 2 * forms[:, i, j] + forms[:, j, j]  # g'H_c g, (C + 1, A)
    every = np.arange(len(i))
    return of_models[i, every] - of_models[j, every]
