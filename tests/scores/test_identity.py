"""A model is tested on its own draws: the identities hold exactly, mistakes are reported, right
models are not.
"""

import itertools
import warnings
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import ksd
import mistakes
import numpy as np
import pytest
from scipy import stats

import lksd
from lksd.scores.identity import check_identity, is_open
from lksd.scores.witnesses import Neighbours, regression, unit_of
from lksd.supports import Coordinates, Support

WEIGHT = np.random.default_rng(0).normal(size=(4, 2))
X = np.random.default_rng(1).normal(size=(40, 2)) @ WEIGHT.T + np.random.default_rng(2).normal(
    size=(40, 4)
)


class Factors(lksd.models.LatentVariableModel):
    """Factor analysis in the form of an exponential family, whose term in x alone is easily
    forgotten.
    """

    weight: np.ndarray
    term: float = 1.0
    spread: float = 1.0  # of the noise that is simulated

    def log_prior(self, z):
        return -jnp.sum(z**2) / 2

    def log_likelihood(self, x, z):
        mean = self.weight @ z
        return x @ mean - jnp.sum(mean**2) / 2 - self.term * jnp.sum(x**2) / 2

    def sample(self, key):
        keys = jax.random.split(key)
        z = jax.random.normal(keys[0], self.weight.shape[1:])
        return z, self.weight @ z + self.spread * jax.random.normal(keys[1], self.weight.shape[:1])


class Marginal(Factors):
    """With its exact density."""

    def log_marginal(self, x):
        inner = self.weight.T @ x
        precision = jnp.eye(inner.size) + self.weight.T @ self.weight
        return inner @ jnp.linalg.solve(precision, inner) / 2 - self.term * jnp.sum(x**2) / 2


RIGHT, FORGOTTEN = Marginal(WEIGHT), Marginal(WEIGHT, 0.0)
MESSAGE = (
    r"the model does not fit its own draws.* is -?[0-9.e-]+ \+- [0-9.e-]+; it should be "
    r"(-1|0), .*check=False"
)


def found(model, dim=4, seed=0, **options):
    kind = np.int32 if hasattr(model, "n_values") else np.float64
    return check_identity(model, np.zeros((1, dim), kind), seed, **options)


def test_every_call_names_the_model_whose_term_in_x_is_missing():
    with pytest.warns(lksd.LksdWarning, match="^Q: " + MESSAGE) as warned:
        result = ksd.compare(X, RIGHT, FORGOTTEN)
    assert [one.filename for one in warned if "own draws" in str(one.message)] == [__file__]
    assert [note[:3] for note in result.notes if "own draws" in note] == ["Q: "]
    assert result.settings["check"] is True
    with pytest.warns(lksd.LksdWarning, match="^forgotten: " + MESSAGE):
        ranking = ksd.rank(X, {"right": RIGHT, "forgotten": FORGOTTEN})
    assert sum("own draws" in note for note in ranking.notes) == 1
    with pytest.warns(lksd.LksdWarning, match="^" + MESSAGE):
        fit = lksd.goodness_of_fit(X, FORGOTTEN)
    assert sum("own draws" in note for note in fit.notes) == 1


def test_it_can_be_turned_off():
    with warnings.catch_warnings():
        warnings.simplefilter("error", lksd.LksdWarning)
        result = ksd.compare(X, RIGHT, FORGOTTEN, check=False)
        ksd.rank(X, {"right": RIGHT, "forgotten": FORGOTTEN}, check=False)
        lksd.goodness_of_fit(X, FORGOTTEN, check=False)
    assert not any("own draws" in note for note in result.notes)
    assert result.settings["check"] is False


@pytest.mark.parametrize("kind", [Factors, Marginal])
def test_a_missing_term_and_a_wrong_sampler_by_chains_and_exactly(kind):
    assert found(kind(WEIGHT)) == ()
    assert found(kind(WEIGHT, 0.0))
    assert found(kind(WEIGHT, 1.0, 1.2))


class OwnPPCA(lksd.models.PPCA):
    """A user's class."""


def test_whose_models_are_checked():
    ours = lksd.models.PPCA(WEIGHT, 1.0)
    draws = {"weight": np.stack([WEIGHT, 2 * WEIGHT])}
    without = lksd.adapters.from_functions(
        RIGHT.log_prior, RIGHT.log_likelihood, initial=np.zeros(2)
    )
    pair = lksd.adapters.from_functions(RIGHT.log_prior, RIGHT.log_likelihood, sample=RIGHT.sample)
    closed = [
        ours,
        lksd.models.PosteriorPredictive(ours, draws),
        without,
        lksd.estimate_scores(ours, X),
    ]
    own = [RIGHT, OwnPPCA(WEIGHT, 1.0), lksd.models.PosteriorPredictive(RIGHT, draws), pair]
    assert [is_open(model) for model in closed + own] == 4 * [False] + 4 * [True]


