"""Exact answers that the library is tested against, written without it wherever that is possible."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import integrate, optimize, stats

# ---------------------------------------------------------------- U-statistics by brute force


def off_diagonal(h: np.ndarray) -> np.ndarray:
    return h - np.diag(np.diag(h))


def u_statistic(h: np.ndarray) -> float:
    n = len(h)
    return sum(h[i, j] for i in range(n) for j in range(n) if i != j) / (n * (n - 1))


def jackknife(h: np.ndarray) -> float:
    """(n-1) sum (U_-i - U)^2 with each row really left out."""
    n = len(h)
    u = u_statistic(h)
    left_out = [u_statistic(np.delete(np.delete(h, i, 0), i, 1)) for i in range(n)]
    return (n - 1) * sum((v - u) ** 2 for v in left_out)


def zetas(h: np.ndarray) -> tuple[float, float]:
    """Hoeffding's components by U-statistics, over all tuples of distinct indices."""
    n = len(h)
    chained = [h[i, j] * h[i, k] for i, j, k in itertools.permutations(range(n), 3)]
    apart = [h[i, j] * h[k, m] for i, j, k, m in itertools.permutations(range(n), 4)]
    square = [h[i, j] ** 2 for i, j in itertools.permutations(range(n), 2)]
    return np.mean(chained) - np.mean(apart), np.mean(square) - np.mean(apart)


def ustat_variance(h: np.ndarray) -> float:
    n = len(h)
    zeta_1, zeta_2 = zetas(h)
    return n * (4 * (n - 2) / (n * (n - 1)) * zeta_1 + 2 / (n * (n - 1)) * zeta_2)


def vstat_variance(h: np.ndarray) -> float:
    """4 zeta_1 as a V-statistic: all triples and quadruples, equal indices included."""
    n = len(h)
    chained = np.einsum("ij,ik->", h, h) / n**3
    return 4 * (chained - (h.sum() / n**2) ** 2)


# ---------------------------------------------------------------- Gaussian data: exact ties and discrepancies


def median_scale(dim: int) -> float:
    """The squared median distance of two points of N(0, I)."""
    return float(2 * stats.chi2(dim).median())


def radial_expectation(function: Callable, dim: int) -> float:
    """E f(|u|^2) for u ~ N(0, I_dim), by quadrature over the chi-square density."""
    chi2 = stats.chi2(dim)
    ends = np.concatenate([[0.0], chi2.ppf([1e-6, 0.01, 0.5, 0.99]), [chi2.ppf(1 - 1e-13)]])
    return sum(integrate.quad(lambda t: function(t) * chi2.pdf(t), a, b, limit=200)[0] for a, b in itertools.pairwise(ends))


def imq(r, beta: float = 0.5):
    return (1 + r) ** -beta


def ksd_shifted(shift: float, dim: int, scale: float, profile: Callable = imq) -> float:
    """KSD^2 of N(m, I), |m| = shift, to N(0, I): the score difference is constant, so |m|^2 E k."""
    return shift**2 * radial_expectation(lambda t: profile(2 * t / scale), dim)


def ksd_scaled(sigma: float, dim: int, scale: float, profile: Callable = imq) -> float:
    """KSD^2 of N(0, sigma^2 I) to N(0, I): (1 - sigma^-2)^2 E[x'y k], x'y = (|w|^2 - |u|^2)/2 with x - y = sqrt(2) u."""
    return (1 - sigma**-2) ** 2 * radial_expectation(lambda t: (dim - t) / 2 * profile(2 * t / scale), dim)


