"""Exact answers that the library is tested against, written without it wherever that is
possible.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import integrate, optimize, stats
from scipy.special import gammaln

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
    """The term of zeta_1 in n times eq. (A.2), zeta_1 as a V-statistic: all triples and quadruples,
    equal indices included.
    """
    n = len(h)
    chained = np.einsum("ij,ik->", h, h) / n**3
    zeta_1 = chained - (h.sum() / n**2) ** 2
    return n * 4 * (n - 2) / (n * (n - 1)) * zeta_1


# ---------------------------------------------------------------- Gaussian data: exact ties and
# discrepancies


def median_scale(dim: int) -> float:
    """The squared median distance of two points of N(0, I)."""
    return float(2 * stats.chi2(dim).median())


def radial_expectation(function: Callable, dim: int) -> float:
    """E f(|u|^2) for u ~ N(0, I_dim), by quadrature over the chi-square density."""
    chi2 = stats.chi2(dim)
    ends = np.concatenate([[0.0], chi2.ppf([1e-6, 0.01, 0.5, 0.99]), [chi2.ppf(1 - 1e-13)]])
    return sum(
        integrate.quad(lambda t: function(t) * chi2.pdf(t), a, b, limit=200)[0]
        for a, b in itertools.pairwise(ends)
    )


def imq(r, beta: float = 0.5):
    return (1 + r) ** -beta


def ksd_shifted(shift: float, dim: int, scale: float, profile: Callable = imq) -> float:
    """KSD^2 of N(m, I), |m| = shift, to N(0, I): the score difference is constant, so |m|^2 E k."""
    return shift**2 * radial_expectation(lambda t: profile(2 * t / scale), dim)


def ksd_scaled(sigma: float, dim: int, scale: float, profile: Callable = imq) -> float:
    """KSD^2 of N(0, sigma^2 I) to N(0, I): (1 - sigma^-2)^2 E[x'y k], x'y = (|w|^2 - |u|^2)/2 with
    x - y = sqrt(2) u.
    """
    return (1 - sigma**-2) ** 2 * radial_expectation(
        lambda t: (dim - t) / 2 * profile(2 * t / scale), dim
    )


@dataclass(frozen=True)
class Tie:
    """Data from N(0, I), P = N(shift e_1, I), Q = N(0, sigma^2 I), equally far in KSD but not
    mirror images.
    """

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


def coordinate_median_scale() -> float:
    """The squared median of |x_d - y_d| for independent standard normals."""
    return float(2 * stats.norm.ppf(0.75) ** 2)


def default_tie(dim: int, sigma: float = 1.5) -> Tie:
    """The same two models, tied for the default kernel at the scales of the population.

    In units of a column's median distance x = c z, and k = phi(x - y) (1 + a sum_d psi(x_d)
    psi(y_d)) with a Gaussian phi, the product of its values g in each column: expectations are
    products of those in one column, E k = e^D + a D e_1 e^(D-1) with e = E g, e_1 = E[g psi psi].
    """
    z, w = np.polynomial.hermite_e.hermegauss(120)
    w = np.outer(w, w) / w.sum() ** 2
    x = z / np.sqrt(coordinate_median_scale())
    scale = max(2 / dim, 1 / 4) * median_scale(dim) / coordinate_median_scale()
    psi = x / np.sqrt(1 + (x / 3) ** 2)
    weight = w * np.exp(-((x[:, None] - x) ** 2) / (2 * scale))
    products, tilts = np.outer(z, z), np.outer(psi, psi)
    e, e_1, f, f_1 = (float((weight * v).sum()) for v in (1, tilts, products, products * tilts))
    a = 1 / 4
    of_shift = e**dim + a * dim * e_1 * e ** (dim - 1)
    of_scale = dim * (
        f * e ** (dim - 1) + a * (f_1 * e ** (dim - 1) + (dim - 1) * f * e_1 * e ** (dim - 2))
    )
    shift = (1 - 1 / sigma**2) * np.sqrt(of_scale / of_shift)
    return Tie(dim, sigma, float(shift), median_scale(dim))


def per_coordinate_tie(dim: int, sigma: float = 1.5) -> Tie:
    """The same two models, tied for the per-coordinate IMQ kernel at half the median scale.

    With u = x - y ~ N(0, 2 I) and k_d = phi(u) kappa(u_d): KSD^2 = shift^2 E[k_1] for P, and
    (1 - 1/sigma^2)^2 D E[x_1 y_1 k_1] for Q, where E[x_1 y_1 | u] = (2 - u_1^2) / 4.
    """
    u, w = np.polynomial.hermite_e.hermegauss(200)
    u, w = np.sqrt(2) * u, w / w.sum()
    grid = np.linspace(0, stats.chi2(dim - 1).ppf(1 - 1e-13), 20_001)
    # the squared length of the other coordinates
    rest, density = grid[1:] + grid[:-1], np.diff(stats.chi2(dim - 1).cdf(grid))
    base = 1 / np.sqrt(1 + (u[:, None] ** 2 + rest) / (median_scale(dim) / 4))
    kernel = (base @ density) / np.sqrt(1 + u**2 / coordinate_median_scale())
    shift = (1 - 1 / sigma**2) * np.sqrt(dim * (w @ ((2 - u**2) / 4 * kernel)) / (w @ kernel))
    return Tie(dim, sigma, float(shift), median_scale(dim))


def gaussian_mmd_difference(
    cov_p: np.ndarray, cov_q: np.ndarray, cov_r: np.ndarray, scale: float
) -> float:
    """MMD^2(P, R) - MMD^2(Q, R) of centred Gaussians, kernel exp(-|d|^2 / (2 scale^2)) (Appendix
    B.6).
    """
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
    rows = [
        [
            pmf[replaced(tuple(x), d, step(x[d], 1, order))] / pmf[tuple(x)] - 1
            for d in range(len(x))
        ]
        for x in points
    ]
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
        return sum(
            score[i] * (f(replaced(x, d, step(x[d], by, order))) - f(x))
            for i, by in enumerate(steps)
        )
    return sum(score[value] * f(replaced(x, d, value)) for value in range(len(order))) - f(x)


def discrete_stein_kernel(
    name: str, kernel: Callable, x, score_x, y, score_y, order, shared: bool
) -> float:
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


# ------------------------------------------------------------- Dirichlet process mixtures


def set_partitions(count: int):
    """All partitions of 0 .. count-1 as lists of blocks."""
    if count == 0:
        yield []
        return
    for blocks in set_partitions(count - 1):
        yield [*blocks, [count - 1]]
        for k in range(len(blocks)):
            yield [*blocks[:k], [*blocks[k], count - 1], *blocks[k + 1 :]]


def _cluster(model, members: list[int]):
    """Log marginal likelihood of a block by its joint Gaussian law, and the predictive mean and
    variance.
    """
    x, size, dim = model.train[members], len(members), model.train.shape[1]
    mean, tau, sigma = (
        np.broadcast_to(v, dim)
        for v in (model.base_mean, model.base_variance, model.likelihood_variance)
    )
    log_marginal = sum(
        stats.multivariate_normal(np.full(size, mean[d]), sigma[d] * np.eye(size) + tau[d]).logpdf(
            x[:, d]
        )
        for d in range(dim)
    )
    precision = 1 / tau + size / sigma
    return log_marginal, (mean / tau + x.sum(0) / sigma) / precision, 1 / precision + sigma


def partition_posterior(model):
    """Each partition (as the indicator of its blocks) with its posterior probability."""
    found, logs = [], []
    for blocks in set_partitions(len(model.train)):
        logs.append(
            sum(
                np.log(model.concentration) + gammaln(len(b)) + _cluster(model, b)[0]
                for b in blocks
            )
        )
        found.append(tuple(tuple(i in block for i in range(len(model.train))) for block in blocks))
    weights = np.exp(np.array(logs) - max(logs))
    return list(zip(found, weights / weights.sum(), strict=True))


def dirichlet_predictive(model, x: np.ndarray):
    """log p(x | train) and its gradient: every partition's finite mixture."""
    total, gradient = np.zeros(len(x)), np.zeros_like(x)
    dim = x.shape[1]
    base = (
        np.broadcast_to(model.base_mean, dim),
        np.broadcast_to(model.base_variance + model.likelihood_variance, dim),
    )
    for blocks, probability in partition_posterior(model):
        parts = [(model.concentration, *base)]
        for block in blocks:
            members = [i for i, inside in enumerate(block) if inside]
            parts.append((len(members), *_cluster(model, members)[1:]))
        for weight, mean, variance in parts:
            share = probability * weight / (len(model.train) + model.concentration)
            density = share * stats.multivariate_normal(mean, np.diag(variance)).pdf(x)
            total += density
            gradient -= density[:, None] * (x - mean) / variance
    return np.log(total), gradient / total[:, None]


