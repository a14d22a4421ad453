"""What models and kernels read from outside may change between calls: every answer is of what they
read now.
"""

import types

import jax
import jax.numpy as jnp
import ksd
import numpy as np
import pytest
from compilations import compilations

import lksd

SPREAD = 1.0
TABLE = np.ones(3)
OPTIONS = {"spread": 1.0}
MODULE = types.ModuleType("settings_of_the_user")
X = np.random.default_rng(0).normal(size=(20, 3))
CHANGES = (1.0, 5.0, 2.0, 5.0, 1.0)
SHORT = {
    "warmup": 20,
    "draws": 40,
    "sampler": lksd.samplers.HMC(step_size=0.5, inverse_mass_matrix=np.eye(3)),
}


def spread() -> float:
    return SPREAD


def by_global(value):
    global SPREAD
    SPREAD = value


def by_array(value):
    TABLE[:] = value


def by_key(value):
    OPTIONS["spread"] = value


def by_attribute(value):
    MODULE.spread = value


READERS = {
    "global": (by_global, lambda: SPREAD),
    "function": (by_global, spread),
    "array": (by_array, lambda: TABLE[0] * 1.0),
    "array constant": (by_array, lambda: jnp.asarray(TABLE)),
    "dict": (by_key, lambda: OPTIONS["spread"]),
    "module": (by_attribute, lambda: MODULE.spread),
}


def replaced(value):
    """The reader itself is another function."""
    READ["now"] = lambda: value


READ = {"now": lambda: 1.0}
READERS["another function"] = (replaced, lambda: READ["now"]())


class Marginal(lksd.models.LatentVariableModel):
    """x ~ N(0, read()^2), its log density in closed form."""

    read: str

    def log_prior(self, z):
        return -(z**2) / 2

    def log_likelihood(self, x, z):
        return self.log_marginal(x)

    def log_marginal(self, x):
        return -jnp.sum((x / READERS[self.read][1]()) ** 2) / 2

    def sample(self, key):
        return jax.random.normal(key), READERS[self.read][1]() * jax.random.normal(key, (3,))


class Latent(lksd.models.LatentVariableModel):
    """z ~ N(0, I), x | z ~ N(z, read()^2 I): the score is -x / (1 + read()^2), exact with control
    variates.
    """

    read: str

    def log_prior(self, z):
        return -jnp.sum(z**2) / 2

    def log_likelihood(self, x, z):
        return -jnp.sum(((x - z) / READERS[self.read][1]()) ** 2) / 2

    def sample(self, key):
        key_z, key_x = jax.random.split(key)
        z = jax.random.normal(key_z, (3,))
        return z, z + READERS[self.read][1]() * jax.random.normal(key_x, (3,))


@pytest.mark.parametrize("read", READERS)
def test_closed_scores_follow_what_the_model_reads(read):
    for value in CHANGES:
        READERS[read][0](value)
        np.testing.assert_allclose(
            lksd.estimate_scores(Marginal(read), X).score, -X / value**2, rtol=1e-12
        )


@pytest.mark.parametrize("read", ["global", "array constant", "another function"])
def test_chains_follow_what_the_model_reads(read):
    for value in (1.0, 3.0, 1.0):
        READERS[read][0](value)
        np.testing.assert_allclose(
            lksd.estimate_scores(Latent(read), X, **SHORT).score, -X / (1 + value**2), atol=1e-6
        )


def test_pairs_of_functions_follow_what_they_read():
    model = lksd.adapters.from_functions(
        lambda z: -jnp.sum(z**2) / 2,
        lambda x, z: -jnp.sum(((x - z) / SPREAD) ** 2) / 2,
        initial=np.zeros(3),
    )
    for value in (1.0, 3.0):
        by_global(value)
        np.testing.assert_allclose(
            lksd.estimate_scores(model, X, warmup=100, draws=40).score,
            -X / (1 + value**2),
            atol=1e-6,
        )


def test_methods_that_are_replaced_are_used():
    class Replaced(Marginal):
        pass

    by_global(1.0)
    np.testing.assert_allclose(lksd.estimate_scores(Replaced("global"), X).score, -X)
    Replaced.log_marginal = lambda self, x: -jnp.sum(x**4) / 4
    np.testing.assert_allclose(lksd.estimate_scores(Replaced("global"), X).score, -(X**3))