@dataclass(frozen=True)
class Tie:
    """Data from N(0, I), P = N(shift e_1, I), Q = N(0, sigma^2 I), equally far in KSD but not mirror images."""

    dim: int
    sigma: float
    shift: float
    scale: float

    def scores(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return -(x - self.shift * np.eye(self.dim)[0]), -x / self.sigma**2


def asymmetric_tie(dim: int, sigma: float = 1.5) -> Tie:
    scale = median_scale(dim)
    target = ksd_scaled(sigma, dim, scale)
    shift = optimize.brentq(lambda m: ksd_shifted(m, dim, scale) - target, 1e-6, 10.0, xtol=1e-14)
    return Tie(dim, sigma, shift, scale)


def gaussian_mmd_difference(cov_p: np.ndarray, cov_q: np.ndarray, cov_r: np.ndarray, scale: float) -> float:
    """MMD^2(P, R) - MMD^2(Q, R) of centred Gaussians, kernel exp(-|d|^2 / (2 scale^2)) (Appendix B.6)."""
    dim = len(cov_p)

    def term(covariance):
        return scale**dim / np.sqrt(np.linalg.det(covariance + scale**2 * np.eye(dim)))

    return term(2 * cov_p) - term(2 * cov_q) - 2 * (term(cov_p + cov_r) - term(cov_q + cov_r))


# ---------------------------------------------------------------- small lattices


def lattice(n_values: int, dim: int) -> np.ndarray:
    """All points of {0, ..., L-1}^D."""
    return np.array(list(itertools.product(range(n_values), repeat=dim)))


def random_pmf(n_values: int, dim: int, seed: int) -> dict[tuple[int, ...], float]:
    """A strictly positive distribution on the lattice with no structure."""
    points = lattice(n_values, dim)
    mass = np.random.default_rng(seed).gamma(1.0, size=len(points)) + 0.05
    return {tuple(point): float(m) for point, m in zip(points, mass / mass.sum(), strict=True)}


def replaced(x, d: int, value: int) -> tuple[int, ...]:
    return (*x[:d], int(value), *x[d + 1 :])


def step(value: int, by: int, order: np.ndarray) -> int:
    """The value ``by`` places after ``value`` in the cyclic ``order``."""
    place = int(np.flatnonzero(order == value)[0])
    return int(order[(place + by) % len(order)])


def difference_scores(pmf: dict, points: np.ndarray, order: np.ndarray) -> np.ndarray:
    rows = [[pmf[replaced(tuple(x), d, step(x[d], 1, order))] / pmf[tuple(x)] - 1 for d in range(len(x))] for x in points]
    return np.array(rows)


def barker_scores(pmf: dict, points: np.ndarray, order: np.ndarray) -> np.ndarray:
    def weight(x, d, by):
        other = pmf[replaced(tuple(x), d, step(x[d], by, order))]
        return other / (other + pmf[tuple(x)])

    return np.array([[[weight(x, d, 1), weight(x, d, -1)] for d in range(len(x))] for x in points])


def gibbs_scores(pmf: dict, points: np.ndarray, n_values: int) -> np.ndarray:
    def conditional(x, d):
        mass = np.array([pmf[replaced(tuple(x), d, value)] for value in range(n_values)])
        return mass / mass.sum()

    return np.array([[conditional(x, d) for d in range(len(x))] for x in points])


def apply_operator(name: str, f: Callable, x: tuple, d: int, score, order: np.ndarray) -> float:
    """(A_d f)(x) written out from the definitions of Section 2.1 and Appendix B.2."""
    if name == "difference":
        return score * f(x) + f(x) - f(replaced(x, d, step(x[d], -1, order)))
    if name == "barker":
        steps = (1, -1) if len(order) > 2 else (1,)
        return sum(score[i] * (f(replaced(x, d, step(x[d], by, order))) - f(x)) for i, by in enumerate(steps))
    return sum(score[value] * f(replaced(x, d, value)) for value in range(len(order))) - f(x)


def discrete_stein_kernel(name: str, kernel: Callable, x, score_x, y, score_y, order, shared: bool) -> float:
    """h(x, y) by applying the operator to both arguments, coordinate by coordinate."""
    x, y = tuple(int(v) for v in x), tuple(int(v) for v in y)
    dims_x = [d for d in range(len(x)) if x[d] >= 0]
    dims_y = [d for d in range(len(y)) if y[d] >= 0]
    total = 0.0
    for d, e in itertools.product(dims_x, dims_y):
        if not shared and d != e:
            continue

        def inner(u, e=e):
            return apply_operator(name, lambda v: kernel(u, v), y, e, score_y[e], order)

        total += apply_operator(name, inner, x, d, score_x[d], order)
    return total
