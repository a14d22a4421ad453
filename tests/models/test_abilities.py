"""A model has an ability as soon as it has its method, inherited from it or not; wrappers claim no
more than they have.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lksd
from lksd.models.base import Ability, kind_of
from lksd.models.behaviour import behaviour
from lksd.models.composed import Smoothed

M = lksd.models
ABILITIES = {name: one for name in M.__all__ if type(one := getattr(M, name)) is Ability}


class Started(M.LatentVariableModel):
    """N(z, I) with z ~ N(0, I), and nothing but a start."""

    spread: float

    def log_prior(self, z):
        return -jnp.sum(z**2) / 2

    def log_likelihood(self, x, z):
        return -jnp.sum((x - z) ** 2) / (2 * self.spread**2)

    def initial(self, key, x):
        return jax.random.normal(key, x.shape)


class Values(Started):
    """Fields of the names that the library asks for stay the user's, in the user's order."""

    n_values: int
    table: np.ndarray
    note: str = "a note"


def abilities(model) -> set[str]:
    return {name for name, ability in ABILITIES.items() if isinstance(model, ability)}


def test_methods_are_abilities():
    assert abilities(Started(1.0)) == {"Starts"}
    assert abilities(Values(1.0, 5, np.ones(5))) == {"Starts", "Discrete"}
    assert abilities(M.PPCA(np.ones((2, 1)), 1.0)) == {
        "Simulates",
        "HasMarginal",
        "HasMarginalScore",
        "HasPosterior",
        "Smooths",
    }


def test_what_is_none_is_no_ability():
    class Undecided(Started):
        log_marginal = None
        n_values = None

    assert abilities(Undecided(1.0)) == {"Starts"}
    assert kind_of(Undecided(1.0)) == "reals"


def test_an_ability_that_is_inherited_must_be_there():
    class Promised(Started, M.HasMarginal):
        pass

    with pytest.raises(TypeError, match="log_marginal"):
        Promised(1.0)

    class Kept(Promised):
        def log_marginal(self, x):
            return -jnp.sum(x**2) / 4

    assert abilities(Kept(1.0)) == {"Starts", "HasMarginal"}
    assert isinstance(Kept(1.0), Promised)
    assert not isinstance(M.PPCA(np.ones((2, 1)), 1.0), Promised)


def test_wrappers_claim_what_is_inside():
    assert abilities(Smoothed(Started(1.0), 0.5)) == {"Starts"}
    mixture = M.GaussianMixture([1.0], [[0.0, 0.0]], [np.eye(2)])
    assert abilities(Smoothed(mixture, 0.5)) == {"Starts", "Simulates", "HasGibbs"}
    predictive = M.PosteriorPredictive(Started(1.0), {"spread": np.array([1.0, 2.0])})
    assert abilities(predictive) == {"HasGibbs"}


@pytest.mark.parametrize(
    ("model", "kind"),
    [
        (M.PPCA(np.ones((2, 1)), 1.0), "reals"),
        (M.VonMisesFisherMixture([1.0], [[1.0, 0.0]], [1.0]), "directions"),
        (Values(1.0, 5, np.ones(5)), "categories"),
        (M.LDA([1.0], [[0.5, 0.5]]), "documents"),
        (M.StochasticBlockModel([1.0], [[0.5]], nodes=3), "graphs"),
    ],
)
def test_kinds_of_data(model, kind):
    assert kind_of(model) == kind


def test_an_ability_that_is_gained_or_lost_is_seen():
    class Changed(Started):
        pass

    seen = [behaviour(Changed(1.0), 3)]
    for name, method in {
        "log_marginal": lambda self, x: -jnp.sum(x**2) / 4,
        "log_likelihood_at": lambda self, x: lambda z: self.log_likelihood(x, 2 * z),
        "gibbs": lambda self, key, x, z: z,
        "coupled_gibbs": lambda self, key, x, z, other: (z, z),
        "n_latent_values": 4,
        "tunable": False,
    }.items():
        setattr(Changed, name, method)
        seen.append(behaviour(Changed(1.0), 3))
    del Changed.log_marginal
    seen.append(behaviour(Changed(1.0), 3))
    assert len(set(seen)) == len(seen)