# ------------------------------------------------------------- truncated PPCA in the plane, one
# latent


def _bump(model, squared):
    t = (np.sqrt(squared) - model.flat_radius) / (model.radius - model.flat_radius)
    inside = np.clip(t, 1e-12, 1 - 1e-12)
    between = np.exp(-1 / (1 - inside)) / (np.exp(-1 / inside) + np.exp(-1 / (1 - inside)))
    return np.where(t <= 0, 1.0, np.where(t >= 1, 0.0, between))


def _truncated_tables(model):
    """A grid of z with its prior, a grid of x, and the normaliser of the likelihood at each z."""
    z = np.linspace(-6, 6, 201)
    edge = np.linspace(-model.radius, model.radius, 201)
    points = np.stack(np.meshgrid(edge, edge, indexing="ij"), -1).reshape(-1, 2)
    bump = _bump(model, np.sum(points**2, 1))
    squared = np.sum((points[:, None] - z[None, :, None] * model.weight[:, 0]) ** 2, -1)
    likelihood = bump[:, None] * np.exp(-squared / (2 * model.noise_scale**2))
    return z, stats.norm.pdf(z), edge, likelihood, likelihood.sum(0) * (edge[1] - edge[0]) ** 2


def truncated_score(model, x: np.ndarray, normalise: bool = True) -> np.ndarray:
    """The gradient of log p(x) by quadrature over z; without the normaliser, what a wrong posterior
    would give.
    """
    z, prior, _, _, normaliser = _truncated_tables(model)
    means = z[:, None] * model.weight[:, 0]
    step = 1e-5

    def log_bump(points):
        return np.log(_bump(model, np.sum(points**2, -1)))

    scores = []
    for point in x:
        weights = prior * np.exp(-np.sum((point - means) ** 2, 1) / (2 * model.noise_scale**2))
        weights = weights / normaliser if normalise else weights
        mean = weights @ means / weights.sum()
        edge = [
            (log_bump(point + step * e) - log_bump(point - step * e)) / (2 * step)
            for e in np.eye(2)
        ]
        scores.append(-(point - mean) / model.noise_scale**2 + np.array(edge))
    return np.array(scores)


