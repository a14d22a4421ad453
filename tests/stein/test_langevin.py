"""The Langevin Stein kernel against automatic differentiation and quadrature."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lksd.kernels import (
    IMQ,
    BallBump,
    BoxBump,
    Gaussian,
    Kernel,
    PerCoordinate,
    Polynomial,
    Product,
    Standardised,
    Sum,
    Tilted,
    Weighted,
)
from lksd.stein import Langevin, stein_kernel

DIM = 4


def spd(seed=0, dim=DIM):
    a = np.random.default_rng(seed).normal(size=(dim, dim))
    return a @ a.T + np.eye(dim)


class Own(Kernel):
    """A user's kernel with a parameter and nothing but the pointwise form."""

    rate: float

    def __call__(self, x, y):
        return jnp.exp(-self.rate * jnp.sum(jnp.sqrt(1 + (x - y) ** 2))) * (1 + jnp.dot(x, y) ** 2)


DIAGONAL = np.array([0.5, 1.0, 2.0, 4.0])
KERNELS = {
    "imq": IMQ(),
    "imq scalar": IMQ(2.5, c=0.7),
    "imq beta": IMQ(3.0, beta=0.3),
    "imq diagonal": IMQ(DIAGONAL),
    "imq full": IMQ(spd()),
    "gaussian": Gaussian(1.7),
    "gaussian diagonal": Gaussian(DIAGONAL),
    "gaussian full": Gaussian(spd(1)),
    "per coordinate": PerCoordinate(IMQ(3.0), Gaussian(DIAGONAL)),
    "per coordinate, full base": PerCoordinate(Gaussian(spd(2)), IMQ(0.8)),
    "per coordinate, diagonal base": PerCoordinate(IMQ(DIAGONAL), IMQ(DIAGONAL[::-1].copy())),
    "standardised": Standardised(Gaussian(1.7), DIAGONAL),
    "standardised, per coordinate": Standardised(PerCoordinate(IMQ(3.0), IMQ(1.0)), DIAGONAL),
    "tilted": Tilted(Gaussian(1.7), np.array([0.3, 0.0, -1.0, 2.0]), slope=0.7, bound=1.5),
    "tilted, full": Tilted(IMQ(spd(4)), 0.2),
    "default": Standardised.median(np.random.default_rng(5).normal(size=(20, DIM)) * DIAGONAL),
    "polynomial weight": Weighted(IMQ(2.0), Polynomial(0.5)),
    "ball": Weighted(IMQ(spd()), BallBump(radius=3.5, flat_radius=0.5)),
    "box": Weighted(Gaussian(2.0), BoxBump(-4.0, np.full(DIM, 4.0), margin=3.0)),
    "weighted per coordinate": Weighted(PerCoordinate(IMQ(3.0), IMQ(1.0)), Polynomial(1.0)),
    "plain weight": Weighted(IMQ(), lambda x: 1 / (1 + jnp.sum(x**4))),
    "sum": Sum(IMQ(2.0), Gaussian(DIAGONAL)),
    "sum with per coordinate": Sum(IMQ(2.0), PerCoordinate(IMQ(3.0), Gaussian(1.0))),
    "product": Product(IMQ(2.0), Gaussian(spd())),
    "nested": Weighted(Sum(Product(IMQ(), Gaussian(2.0)), IMQ(DIAGONAL)), Polynomial(0.7)),
    "own": Own(0.3),
    "own product": Product(Own(0.2), IMQ(2.0)),
    "function": lambda x, y: jnp.exp(-jnp.sum((x - y) ** 4)),
}


def autodiff(kernel, x, s, y, t):
    """s't k + s'grad_y k + t'grad_x k + tr grad_x grad_y k, one pair; diagonal matrix kernels by
    coordinates.
    """
    k = kernel(x, y)
    k_x, k_y = jax.jacfwd(kernel, 0)(x, y), jax.jacfwd(kernel, 1)(x, y)
    k_xy = jax.jacfwd(jax.jacrev(kernel, 0), 1)(x, y)
    if jnp.ndim(k):
        k_x, k_y, k_xy = jnp.diag(k_x), jnp.diag(k_y), jnp.einsum("ddd->d", k_xy)
        return jnp.sum(s * t * k + s * k_y + t * k_x + k_xy)
    return s @ t * k + s @ k_y + t @ k_x + jnp.trace(k_xy)


