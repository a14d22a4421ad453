"""The Fisher score, exactly and by chains, against closed forms, quadrature and its identity."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scale_mixture import ScaleMixture, by_differentiation, fisher_losses, log_density
from scipy import stats

import lksd
from lksd.criteria.dataflow import depends_on
from lksd.models.simulation import draw
from lksd.scores import losses
from lksd.scores.averages import median_error

RNG = np.random.default_rng(3)
WEIGHT = RNG.normal(size=(6, 2))
X = RNG.normal(size=(200, 2)) @ WEIGHT.T + RNG.normal(size=(200, 6))


class Laplace(ScaleMixture):
    """A likelihood with a kink."""

    def log_likelihood(self, x, z):
        return -jnp.sum(jnp.abs(x - z))

    def sample(self, key):
        key_z, key_x = jax.random.split(key)
        z = self.spread * jax.random.normal(key_z)
        return z, z + jax.random.laplace(key_x, (self.dim,))


class Bent(lksd.models.LatentVariableModel):
    """A decoder that saturates, so that posteriors have long flat tails or two modes."""

    def log_prior(self, z):
        return -jnp.sum(z**2) / 2

    def log_likelihood(self, x, z):
        return -2 * jnp.sum((x - WEIGHT @ jnp.tanh(1.5 * z)) ** 2)

    def sample(self, key):
        key_z, key_x = jax.random.split(key)
        z = jax.random.normal(key_z, (2,))
        return z, WEIGHT @ jnp.tanh(1.5 * z) + jax.random.normal(key_x, (6,)) / 2


class Gamma(lksd.models.LatentVariableModel):
    """Positive numbers with a rate that is shared by two columns; log p(x) is known."""

    shape: float = 2.0
    support = "positive"

    def log_prior(self, z):
        return 2 * z - jnp.exp(z)  # the log of a gamma rate, shape 2

    def log_likelihood(self, x, z):
        return jnp.sum((self.shape - 1) * jnp.log(x) + self.shape * z - x * jnp.exp(z))

    def sample(self, key):
        key_z, key_x = jax.random.split(key)
        rate = jax.random.gamma(key_z, 2.0)
        return jnp.log(rate), jax.random.gamma(key_x, self.shape, (2,)) / rate

    def log_density(self, x):
        """Up to a constant."""
        total = 2 * self.shape + 2
        return jnp.sum((self.shape - 1) * jnp.log(x)) - total * jnp.log(1 + jnp.sum(x))


def gaussian_fisher(x, mean, covariance, metric):
    precision = np.linalg.inv(covariance)
    score = -(x - mean) @ precision
    return score**2 @ metric - 2 * metric @ np.diag(precision)


EXACT = {
    "PPCA": (lksd.models.PPCA(WEIGHT, 0.8), np.zeros(6), WEIGHT @ WEIGHT.T + 0.64 * np.eye(6)),
    "factor analysis": (
        lksd.models.FactorAnalysis(WEIGHT, np.arange(1.0, 7.0), np.ones(6)),
        np.ones(6),
        WEIGHT @ WEIGHT.T + np.diag(np.arange(1.0, 7.0)),
    ),
}


@pytest.mark.parametrize("name", EXACT)
def test_linear_models_in_closed_form_and_by_chains(name):
    model, mean, covariance = EXACT[name]
    wanted = gaussian_fisher(X, mean, covariance, X.var(0, ddof=1))
    exact = lksd.estimate_scores(model, X, criteria="fisher")
    np.testing.assert_allclose(exact.losses[:, 0], wanted, rtol=1e-9)
    assert not exact.loss_errors.any()
    chains = lksd.estimate_scores(model, X, criteria="fisher", exact=False)
    np.testing.assert_allclose(chains.losses[:, 0], wanted, rtol=1e-6)


def test_a_mixture_by_differentiation():
    rng = np.random.default_rng(234)
    means, covariances = rng.normal(size=(3, 6)), np.stack([np.eye(6), 2 * np.eye(6), np.eye(6)])
    model = lksd.models.GaussianMixture([0.5, 0.3, 0.2], means, covariances)
    metric = np.arange(1.0, 7.0)
    wanted = by_differentiation(model.log_marginal, X, metric)
    criterion = lksd.criteria.Fisher(metric)
    exact = lksd.estimate_scores(model, X, criteria=criterion)
    np.testing.assert_allclose(exact.losses[:, 0], wanted, rtol=1e-9)


def bent_log_density(model, x):
    """By the trapezoidal rule, up to a constant."""
    line = jnp.linspace(-7.0, 7.0, 141)
    nodes = jnp.stack(jnp.meshgrid(line, line), -1).reshape(-1, 2)
    return jax.nn.logsumexp(
        jax.vmap(lambda z: model.log_likelihood(x, z) + model.log_prior(z))(nodes)
    )


def moved_gamma_log_density(model, u):
    return model.log_density(jnp.exp(u)) + jnp.sum(u)


# models, their log densities in the coordinates of the test, and these coordinates
CHAINS = {
    "scale mixture": (ScaleMixture(), log_density, np.asarray),
    "positive": (Gamma(), moved_gamma_log_density, np.log),
    "bent": (Bent(), bent_log_density, np.asarray),
}


def errors_of(name, n, seeds):
    """The errors of losses by chains, and their ratios to the standard errors."""
    model, density, coordinates = CHAINS[name]
    x = draw(model, n, 3)
    u = coordinates(x)
    wanted = by_differentiation(lambda v: density(model, v), u, u.var(0, ddof=1))
    found = [
        lksd.estimate_scores(model, x, criteria="fisher", exact=False, seed=seed) for seed in seeds
    ]
    errors = np.array([one.losses[:, 0] - wanted for one in found])
    return errors, errors / np.array([one.loss_errors[:, 0] for one in found])


HONEST = (0.75, 1.3)  # mean squared ratios of errors to their standard errors


@pytest.mark.parametrize("name", ["scale mixture", "positive"])
def test_errors_by_chains_are_honest(name):
    assert HONEST[0] < np.mean(errors_of(name, 100, range(4))[1] ** 2) < HONEST[1]


@pytest.mark.slow
def test_errors_of_positive_data_are_honest_at_length():
    assert HONEST[0] < np.mean(errors_of("positive", 200, range(10))[1] ** 2) < HONEST[1]


def test_control_variates_of_high_degree_give_way_where_they_fail(monkeypatch):
    """Fitted on chains that have not seen the tails of a bent decoder's posterior, they are better
    than those of degree two at most observations and far worse at a few.
    """
    chosen, _ = errors_of("bent", 60, range(2))
    monkeypatch.setattr(losses, "variance_ratio", lambda averages, plain: median_error(averages))
    by_median, _ = errors_of("bent", 60, range(2))
    assert np.mean(chosen**2) < np.mean(by_median**2) / 2


def test_fewer_draws_move_no_loss():
    """There is no bias of order 1 / m."""
    rng = np.random.default_rng(468)
    model, x = ScaleMixture(), rng.standard_t(4, size=(60, 2))
    moved = []
    for seed in range(6):
        long, short = (
            lksd.estimate_scores(model, x, criteria="fisher", seed=seed, draws=draws)
            for draws in (400, 200)
        )
        moved.append(short.losses[:, 0] - long.losses[:, 0])
    moved = np.ravel(moved)
    assert abs(moved.mean()) < 3 * moved.std() / np.sqrt(len(moved))


def test_directions_are_scored_on_the_sphere():
    """E[|grad log p|^2 + Laplacian of log p] = 0 on draws, at any extension of the density."""
    means = np.eye(3)[:2]
    model = lksd.models.VonMisesFisherMixture([0.4, 0.6], means, [3.0, 6.0])
    x = draw(model, 2_000, 0)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    scores = lksd.estimate_scores(model, x, criteria="fisher")
    tangent = scores.score - x * np.sum(x * scores.score, 1, keepdims=True)
    squared = np.sum(tangent**2, 1)
    total = (scores.losses[:, 0] + squared) / 2
    assert abs(total.mean()) < 4 * total.std() / np.sqrt(len(total))
    assert total.std() > 0.1


def test_the_true_model_has_the_smallest_mean():
    models = {scale: lksd.models.PPCA(WEIGHT, scale) for scale in (0.7, 1.0, 1.4)}
    means = {
        scale: lksd.estimate_scores(model, X, criteria="fisher").losses.mean()
        for scale, model in models.items()
    }
    assert min(means, key=means.get) == 1.0


def test_what_does_not_change_with_the_draw_is_computed_once():
    x, z = jnp.ones(6), jnp.ones(2)
    criterion = lksd.criteria.Fisher(np.ones(6))
    ppca, scale = EXACT["PPCA"][0], ScaleMixture(dim=6)

    def trace(model):
        def at(z):
            u, slope = criterion.likelihood_slope(model, x, z)
            return criterion.trace(slope, u)

        return at

    assert not depends_on(trace(ppca), z)
    assert depends_on(trace(scale), jnp.ones(()))


def test_kinks_are_found_out():
    rng = np.random.default_rng(504)
    x = rng.normal(size=(40, 2))
    with pytest.raises(ValueError, match=r"no Fisher score: P: at its own draws .* kink"):
        lksd.compare(x, Laplace(), Laplace(spread=1.0), criterion="fisher", draws=40)
    result = lksd.compare(x, Laplace(), Laplace(spread=1.0), draws=40)
    assert result.criterion == "ksd"
    assert any("there is no Fisher score: P" in note for note in result.notes)


def test_units_do_not_matter():
    units = np.array([1.0, 10.0, 0.1, 1.0, 5.0, 1.0])
    p, q = lksd.models.PPCA(WEIGHT, 0.8), lksd.models.PPCA(WEIGHT, 1.0)

    def scaled(noise):
        return lksd.models.FactorAnalysis(WEIGHT * units[:, None], (noise * units) ** 2)

    one = lksd.compare(X, p, q, criterion="fisher", also=())
    other = lksd.compare(X * units, scaled(0.8), scaled(1.0), criterion="fisher", also=())
    assert one.statistic == pytest.approx(other.statistic, rel=1e-9)


def test_columns_in_another_order_are_matched_by_name():
    pandas = pytest.importorskip("pandas")
    names, order = list("abcdef"), [3, 0, 5, 1, 4, 2]
    p = lksd.models.PPCA(WEIGHT, 0.8, columns=names)
    q = lksd.models.PPCA(WEIGHT[order], 1.0, columns=[names[i] for i in order])
    frame = pandas.DataFrame(X, columns=names)
    plain = lksd.compare(
        X, lksd.models.PPCA(WEIGHT, 0.8), lksd.models.PPCA(WEIGHT, 1.0), criterion="fisher", also=()
    )
    found = lksd.compare(frame, p, q, criterion="fisher", also=())
    assert found.statistic == pytest.approx(plain.statistic, rel=1e-9)


def test_many_columns_are_probed_with_an_unbiased_trace():
    """Hutchinson's probes beyond 128 columns: errors that count them."""
    rng = np.random.default_rng(738)
    model, x = ScaleMixture(dim=150), rng.normal(size=(40, 150))
    metric = np.ones(150)
    wanted = fisher_losses(model, x, metric)
    found = lksd.estimate_scores(model, x, criteria=lksd.criteria.Fisher(metric))
    z = (found.losses[:, 0] - wanted) / found.loss_errors[:, 0]
    assert stats.kstest(z, "norm").pvalue > 1e-3


@pytest.mark.parametrize(
    ("metric", "said"), [([1.0, -1.0], "positive"), (1.0, "positive"), ([1.0, 2.0], "6 numbers")]
)
def test_bad_metrics(metric, said):
    with pytest.raises(ValueError, match=f"metric: expected .*{said}"):
        lksd.estimate_scores(EXACT["PPCA"][0], X, criteria=lksd.criteria.Fisher(metric))
