"""The Langevin operator <s, f> + <grad, f> for continuous observations (Section 2.1): in space, and
on the unit sphere.
"""

from __future__ import annotations

from functools import singledispatch
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..kernels import Kernel, PerCoordinate, Radial, Standardised, Sum, Tilted, Weighted
from ..kernels.gram import centre, product_plus, squared_distances
from ..kernels.radial import precondition
from .base import ELEMENTWISE_TILE, Data, SteinOperator

UNROLLED_MODELS = 4
# rows of a tile of matrix products; its square in float64 stays near a processor's cache
TILE = 512
MANY_MODELS_TILE = 64  # with the tiles of all models at once


class Langevin(SteinOperator):
    """Scores are gradients of the log density, of shape (n, D)."""

    scalar: ClassVar[bool] = False

    def block(self, kernel: Kernel, x, scores_x, y, scores_y):
        return langevin_block(kernel, x, scores_x, y, scores_y)

    def tile(self, kernel: Kernel, dim: int, models: int, numbers: int) -> tuple[int, float]:
        if by_products(kernel):
            return TILE if models <= UNROLLED_MODELS else MANY_MODELS_TILE, np.sqrt(
                numbers / (3 + 3 * models)
            )
        return ELEMENTWISE_TILE, numbers / dim**2  # second derivatives for a row of pairs


def by_products(kernel: Kernel) -> bool:
    """Whether the kernel's block is matrix products and element-wise work on n x m arrays."""
    if isinstance(kernel, (Standardised, Tilted, Weighted)):
        return by_products(kernel.base)
    if isinstance(kernel, Sum):
        return by_products(kernel.a) and by_products(kernel.b)
    return isinstance(kernel, (Radial, PerCoordinate))


@singledispatch
def langevin_block(
    kernel: Kernel,
    x: Float[Array, "n D"],
    scores_x: Float[Array, "S n D"],
    y: Float[Array, "m D"],
    scores_y: Float[Array, "S m D"],
) -> Float[Array, "S n m"]:
    """Any kernel, by differentiating its pointwise form one coordinate at a time."""
    coordinates = jnp.arange(x.shape[-1])

    def pair(a, s, b, t):
        def restricted(u, v, d):
            return jnp.broadcast_to(kernel(a.at[d].set(u), b.at[d].set(v)), a.shape)[d].astype(
                a.dtype
            )

        def along_coordinates(function):
            return jax.vmap(function)(a, b, coordinates)

        k = along_coordinates(restricted)
        k_a = along_coordinates(jax.grad(restricted, 0))
        k_b = along_coordinates(jax.grad(restricted, 1))
        k_ab = along_coordinates(jax.grad(jax.grad(restricted, 0), 1))
        return jnp.sum(s * t * k + s * k_b + t * k_a + k_ab, axis=-1)

    return over_pairs(pair, x, scores_x, y, scores_y)


@langevin_block.register
def _(
    kernel: Radial,
    x: Float[Array, "n D"],
    scores_x: Float[Array, "S n D"],
    y: Float[Array, "m D"],
    scores_y: Float[Array, "S m D"],
) -> Float[Array, "S n m"]:
    # h = phi s't - 2 phi' (s - t)'(u - v) - 2 phi' tr(L^-1) - 4 phi'' |u - v|^2,   u = L^-1 x, v =
    # L^-1 y, r = (x - y)'(u - v). By polarisation the mixed products cost one: (s - t)'(u - v) =
    # s't - (s + u)'(t + v) - |u - v|^2 / 2 + (s + u / 2)'u + (t + v / 2)'v.
    x, y = centre(x, y)
    u, v = precondition(kernel.preconditioner, x), precondition(kernel.preconditioner, y)
    r = squared_distances(x, u, y, v)
    curvature = (
        r / kernel.preconditioner
        if kernel.preconditioner.ndim == 0
        else squared_distances(u, u, v, v)
    )
    phi, first, second = kernel.profile(r)
    score_free = (
        -2 * first * jnp.sum(inverse_diagonal(kernel.preconditioner, x.shape[-1]))
        + (first - 4 * second) * curvature
    )

    def model(scores):
        s, t = scores
        own_x, own_y = jnp.sum((s + u / 2) * u, -1), jnp.sum((t + v / 2) * v, -1)
        return (
            (phi - 2 * first) * (s @ t.T)
            - 2 * first * product_plus(-(s + u), t + v, own_x, own_y)
            + score_free
        )

    return over_models(model, scores_x, scores_y)