def _log_integral(log_density: Callable, ball: Ball) -> float:
    """log of the integral of bump(rho) exp(log_density(rho)) over rho, by many panels of
    Gauss-Legendre nodes.
    """
    flat = np.linspace(0, ball.flat_radius, 201)
    edge = ball.radius - (ball.radius - ball.flat_radius) * np.geomspace(1, 1e-5, 401)
    ends = np.unique(np.concatenate([flat, edge]))
    nodes, weights = np.polynomial.legendre.leggauss(20)
    middle, half = (ends[1:] + ends[:-1]) / 2, np.diff(ends) / 2
    rho = middle[:, None] + half[:, None] * nodes
    with np.errstate(divide="ignore", invalid="ignore"):  # log 0, where the density underflows
        logs = np.nan_to_num(log_density(rho), nan=-np.inf) + np.log(_bump(ball, rho**2))
    return float(np.log(np.sum(half[:, None] * weights * np.exp(logs - logs.max()))) + logs.max())


class Ball(NamedTuple):
    flat_radius: float
    radius: float


def log_ball_mass(length: float, dim: int, flat_radius: float, radius: float) -> float:
    """log E bump(|mean + noise|) with |mean| = length and unit noise, by the law of the squared
    length.
    """
    law = stats.ncx2(dim, length**2) if length > 1e-5 else stats.chi2(dim)
    return _log_integral(
        lambda rho: law.logpdf(rho**2) + np.log(2 * rho), Ball(flat_radius, radius)
    )


def log_ball_mass_in_space(length: float, flat_radius: float, radius: float) -> float:
    """The same in three dimensions, where the density is rho / length (phi(rho - length) - phi(rho
    + length)).
    """

    def log_density(rho):
        difference = -((rho - length) ** 2) / 2 + np.log1p(-np.exp(-2 * rho * length))
        return difference - np.log(2 * np.pi) / 2 + np.log(rho / length)

    return _log_integral(log_density, Ball(flat_radius, radius))


def truncated_first_coordinate(model):
    """The distribution function of x_1."""
    z, prior, edge, likelihood, normaliser = _truncated_tables(model)
    density = (likelihood / normaliser) @ prior * (z[1] - z[0])
    marginal = density.reshape(len(edge), len(edge)).sum(1) * (edge[1] - edge[0])
    return edge, np.cumsum(marginal) * (edge[1] - edge[0])


# ------------------------------------------------------------- latent Dirichlet allocation, tiny


def lda_mass(concentration, topics, document) -> float:
    """p(document) by summing over the topics of all its words."""
    total = 0.0
    for z in itertools.product(range(len(topics)), repeat=len(document)):
        counts = np.bincount(z, minlength=len(topics))
        log_prior = gammaln(np.sum(concentration)) - gammaln(np.sum(concentration) + len(document))
        log_prior += np.sum(gammaln(concentration + counts) - gammaln(concentration))
        total += np.exp(log_prior) * np.prod(
            [topics[k][word] for k, word in zip(z, document, strict=True)]
        )
    return float(total)


def pairs_met(tiling) -> np.ndarray:
    """How often each two observations are in a tile together, both ways."""
    count = np.zeros((tiling.n, tiling.n), int)
    for i, j in (tile for part in tiling.parts() for tile in part):
        row, column = slice(*tiling.edges(i)), slice(*tiling.edges(j))
        count[row, column] += 1
        if i != j:
            count[column, row] += 1
    np.fill_diagonal(count, 0)
    return count