@pytest.mark.parametrize("name", KERNELS)
def test_block_equals_autodiff(name):
    kernel = KERNELS[name]
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(5, DIM)), rng.normal(size=(4, DIM))
    s, t = 2 * rng.normal(size=(5, DIM)), 2 * rng.normal(size=(4, DIM))
    y[0] = x[0]  # a pair at distance zero
    with jax.enable_x64(True):
        pair = jax.jit(lambda a, s, b, t: autodiff(kernel, a, s, b, t))
        expected = np.array(
            [
                [float(pair(*map(jnp.asarray, (a, u, b, v)))) for b, v in zip(y, t, strict=True)]
                for a, u in zip(x, s, strict=True)
            ]
        )
    block = stein_kernel(Langevin(), kernel, x, s, y, t)
    assert block.dtype == np.float64
    np.testing.assert_allclose(block, expected, rtol=1e-10, atol=1e-10 * np.abs(expected).max())


def test_far_from_the_origin_nothing_is_lost():
    rng = np.random.default_rng(0)
    x, s = rng.normal(size=(30, 3)), rng.normal(size=(30, 3))
    near = stein_kernel(Langevin(), IMQ(2.0), x, s)
    far = stein_kernel(Langevin(), IMQ(2.0), x + 1e6, s)
    np.testing.assert_allclose(far, near, rtol=1e-7)


# ------------------------------------------------------------- E h(x, .) = 0 under the model, by
# quadrature


def mixture_density(z):
    """Two Gaussians in one dimension, and the score."""

    def part(m, sd, w):
        return w * jnp.exp(-((z - m) ** 2) / (2 * sd**2)) / sd

    return part(-1.0, 0.7, 0.4) + part(1.5, 1.1, 0.6)


def skewed_density(z):
    """A correlated, curved density on the plane."""
    return jnp.exp(-(z[0] ** 2) / 2 - (z[1] - 0.4 * z[0] ** 2) ** 2 / 1.2)


def wedge_density(z):
    """Not zero on the boundary of any bounded domain."""
    return jnp.exp(0.8 * z[0] - 0.5 * z[-1] ** 2)


def expectation(kernel, density, nodes, points):
    """E_y h(x, y) for x in points under the density on an even grid (spectrally accurate for smooth
    integrands).
    """
    with jax.enable_x64(True):
        score = jax.jit(jax.vmap(jax.grad(lambda z: jnp.log(density(z)))))
        mass = np.asarray(jax.vmap(density)(jnp.asarray(nodes)))
        at_points, at_nodes = (
            np.asarray(score(jnp.asarray(points))),
            np.asarray(score(jnp.asarray(nodes))),
        )
    h = stein_kernel(Langevin(), kernel, points, at_points, nodes, at_nodes)
    return h @ (mass / mass.sum()), np.abs(h) @ (mass / mass.sum())


LINE = [
    IMQ(1.3),
    Gaussian(0.9),
    PerCoordinate(IMQ(2.0), Gaussian(1.0)),
    Standardised(Tilted(Gaussian(2.0), 0.4), 0.7),
    Weighted(IMQ(), Polynomial(0.5)),
    Sum(IMQ(), Gaussian(3.0)),
]


@pytest.mark.parametrize("kernel", LINE, ids=str)
def test_stein_identity_on_the_line(kernel):
    nodes = np.linspace(-14, 14, 3001)[:, None]
    points = np.linspace(-2, 3, 6)[:, None]
    mean, size = expectation(kernel, lambda z: mixture_density(z[0]), nodes, points)
    np.testing.assert_allclose(mean / size, 0, atol=1e-10)


