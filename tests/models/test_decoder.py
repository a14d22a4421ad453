"""Decoders from Equinox and Flax against linear ones, whose scores are exact."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from compilations import compilations
from flax import linen, nnx

import lksd
from lksd.models import PPCA, Decoder

RNG = np.random.default_rng(0)
D, K = 6, 2
WEIGHT, MEAN = RNG.normal(size=(D, K)), RNG.normal(size=D)
X = RNG.normal(size=(16, D))


def equinox_network():
    network = eqx.nn.Linear(K, D, key=jax.random.key(0))
    return eqx.tree_at(
        lambda one: (one.weight, one.bias), network, (jnp.asarray(WEIGHT), jnp.asarray(MEAN))
    )


def nnx_network():
    network = nnx.Linear(K, D, rngs=nnx.Rngs(0))
    network.kernel[...], network.bias[...] = jnp.asarray(WEIGHT.T), jnp.asarray(MEAN)
    return network


def linen_network():
    return linen.Dense(D).bind(
        {"params": {"kernel": jnp.asarray(WEIGHT.T), "bias": jnp.asarray(MEAN)}}
    )


@pytest.mark.parametrize("network", [equinox_network, nnx_network, linen_network])
def test_a_linear_decoder_is_a_ppca(network):
    decoder, native = Decoder(network(), noise=0.4), PPCA(WEIGHT, 0.4, mean=MEAN)
    assert decoder.latent_dim == K
    z = RNG.normal(size=K)
    with jax.enable_x64(True):
        np.testing.assert_allclose(decoder.log_prior(z), native.log_prior(z), rtol=1e-12)
        np.testing.assert_allclose(
            decoder.log_likelihood(X[0], z), native.log_likelihood(X[0], z), rtol=1e-5
        )
        for ours, other in zip(
            decoder.sample(jax.random.key(1)), native.sample(jax.random.key(1)), strict=True
        ):
            np.testing.assert_allclose(ours, other, rtol=1e-5)


def test_scores_of_a_decoder():
    """In double precision from weights in single precision, rounded as these are."""
    found = lksd.estimate_scores(Decoder(equinox_network(), 0.4), X, draws=200)
    rounded = PPCA(WEIGHT.astype(np.float32), 0.4, mean=MEAN.astype(np.float32))
    np.testing.assert_allclose(
        found.score, lksd.estimate_scores(rounded, X).score, rtol=1e-8, atol=1e-8
    )


class Image(eqx.Module):
    inner: eqx.nn.Linear

    def __call__(self, z):
        return self.inner(z).reshape(2, 3)


def test_any_callable_and_any_shape():
    image = Decoder(Image(equinox_network()), noise=np.full(D, 0.4))
    assert image.sample(jax.random.key(0))[1].shape == (D,)
    weight = jnp.asarray(WEIGHT)
    function = Decoder(lambda z: jnp.tanh(weight @ z), noise=0.4, latent_dim=K)
    assert function.sample(jax.random.key(0))[0].shape == (K,)


def test_two_networks_of_one_form_share_a_program():
    a, b = (Decoder(eqx.nn.MLP(K, D, 8, 1, key=jax.random.key(seed)), 0.4) for seed in (0, 1))
    assert jax.tree.structure(eqx.filter(a, eqx.is_array)) == jax.tree.structure(
        eqx.filter(b, eqx.is_array)
    )


BAD = {
    "no function": (
        lambda: Decoder(WEIGHT, 0.4),
        TypeError,
        "network: expected a function of z; got ndarray",
    ),
    "no noise": (
        lambda: Decoder(equinox_network(), 0.0),
        ValueError,
        "noise: expected a positive number, or 6 of them; got shape",
    ),
    "noise of another shape": (
        lambda: Decoder(equinox_network(), np.ones(3)),
        ValueError,
        r"noise: .*got shape \(3,\)",
    ),
    "unknown size": (
        lambda: Decoder(jnp.tanh, 0.4),
        ValueError,
        "latent_dim: .*none fits. Give latent_dim=",
    ),
    "wrong size": (
        lambda: Decoder(equinox_network(), 0.4, latent_dim=5),
        ValueError,
        r"network: it fails at z of shape \(5,\)",
    ),
    "linen without variables": (
        lambda: Decoder(linen.Dense(D), 0.4),
        TypeError,
        r"Give module.bind\({'params': params}\)",
    ),
    "data of another width": (
        lambda: lksd.estimate_scores(Decoder(equinox_network(), 0.4), X[:, :3]),
        ValueError,
        r"x of shape \(3,\), as the data",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name):
    call, kind, message = BAD[name]
    with pytest.raises(kind, match=message):
        call()


def test_a_kept_decoder_follows_the_training_of_its_network():
    network = nnx_network()
    kept, short = Decoder(network, noise=0.4), {"exact": False, "warmup": 10, "draws": 20}
    first = lksd.estimate_scores(kept, X, **short)
    before = compilations()
    for step in range(1, 4):
        network.kernel[...] = jnp.asarray(WEIGHT.T) * (1 + step)
        now = lksd.estimate_scores(kept, X, **short)
        fresh = lksd.estimate_scores(Decoder(network, noise=0.4), X, **short)
        np.testing.assert_array_equal(now.score, fresh.score)
        assert np.abs(now.score - first.score).max() > 0.01
    assert compilations() - before < 10  # for other weights nothing is compiled
    network.kernel[...] = jnp.asarray(WEIGHT.T)
    np.testing.assert_array_equal(lksd.estimate_scores(kept, X, **short).score, first.score)