@pytest.mark.parametrize("size", [2, 3, 5])
def test_barkers_moves_keep_a_law_of_integers(size):
    """By enumeration of all states: the mean change of every witness is zero under the law, and not
    under another.
    """
    rng = np.random.default_rng(size)
    states = np.array(list(itertools.product(range(size), repeat=3)))
    law, other = rng.dirichlet(np.ones(len(states)), 2)

    def weight(probabilities, x):
        return probabilities.reshape((size,) * 3)[tuple(x.T)]

    def ratios(probabilities):
        columns = [[states + step * np.eye(3, dtype=int)[d] for step in (1, -1)] for d in range(3)]
        moved = [[weight(probabilities, one % size) for one in pair] for pair in columns]
        return np.moveaxis(np.array(moved), -1, 0) / probabilities[:, None, None]

    seen_elsewhere = []
    chart = Neighbours(states, ratios(law), np.zeros((len(states), 0)), size)
    for change in chart.changes(unit_of(states.astype(float))).values():
        np.testing.assert_allclose(law @ change, 0, atol=1e-14)
        # a witness may be multiplied by any function of the other coordinates
        seen = states[:, [1, 2, 0]]
        np.testing.assert_allclose(law @ (change * np.sin(seen)), 0, atol=1e-14)
        seen_elsewhere.append(np.abs(other @ change).max())
    assert max(seen_elsewhere) > 0.01


def test_each_draw_has_the_regression_of_all_others():
    rng = np.random.default_rng(0)
    u = rng.normal(size=(40, 2))
    x = np.tanh(u @ rng.normal(size=(2, 3))) + 0.1 * rng.normal(size=(40, 3))
    score, slope = rng.normal(size=(40, 3)), rng.normal(size=(40, 2))
    whole = regression(x, u, np.random.default_rng(1))
    rest, moved = whole.apply(x, u, score, slope, own=True)
    values, kept = whole.features(u), np.arange(40)
    ridge = np.linalg.inv(whole.inverse) - values.T @ values
    for i in (0, 17, 39):
        few = values[kept != i]
        inverse = np.linalg.inv(few.T @ few + ridge)
        one = whole._replace(inverse=inverse, coefficients=inverse @ few.T @ x[kept != i])
        alone = one.apply(x[[i]], u[[i]], score[[i]], slope[[i]], own=False)
        np.testing.assert_allclose(rest[i], alone[0][0], rtol=1e-6)
        np.testing.assert_allclose(moved[i], alone[1][0], rtol=1e-6)


def test_the_gradient_with_the_residual_held_fixed():
    rng = np.random.default_rng(0)
    u = rng.normal(size=(60, 2))
    x = np.tanh(u @ rng.normal(size=(2, 3))) + 0.1 * rng.normal(size=(60, 3))
    fit, step, score = regression(x, u, rng), 1e-6, np.array([[0.3, -1.0, 2.0]])
    _, moved = fit.apply(x[:1], u[:1], score, np.zeros((1, 2)), own=False)
    for k in range(2):
        ends = [
            fit.features(u[:1] + sign * step * np.eye(2)[k]) @ fit.coefficients for sign in (1, -1)
        ]
        np.testing.assert_allclose(
            moved[0, k], (ends[0] - ends[1])[0] @ score[0] / (2 * step), rtol=1e-6
        )


class Exponential(lksd.models.LatentVariableModel):
    """Waiting times with a gamma rate; the boundary at zero has mass beside it."""

    def log_prior(self, z):
        return 4 * jnp.log(z) - z

    def log_likelihood(self, x, z):
        return x.size * jnp.log(z) - z * jnp.sum(x)

    def constrain(self, u):
        return jnp.exp(u)

    def unconstrain(self, z):
        return jnp.log(z)

    def sample(self, key):
        keys = jax.random.split(key)
        z = jax.random.gamma(keys[0], 5.0)
        return z, jax.random.exponential(keys[1], (4,)) / z


def test_a_boundary_is_reported_and_gone_in_coordinates_without_one():
    assert "support" in found(Exponential())[0]
    positive = Support((0.0,), (np.inf,))
    assert found(Exponential(), coordinates=Coordinates.of(positive, 4)) == ()


class Walls(Exponential):
    def sample(self, key):
        z, x = Exponential.sample(self, key)
        return -z, x


def test_draws_without_a_finite_score():
    assert "the scores are finite at 0.0% of" in found(Walls())[0]


class Swept(lksd.models.GaussianMixture):
    """With a sweep in the place of exact draws; it forgets the weights if ``forget`` is 1."""

    forget: float = 0.0

    sample_posterior = property()  # none
    log_marginal = None

    def gibbs(self, key, x, z):
        return jax.random.categorical(
            key, self.log_densities(x) + (1 - self.forget) * jnp.log(self.weights)
        )