def test_a_network_that_is_changed_is_used_as_it_is():
    class Network:
        factor = 1.0

        def __call__(self, z):
            return self.factor * jnp.ones((3, 1)) @ z

    network = Network()
    for factor in (1.0, 3.0):
        network.factor = factor
        model = lksd.models.Decoder(network, noise=1.0, latent_dim=1)
        exact = lksd.models.PPCA(factor * np.ones((3, 1)), 1.0)
        found, expected = (
            lksd.estimate_scores(model, X, **SHORT | {"sampler": None}),
            lksd.estimate_scores(exact, X),
        )
        np.testing.assert_allclose(found.score, expected.score, atol=1e-6)


class Bell(lksd.kernels.Kernel):
    def __call__(self, x, y):
        return jnp.exp(-jnp.sum((x - y) ** 2) / (2 * SPREAD**2))


@pytest.mark.parametrize(
    "kernel", [lambda x, y: jnp.exp(-jnp.sum((x - y) ** 2) / (2 * SPREAD**2)), Bell()]
)
def test_kernels_follow_what_they_read(kernel):
    for value in CHANGES:
        by_global(value)
        given = (X, -X, -X / 2)
        found = lksd.compare_scores(*given, kernel=kernel, seed=1)
        expected = lksd.compare_scores(*given, kernel=lksd.kernels.Gaussian(value**2), seed=1)
        assert found.statistic == pytest.approx(expected.statistic, rel=1e-9)
        scores = (lksd.stein.Langevin(), kernel, X, -X)
        oracle = lksd.stein.stein_kernel(
            lksd.stein.Langevin(), lksd.kernels.Gaussian(value**2), X, -X
        )
        np.testing.assert_allclose(lksd.stein.stein_kernel(*scores), oracle, rtol=1e-9, atol=1e-9)


def test_classes_from_text_follow_what_they_read():
    """Python says of such a class that it belongs to the module builtins."""
    names = {"lksd": lksd, "jnp": jnp, "OPTIONS": OPTIONS}
    text = "jnp.exp(-jnp.sum((x - y) ** 2) / (2 * OPTIONS['spread'] ** 2))"
    exec(
        f"class Text(lksd.kernels.Kernel):\n    def __call__(self, x, y):\n        return {text}",
        names,
    )
    for value in (1.0, 3.0):
        by_key(value)
        found = lksd.compare_scores(X, -X, -X / 2, kernel=names["Text"](), seed=1)
        expected = lksd.compare_scores(
            X, -X, -X / 2, kernel=lksd.kernels.Gaussian(value**2), seed=1
        )
        assert found.statistic == pytest.approx(expected.statistic, rel=1e-9)


def test_samplers_follow_what_they_read():
    class Counting(lksd.samplers.HMC):
        def step(self, key, state, model, x):
            state, info = super().step(key, state, model, x)
            return state, info._replace(acceptance=jnp.full((), SPREAD))

    sampler = Counting(step_size=0.5, inverse_mass_matrix=np.eye(3))
    model = Latent("dict")
    for value in (1.0, 5.0):
        by_global(value)
        np.testing.assert_allclose(
            lksd.estimate_scores(model, X, **SHORT | {"sampler": sampler}).acceptance, value
        )


def test_rules_of_differentiation_follow_what_they_read():
    @jax.custom_jvp
    def square(x):
        return x**2

    square.defjvp(
        lambda primals, tangents: (primals[0] ** 2, 2 * SPREAD * primals[0] * tangents[0])
    )
    model = lksd.adapters.from_functions(
        lambda z: -jnp.sum(z**2) / 2, lambda x, z: -jnp.sum(square(x - z)) / 2, initial=np.zeros(3)
    )
    found = []
    for value in (1.0, 2.0):
        by_global(value)
        found.append(lksd.estimate_scores(model, X, **SHORT, control_variates="none").score)
    assert np.abs(found[0] - found[1]).max() > 0.1


def test_where_nothing_changed_nothing_is_compiled():
    by_global(1.0)
    model, kernel = Latent("global"), Bell()

    def test():
        return ksd.compare(X, model, Marginal("global"), kernel=kernel, **SHORT)

    first = test()
    before = compilations()
    assert before
    assert test().pvalue == first.pvalue
    assert compilations() == before
