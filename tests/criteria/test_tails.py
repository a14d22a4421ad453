"""Heavy tails of the ratios behind conditional scores, where their shape is known."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special, stats

import lksd
from lksd.models.simulation import draw
from lksd.scores.tails import FEWEST, pareto_shape, tail_shape


class Coins(lksd.models.LatentVariableModel):
    """Tosses of a coin whose probability has a beta distribution, and is sampled.

    1 / p(x_d | z) for a head has a tail of shape 1 / (a + heads).
    """

    a: float = 2.0
    b: float = 2.0
    tosses: int = 3
    n_values = 2

    def log_prior(self, z):
        return self.a * jax.nn.log_sigmoid(z) + self.b * jax.nn.log_sigmoid(-z)

    def log_likelihood(self, x, z):
        return jnp.sum(jax.nn.log_sigmoid(jnp.where(x == 1, z, -z)))

    def sample(self, key):
        key_a, key_b, key_x = jax.random.split(key, 3)
        z = jax.random.loggamma(key_a, self.a) - jax.random.loggamma(key_b, self.b)
        return z, jax.random.bernoulli(key_x, jax.nn.sigmoid(z), (self.tosses,)).astype(int)


@pytest.mark.parametrize("k", [0.2, 0.5, 1.0])
def test_shapes_of_pareto_samples(k):
    """The mean over many cells is near the shape, which the prior draws towards 1/2."""
    rng = np.random.default_rng(3)
    excesses = np.sort((rng.random((400, 200)) ** -k - 1) / k, axis=1)
    wanted = (200 * k + 5) / 210
    assert abs(pareto_shape(excesses).mean() - wanted) < 0.03


def test_cells_that_do_not_vary_have_no_tail():
    assert not pareto_shape(np.zeros((3, 40))).any()
    assert np.isnan(tail_shape(np.ones((2, 1, FEWEST // 4 - 1, 3, 4)))).all()


def test_known_tails_are_found():
    """Heads and tails of coins: 1 / p(x_d | z) has the shape 1 / (a + heads), known exactly."""
    model = Coins(0.1, 4.0, 3)
    x = np.array([[1, 0, 0]] * 20 + [[0, 0, 0]] * 20)
    found = lksd.estimate_scores(model, x, criteria="conditional", draws=4_000).loss_tails
    head, light = found[:20, 0], found[20:].ravel()  # shapes 1 / 1.1 and 1 / 7
    assert np.median(head) > 0.7
    assert np.median(light) < 0.5
    assert stats.mannwhitneyu(head, found[:20, 1], alternative="greater").pvalue < 1e-6


@pytest.mark.filterwarnings("ignore:MCMC noise makes")
def test_a_model_with_heavy_tails_is_noted_and_one_without_is_not():
    rng = np.random.default_rng(8)
    x = np.asarray(rng.random((80, 3)) < 0.5, int)
    heavy = lksd.compare(x, Coins(0.1, 0.1), Coins(0.3, 0.3), criterion="conditional", also=())
    assert any("conditional probabilities are means of ratios" in note for note in heavy.notes)
    light = lksd.compare(x, Coins(6.0, 6.0), Coins(9.0, 9.0), criterion="conditional", also=())
    assert not any("heavy" in note for note in light.notes)


@pytest.mark.filterwarnings("ignore:MCMC noise makes")
def test_a_verdict_that_rests_on_such_cells_is_withheld():
    x = np.array([[0, 1, 1], [1, 0, 1]] * 40)
    result = lksd.compare(x, Coins(0.1, 0.1), Coins(0.3, 0.3), criterion="conditional", also=())
    assert "another without" in result.withheld
    assert result.favours is None


def test_tails_are_saved_with_scores(tmp_path):
    x = draw(Coins(), 12, 0)
    scores = lksd.estimate_scores(Coins(), x, criteria="conditional")
    scores.save(tmp_path / "scores.npz")
    again = lksd.load_scores(tmp_path / "scores.npz")
    np.testing.assert_array_equal(scores.loss_tails, again.loss_tails)


def test_light_tails_give_the_closed_form():
    model = Coins(3.0, 3.0, 3)
    x = draw(model, 40, 0)
    heads = x.sum(1, keepdims=True) - x
    share = (3 + heads) / (6 + 2)
    wanted = -special.xlogy(x, share).sum(1) - special.xlogy(1 - x, 1 - share).sum(1)
    found = lksd.estimate_scores(model, x, criteria="conditional")
    z = (found.losses[:, 0] - wanted) / found.loss_errors[:, 0]
    assert 0.5 < np.mean(z**2) < 1.6