@langevin_block.register
def _(
    kernel: PerCoordinate,
    x: Float[Array, "n D"],
    scores_x: Float[Array, "S n D"],
    y: Float[Array, "m D"],
    scores_y: Float[Array, "S m D"],
) -> Float[Array, "S n m"]:
    # k_d = phi(r) kappa(rho_d), rho_d = (x_d - y_d)^2 / l_d: derivatives in x_d and y_d of a
    # product of two radial kernels.
    base, own = kernel.base, kernel.own
    x, y = centre(x, y)
    dim = x.shape[-1]
    inverse_x, inverse_y = (
        precondition(base.preconditioner, x),
        precondition(base.preconditioner, y),
    )
    phi, phi_1, phi_2 = base.profile(squared_distances(x, inverse_x, y, inverse_y))
    diagonal = inverse_diagonal(base.preconditioner, dim)
    scales = jnp.broadcast_to(own.preconditioner, (dim,))

    def add_coordinate(total, columns):
        x_d, y_d, inverse_x_d, inverse_y_d, diagonal_d, scale, s, t = columns
        delta = x_d[:, None] - y_d
        slope = inverse_x_d[:, None] - inverse_y_d  # (L^-1 d)_d
        kappa, kappa_1, kappa_2 = own.profile(delta**2 / scale)
        phi_x, phi_xy = 2 * phi_1 * slope, -2 * phi_1 * diagonal_d - 4 * phi_2 * slope**2
        kappa_x = 2 * kappa_1 * delta / scale
        kappa_xy = -2 * kappa_1 / scale - 4 * kappa_2 * (delta / scale) ** 2
        k = phi * kappa
        k_x = phi_x * kappa + phi * kappa_x  # and k_y = -k_x
        k_xy = phi_xy * kappa - 2 * phi_x * kappa_x + phi * kappa_xy
        s, t = s[:, :, None], t[:, None, :]
        return total + s * t * k + (t - s) * k_x + k_xy, None

    columns = (
        x.T,
        y.T,
        inverse_x.T,
        inverse_y.T,
        diagonal,
        scales,
        jnp.moveaxis(scores_x, -1, 0),
        jnp.moveaxis(scores_y, -1, 0),
    )
    start = jnp.zeros((len(scores_x), len(x), len(y)), x.dtype)
    return jax.lax.scan(add_coordinate, start, columns)[0]


@langevin_block.register
def _(
    kernel: Weighted,
    x: Float[Array, "n D"],
    scores_x: Float[Array, "S n D"],
    y: Float[Array, "m D"],
    scores_y: Float[Array, "S m D"],
) -> Float[Array, "S n m"]:
    # grad(w k) = w (grad k + k grad log w): the base kernel with every score raised by grad log w,
    # times w(x) w(y).
    def value_and_log_gradient(z):
        value, gradient = jax.vmap(
            jax.value_and_grad(lambda point: jnp.asarray(kernel.weight(point), z.dtype))
        )(z)
        counts = value != 0
        return value, jnp.where(
            counts[:, None], gradient / jnp.where(counts, value, 1.0)[:, None], 0.0
        )

    w_x, slope_x = value_and_log_gradient(x)
    w_y, slope_y = value_and_log_gradient(y)
    return (
        w_x[:, None]
        * w_y
        * langevin_block(kernel.base, x, scores_x + slope_x, y, scores_y + slope_y)
    )