def test_a_sweep_that_forgets_the_prior():
    # components that overlap
    parts = ([0.9, 0.1], np.stack([np.zeros(4), np.ones(4)]), np.stack([np.eye(4)] * 2))
    assert found(Swept(*parts)) == ()
    assert found(Swept(*parts, 1.0))


class Direction(lksd.models.VonMisesFisherMixture):
    turned: float = 1.0

    def __init__(self, *parts, turned=1.0):
        super().__init__(*parts)
        self.turned = turned

    def sample(self, key):
        z, x = lksd.models.VonMisesFisherMixture.sample(self, key)
        return z, x * jnp.array([1.0, self.turned, 1.0])


def test_unit_vectors():
    parts = ([0.4, 0.6], np.array([[0.6, 0.8, 0.0], [0.0, 0.6, -0.8]]), [3.0, 8.0])
    assert found(Direction(*parts), 3) == ()
    assert found(Direction(*parts, turned=-1.0), 3)
    assert found(Direction(*parts, turned=-1.0), 3, exact=False)


class Topics(lksd.models.LDA):
    """Documents whose simulation has topics of its own."""

    drawn: np.ndarray | None = None

    def sample(self, key, length):
        return lksd.models.LDA.sample(
            eqx.tree_at(lambda model: model.topics, self, self.drawn), key, length
        )


@pytest.mark.parametrize("exact", [None, False])
def test_documents_of_the_median_length(exact):
    first, second = np.random.default_rng(4).dirichlet(np.ones(6), (2, 2))
    documents = [[0, 1, 2], [3, 4], [5, 0, 1, 2], [1, 1, 2], [0, 3, 3]]
    options = {"exact": exact, "draws": 400, "warmup": 5}
    with warnings.catch_warnings():
        warnings.simplefilter("error", lksd.LksdWarning)
        lksd.goodness_of_fit(documents, Topics(np.ones(2), first, drawn=first), **options)
    with pytest.warns(lksd.LksdWarning, match="Barker's moves"):
        lksd.goodness_of_fit(documents, Topics(np.ones(2), first, drawn=second), **options)


class Unnormalised(Factors):
    """The same with a normaliser that is not known."""

    normalised: ClassVar[bool] = False

    def log_likelihood(self, x, z):
        return x @ self.weight @ z - self.term * jnp.sum(x**2) / 2

    def sample_likelihood(self, key, z):
        return self.weight @ z + jax.random.normal(key, self.weight.shape[:1])


def test_an_unknown_normaliser_is_no_mistake():
    assert found(Unnormalised(WEIGHT)) == ()
    assert found(Unnormalised(WEIGHT, 0.0))
    assert found(Unnormalised(WEIGHT, 1.0, 1.5))


class Broken(Factors):
    def sample(self, key):
        return Factors.sample(self, key)[::-1]


def test_a_sample_that_is_none_is_named():
    with pytest.raises(
        ValueError, match=r"^P: model: expected sample\(key\) of Broken to return \(z, x\)"
    ):
        ksd.compare(X, Broken(WEIGHT), RIGHT)


class Unwritten(Marginal):
    def sample(self, key):
        return np.zeros(2), np.random.default_rng(0).normal(size=4) * np.asarray(self.weight)[:, 0]


def test_a_sample_that_cannot_be_compiled_is_named():
    with pytest.raises(
        ValueError,
        match=r"^Q: model: sample\(key\) of Unwritten, or a density at its draws, fails "
        r".*check=False",
    ):
        ksd.compare(X, RIGHT, Unwritten(WEIGHT))


def study(kinds, wrong: int, right: int, dims=mistakes.DIMS) -> tuple[int, int]:
    """How many of the wrong models are reported, and of the right ones."""

    def reported(make, number, seed):
        _, made = make(np.random.default_rng([seed, number]), kinds, dims)
        return bool(found(made, made.slips["spread"].size, seed=number))

    return (
        sum(reported(mistakes.wrong_model, number, 8) for number in range(wrong)),
        sum(reported(mistakes.right_model, number, 7) for number in range(right)),
    )


def test_random_mistakes_quickly():
    wrong, right = study((mistakes.rates, mistakes.classes), 10, 20, (4,))
    assert wrong == 10
    assert right == 0


@pytest.mark.slow
def test_random_mistakes():
    """At least 95 % of mistakes that change the mean squared score by a quarter, at most 2 % of
    right models.
    """
    wrong, right = study(mistakes.FAMILIES, 100, 200)
    assert wrong >= 95
    assert right <= 4


@pytest.mark.slow
def test_small_levels_on_many_right_models():
    """Of 2,000 right models no more are reported than a rate of 1 % explains."""
    reported = study((mistakes.linear, mistakes.student, mistakes.counts), 0, 2_000, (4,))[1]
    assert stats.binomtest(reported, 2_000, 0.01, "greater").pvalue > 0.01