@pytest.mark.parametrize(
    "kernel",
    [IMQ(np.array([[2.0, 0.5], [0.5, 1.0]])), PerCoordinate(IMQ(2.0), IMQ(np.array([1.0, 2.0])))],
    ids=str,
)
def test_stein_identity_in_the_plane(kernel):
    grid = np.linspace(-9, 12, 180)
    nodes = np.stack(np.meshgrid(grid, grid), -1).reshape(-1, 2)
    points = np.random.default_rng(0).normal(size=(4, 2))
    mean, size = expectation(kernel, skewed_density, nodes, points)
    np.testing.assert_allclose(mean / size, 0, atol=1e-8)


def test_stein_identity_on_a_bounded_domain_needs_and_has_the_bump():
    nodes = np.linspace(-1, 1, 4001)[1:-1, None]
    points = np.linspace(-0.9, 0.9, 5)[:, None]
    bump = Weighted(IMQ(0.5), BallBump(radius=1.0, flat_radius=0.2))
    mean, size = expectation(bump, wedge_density, nodes, points)
    np.testing.assert_allclose(mean / size.max(), 0, atol=1e-10)
    without, size = expectation(IMQ(0.5), wedge_density, nodes, points)
    assert np.abs(without / size).min() > 0.01


@pytest.mark.parametrize(
    "weight", [BallBump(radius=1.0, flat_radius=0.3), BoxBump(-1.0, 1.0, margin=0.8)], ids=str
)
def test_stein_identity_on_a_bounded_domain_in_the_plane(weight):
    grid = np.linspace(-1, 1, 202)[1:-1]
    nodes = np.stack(np.meshgrid(grid, grid), -1).reshape(-1, 2)
    inside = nodes[np.asarray(jax.vmap(weight)(nodes)) > 0]
    points = np.array([[0.1, 0.2], [-0.5, 0.4], [0.0, -0.7]])
    mean, size = expectation(Weighted(IMQ(0.5), weight), wedge_density, inside, points)
    np.testing.assert_allclose(mean / size.max(), 0, atol=1e-7)


# ------------------------------------------------------------- invariances of Appendix B.9


def test_rotation_and_translation_of_data_and_model():
    rng = np.random.default_rng(5)
    x, s = rng.normal(size=(20, 3)), rng.normal(size=(20, 3))
    rotation = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    moved, turned = x @ rotation.T + 2.0, s @ rotation.T
    for build in (IMQ.median, Gaussian.median, lambda z: IMQ.covariance(z, shrinkage=0.0)):
        h = stein_kernel(Langevin(), build(x), x, s)
        np.testing.assert_allclose(
            stein_kernel(Langevin(), build(moved), moved, turned),
            h,
            rtol=1e-9,
            atol=1e-9 * np.abs(h).max(),
        )


def test_rotationally_invariant_model():
    x = np.random.default_rng(6).normal(size=(20, 3))
    rotation = np.linalg.qr(np.random.default_rng(7).normal(size=(3, 3)))[0]
    turned = x @ rotation.T
    h = stein_kernel(Langevin(), IMQ(2.0), x, -x / 2)
    np.testing.assert_allclose(
        stein_kernel(Langevin(), IMQ(2.0), turned, -turned / 2),
        h,
        rtol=1e-9,
        atol=1e-9 * np.abs(h).max(),
    )


def test_a_stack_of_many_models_equals_each_alone():
    rng = np.random.default_rng(8)
    x, scores = rng.normal(size=(6, 3)), rng.normal(size=(7, 6, 3))
    with jax.enable_x64(True):
        arrays = [jnp.asarray(a) for a in (x, scores, x, scores)]
        together = eqx.filter_jit(Langevin().block)(IMQ(2.0), *arrays)
    for one, score in zip(together, scores, strict=True):
        np.testing.assert_allclose(
            one, stein_kernel(Langevin(), IMQ(2.0), x, score), rtol=1e-12, atol=1e-12
        )