@langevin_block.register
def _(
    kernel: Tilted,
    x: Float[Array, "n D"],
    scores_x: Float[Array, "S n D"],
    y: Float[Array, "m D"],
    scores_y: Float[Array, "S m D"],
) -> Float[Array, "S n m"]:
    # k = phi p with p = 1 + a u'v, u = psi(x), v = psi(y), and d = L^-1 (x - y). With u_1, v_1 the
    # derivatives, and element-wise products in brackets, h = p h_base + a phi [s'(u v_1)
    # + t'(u_1 v) + u_1'v_1] + 2 a phi' d'(u v_1 - u_1 v).
    (u, u_1), (v, v_1) = kernel.psi(x), kernel.psi(y)
    x, y = x - kernel.centre, y - kernel.centre
    dual_x, dual_y = (precondition(kernel.base.preconditioner, z) for z in (x, y))
    phi, first, _ = kernel.base.profile(squared_distances(x, dual_x, y, dual_y))
    lean = (dual_x * u) @ v_1.T - u @ (dual_y * v_1).T - (dual_x * u_1) @ v.T
    lean = lean + u_1 @ (dual_y * v).T
    tilt = 1 + kernel.slope * (u @ v.T)
    score_free = kernel.slope * (phi * (u_1 @ v_1.T) + 2 * first * lean)

    def model(scores):
        s, t = scores
        return kernel.slope * phi * ((s * u) @ v_1.T + u_1 @ (t * v).T) + score_free

    base = langevin_block(kernel.base, x, scores_x, y, scores_y)
    return tilt * base + over_models(model, scores_x, scores_y)


@langevin_block.register
def _(
    kernel: Standardised,
    x: Float[Array, "n D"],
    scores_x: Float[Array, "S n D"],
    y: Float[Array, "m D"],
    scores_y: Float[Array, "S m D"],
) -> Float[Array, "S n m"]:
    units = kernel.scales
    return langevin_block(kernel.base, x / units, scores_x * units, y / units, scores_y * units)


@langevin_block.register
def _(
    kernel: Sum,
    x: Float[Array, "n D"],
    scores_x: Float[Array, "S n D"],
    y: Float[Array, "m D"],
    scores_y: Float[Array, "S m D"],
) -> Float[Array, "S n m"]:
    return langevin_block(kernel.a, x, scores_x, y, scores_y) + langevin_block(
        kernel.b, x, scores_x, y, scores_y
    )


def inverse_diagonal(preconditioner, dim: int):
    """The diagonal of Lambda^-1."""
    if preconditioner.ndim < 2:
        return jnp.broadcast_to(1 / preconditioner, (dim,))
    return jnp.diag(jnp.linalg.inv(preconditioner))


def over_pairs(pair, x, scores_x, y, scores_y):
    """``pair(a, s, b, t)``, a number for each of S models, at all pairs of observations: (S, n, m),
    one row at a time.
    """

    def row(arguments):
        a, s = arguments
        return jax.vmap(pair, (None, None, 0, 1))(a, s, y, scores_y)

    rows = jax.lax.map(row, (x, jnp.swapaxes(scores_x, 0, 1)))  # (n, m, S)
    return jnp.moveaxis(rows, -1, 0)


def over_models(model, scores_x, scores_y):
    """``model`` applied to each of S pairs of scores: unrolled for a few models, a loop
    for many.
    """
    if len(scores_x) <= UNROLLED_MODELS:
        return jnp.stack([model(pair) for pair in zip(scores_x, scores_y, strict=True)])
    return jax.lax.map(model, (scores_x, scores_y))


