"""The Langevin operator on the unit sphere, for directions."""

from __future__ import annotations

from functools import singledispatch
from typing import ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..kernels import Kernel, PerCoordinate, Radial, Sum
from .base import Data, SteinOperator
from .langevin import langevin_tile, over_models, over_pairs


class Spherical(SteinOperator):
    """Scores are gradients of the log density on the unit sphere, of shape (n, D); only their tangential part counts.

    The density is one with respect to the uniform measure. With T = I - x x' the projection on the tangent plane, a witness
    f has the tangential part T f, whose divergence on the sphere is tr(T grad f) - (D - 1) x'f; hence

        A f = <T s - (D - 1) x, f> + tr(T grad f).

    Observations are vectors of length 1, up to 1e-6; kernels are those on real vectors.
    """

    data: ClassVar[Data] = "directions"

    def check_kernel(self, kernel: Kernel) -> None:
        if kernel.domain == "discrete" or isinstance(kernel, PerCoordinate):
            raise ValueError(
                f"kernel: expected one number for two real vectors, for the Spherical operator; got {kernel}. Use IMQ.median(x)."
            )

    def block(self, kernel: Kernel, x, scores_x, y, scores_y):
        return spherical_block(kernel, x, raised(x, scores_x), y, raised(y, scores_y))

    def tile(self, kernel: Kernel, dim: int, models: int, numbers: int) -> tuple[int, float]:
        return langevin_tile(kernel, dim, models, numbers)


def raised(x: Float[Array, "n D"], scores: Float[Array, "S n D"]) -> Float[Array, "S n D"]:
    """T s - (D - 1) x."""
    radial = jnp.sum(scores * x, -1, keepdims=True) + x.shape[-1] - 1
    return scores - radial * x


@singledispatch
def spherical_block(
    kernel: Kernel, x: Float[Array, "n D"], u_x: Float[Array, "S n D"], y: Float[Array, "m D"], u_y: Float[Array, "S m D"]
) -> Float[Array, "S n m"]:
    """Any kernel, by differentiation: u't k + u'T_b grad_b k + t'T_a grad_a k + tr(T_a grad_a grad_b' k T_b)."""

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
    kernel: Radial, x: Float[Array, "n D"], u_x: Float[Array, "S n D"], y: Float[Array, "m D"], u_y: Float[Array, "S m D"]
) -> Float[Array, "S n m"]:
    # With c = x'y and r = |x - y|^2 / L: T_x (x - y) = c x - y, T_y (x - y) = x - c y, tr(T_x T_y) = D - 2 + c^2, so
    # h = phi u't - 2 phi'/L [u'(x - c y) + t'(y - c x)] - 2 phi'/L (D - 2 + c^2) - 4 phi''/L^2 c (1 - c^2).
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
    kernel: Sum, x: Float[Array, "n D"], u_x: Float[Array, "S n D"], y: Float[Array, "m D"], u_y: Float[Array, "S m D"]
) -> Float[Array, "S n m"]:
    return spherical_block(kernel.a, x, u_x, y, u_y) + spherical_block(kernel.b, x, u_x, y, u_y)