class Spherical(SteinOperator):
    """Scores are gradients of the log density on the unit sphere, of shape (n, D); only their
    tangential part counts.

    The density is one with respect to the uniform measure. With T = I - x x' the projection on the
    tangent plane, a witness f has the tangential part T f, whose divergence on the sphere is tr(T
    grad f) - (D - 1) x'f; hence

        A f = <T s - (D - 1) x, f> + tr(T grad f).

    Observations are vectors of length 1, up to 1e-6; kernels are those on real vectors.
    """

    data: ClassVar[Data] = "directions"

    def check_kernel(self, kernel: Kernel) -> None:
        if kernel.domain == "discrete" or isinstance(kernel, (PerCoordinate, Standardised)):
            raise ValueError(
                "kernel: expected one number for two real vectors, for the Spherical operator; got "
                f"{kernel}. Use IMQ.median(x)."
            )

    def block(self, kernel: Kernel, x, scores_x, y, scores_y):
        return spherical_block(kernel, x, lift_scores(x, scores_x), y, lift_scores(y, scores_y))

    tile = Langevin.tile


def lift_scores(x: Float[Array, "n D"], scores: Float[Array, "S n D"]) -> Float[Array, "S n D"]:
    """T s - (D - 1) x."""
    radial = jnp.sum(scores * x, -1, keepdims=True) + x.shape[-1] - 1
    return scores - radial * x


@singledispatch
def spherical_block(
    kernel: Kernel,
    x: Float[Array, "n D"],
    u_x: Float[Array, "S n D"],
    y: Float[Array, "m D"],
    u_y: Float[Array, "S m D"],
) -> Float[Array, "S n m"]:
    """Any kernel, by differentiation: u't k + u'T_b grad_b k + t'T_a grad_a k + tr(T_a grad_a
    grad_b' k T_b).
    """

    def value(a, b):
        return jnp.asarray(kernel(a, b), a.dtype)

    def pair(a, s, b, t):
        by_a, by_b = jax.grad(value, 0)(a, b), jax.grad(value, 1)(a, b)
        mixed = jax.jacfwd(jax.grad(value, 0), 1)(a, b)
        mixed = mixed - jnp.outer(a, a @ mixed)  # T_a M
        trace = jnp.trace(mixed) - b @ mixed @ b  # tr(T_a M T_b)
        along_b, along_a = by_b - (b @ by_b) * b, by_a - (a @ by_a) * a
        return jnp.sum(s * t, -1) * value(a, b) + s @ along_b + t @ along_a + trace

    return over_pairs(pair, x, u_x, y, u_y)


@spherical_block.register
def _(
    kernel: Radial,
    x: Float[Array, "n D"],
    u_x: Float[Array, "S n D"],
    y: Float[Array, "m D"],
    u_y: Float[Array, "S m D"],
) -> Float[Array, "S n m"]:
    # With c = x'y and r = |x - y|^2 / L: T_x (x - y) = c x - y, T_y (x - y) = x - c y, tr(T_x T_y)
    # = D - 2 + c^2, so h = phi u't - 2 phi'/L [u'(x - c y) + t'(y - c x)] - 2 phi'/L (D - 2 + c^2)
    # - 4 phi''/L^2 c (1
    # - c^2).
    if kernel.preconditioner.ndim:
        return spherical_block.dispatch(Kernel)(kernel, x, u_x, y, u_y)
    scale = kernel.preconditioner
    cosine = jnp.clip(x @ y.T, -1.0, 1.0)
    phi, first, second = kernel.profile((2 - 2 * cosine) / scale)
    first, second = first / scale, second / scale**2
    score_free = -2 * first * (x.shape[-1] - 2 + cosine**2) - 4 * second * cosine * (1 - cosine**2)

    def model(scores):
        s, t = scores
        own = jnp.sum(s * x, -1)[:, None] + jnp.sum(t * y, -1)
        return phi * (s @ t.T) - 2 * first * (own - cosine * (s @ y.T + x @ t.T)) + score_free

    return over_models(model, u_x, u_y)


@spherical_block.register
def _(
    kernel: Sum,
    x: Float[Array, "n D"],
    u_x: Float[Array, "S n D"],
    y: Float[Array, "m D"],
    u_y: Float[Array, "S m D"],
) -> Float[Array, "S n m"]:
    return spherical_block(kernel.a, x, u_x, y, u_y) + spherical_block(kernel.b, x, u_x, y, u_y)
