"""Hidden Markov models against the sum over all paths."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import oracles
import pytest
from scipy import stats
from scipy.special import logsumexp

import lksd
from lksd.models import HiddenMarkov
from lksd.models.base import float64_leaves
from lksd.samplers import Exact, Gibbs

RNG = np.random.default_rng(0)
FIRST, *TRANSITION = 0.7 * RNG.dirichlet(np.ones(3), 4) + 0.1
TRANSITION, EMISSION = np.array(TRANSITION), RNG.dirichlet(2 * np.ones(3), 3)
MODEL = HiddenMarkov(FIRST, TRANSITION, EMISSION)
LEFT_RIGHT = np.array([[0.6, 0.4, 0.0], [0.0, 0.7, 0.3], [0.0, 0.0, 1.0]])
ZEROS = HiddenMarkov(
    [0.9, 0.1, 0.0], LEFT_RIGHT, [[0.5, 0.5, 0.0], [0.0, 0.3, 0.7], [0.2, 0.0, 0.8]]
)
ROOTS = RNG.normal(size=(3, 2, 2))
MEANS, COVARIANCES = 0.7 * RNG.normal(size=(3, 2)), ROOTS @ np.swapaxes(ROOTS, 1, 2) / 4 + np.eye(2)
GAUSSIAN = HiddenMarkov(FIRST, TRANSITION, (MEANS, COVARIANCES))
OPERATORS = (lksd.stein.Difference(3), lksd.stein.Barker(3))
SEQUENCES = [
    row[:length].tolist()
    for row, length in zip(RNG.integers(0, 3, (80, 6)), itertools.cycle([6, 4, 5, 1]), strict=False)
]


def paths(model, length):
    """All paths, and the probability of each."""
    every = oracles.lattice(3, length)
    return every, np.array(
        [model.first[z[0]] * np.prod(model.transition[z[:-1], z[1:]]) for z in every]
    )


def joint(model, x):
    """p(z, x) for every path z."""
    every, prior = paths(model, len(x))
    return prior * np.prod(model.emission[every, x], 1)


def gaussian_joint(model, x):
    """log p(z, x) for every path z, and the gradient of log p(x | z)."""
    points, every = x.reshape(-1, 2), paths(model, len(x) // 2)[0]
    means, covariances = model.emission
    log_densities = np.array(
        [
            stats.multivariate_normal(m, c).logpdf(points)
            for m, c in zip(means, covariances, strict=True)
        ]
    )
    slopes = -np.array(
        [np.linalg.solve(c, (points - m).T).T for m, c in zip(means, covariances, strict=True)]
    )
    steps = np.arange(len(points))
    with np.errstate(divide="ignore"):
        log_prior = np.log(paths(model, len(points))[1])
    return log_prior + log_densities[every, steps].sum(1), slopes[every, steps].reshape(
        len(every), -1
    )


def assert_law(draws, points, probabilities):
    """Draws in rows come up as often as the probabilities of the points say (a chi-square test,
    rare points pooled).
    """
    codes = {tuple(point): index for index, point in enumerate(points.tolist())}
    observed = np.bincount(
        [codes[tuple(draw)] for draw in np.asarray(draws).tolist()], minlength=len(points)
    )
    expected = len(draws) * probabilities / probabilities.sum()
    assert observed[expected == 0].sum() == 0
    rare = expected < 5
    pooled = [np.append(part[~rare], part[rare].sum()) for part in (observed, expected)]
    keep = pooled[1] > 0
    assert stats.chisquare(pooled[0][keep], pooled[1][keep]).pvalue > 1e-4


def assert_within_errors(score, exact, mcse):
    noisy = mcse > 1e-12
    # averaged over all the latent, or after the end
    np.testing.assert_allclose(score[~noisy], exact[~noisy], atol=1e-12)
    z = (score - exact)[noisy] / mcse[noisy]
    assert z.size > 100
    assert np.abs(z).max() < 5
    assert 0.7 < np.mean(z**2) < 1.4


def many(function, count=20_000):
    """float64 draws by ``function(key)``."""
    with jax.enable_x64(True):
        return jax.jit(jax.vmap(function))(jax.random.split(jax.random.key(0), count))


# ------------------------------------------------------------- categorical emissions


@pytest.mark.parametrize("model", [MODEL, ZEROS], ids=["positive", "with zeros"])
@pytest.mark.parametrize("length", [4, 2])
def test_marginals_by_all_paths(model, length):
    pmf = {tuple(x): joint(model, x).sum() for x in oracles.lattice(3, length).tolist()}
    assert sum(pmf.values()) == pytest.approx(1, abs=1e-12)
    values = np.tile(np.arange(3), (4, 1))
    values[length:] = -1
    with jax.enable_x64(True):
        moved = float64_leaves(model)
        log_marginal, ratios = (
            jax.jit(jax.vmap(moved.log_marginal)),
            jax.jit(jax.vmap(lambda x: moved.marginal_ratios(x, values))),
        )
        possible = np.array([x for x, mass in pmf.items() if mass > 0], np.int32)
        padded = np.pad(possible, ((0, 0), (0, 4 - length)), constant_values=-1)
        logs, found = log_marginal(padded), ratios(padded)
    np.testing.assert_allclose(logs, [np.log(pmf[x]) for x in map(tuple, possible)], rtol=1e-11)
    for x, row in zip(map(tuple, possible.tolist()), np.asarray(found), strict=True):
        expected = [
            [pmf[oracles.replaced(x, d, v)] / pmf[x] for v in range(3)] for d in range(length)
        ]
        np.testing.assert_allclose(row[:length], expected, rtol=1e-11, atol=1e-14)


def test_densities_of_one_path():
    x, z = np.array([2, 0, 1, -1]), np.array([1, 1, 0, -1])
    with jax.enable_x64(True):
        prior, likelihood = (
            MODEL.log_prior(jnp.asarray(z)),
            MODEL.log_likelihood(jnp.asarray(x), jnp.asarray(z)),
        )
    assert float(prior) == pytest.approx(
        np.log(FIRST[1] * TRANSITION[1, 1] * TRANSITION[1, 0]), rel=1e-12
    )
    assert float(likelihood) == pytest.approx(
        np.log(EMISSION[1, 2] * EMISSION[1, 0] * EMISSION[0, 1]), rel=1e-12
    )


def test_modified_posterior_by_all_paths():
    """Between x and its neighbour: p(x) + p(neighbour) is the marginal, and the neighbour's share
    of each path averages right.
    """
    x, other = np.array([0, 2, 1]), np.array([0, 2, 2])
    own, moved = joint(MODEL, x), joint(MODEL, other)
    with jax.enable_x64(True):
        values = jnp.asarray((x[:, None] + 1) % 3)
        between = MODEL.at(jnp.asarray(x), values).between(x, values, 2, 0)
        log_marginal = between.log_marginal()
        shares = jax.vmap(lambda z: between.share(x, values, 2, 0, z))(
            jnp.asarray(paths(MODEL, 3)[0])
        )
    assert float(log_marginal) == pytest.approx(np.log((own + moved).sum()), rel=1e-12)
    np.testing.assert_allclose(shares, moved / (own + moved), rtol=1e-12)


@pytest.mark.parametrize(
    ("sampler", "control"),
    [(Gibbs(), "auto"), (Exact(), "auto"), pytest.param(Gibbs(), "none", marks=pytest.mark.slow)],
    ids=str,
)
def test_scores_within_their_errors(sampler, control):
    exact = lksd.estimate_scores(MODEL, SEQUENCES, operator=OPERATORS, exact=True)
    options = {"operator": OPERATORS, "exact": False, "control_variates": control}
    found = lksd.estimate_scores(MODEL, SEQUENCES, sampler=sampler, draws=2000, **options)
    assert ("Rao-Blackwellised" if control == "auto" else "plain means") in found.method
    for score, expected, mcse in zip(found.score, exact.score, found.mcse, strict=True):
        assert_within_errors(score, expected, mcse)


@pytest.mark.parametrize("length", [4, 3])
@pytest.mark.parametrize("name", ["gibbs", "sample_posterior"])
def test_posterior_draws(name, length):
    x = np.array([0, 2, 1, 1])[:length]
    every, padding = paths(MODEL, length)[0], 4 - length
    given = jnp.pad(jnp.asarray(x), (0, padding), constant_values=-1)
    start = jnp.pad(jnp.zeros(length, jnp.int32), (0, padding), constant_values=-1)

    def draw(key):
        if name == "sample_posterior":
            return MODEL.sample_posterior(key, given)
        sweeps = jax.random.split(key, 40)
        return jax.lax.scan(lambda z, one: (MODEL.gibbs(one, given, z), None), start, sweeps)[0]

    assert_law(
        many(draw), np.pad(every, ((0, 0), (0, padding)), constant_values=-1), joint(MODEL, x)
    )


@pytest.mark.parametrize("model", [MODEL, ZEROS], ids=["positive", "with zeros"])
def test_samples_have_the_joint_law(model):
    points = [(x, joint(model, x)) for x in oracles.lattice(3, 3)]
    every = paths(model, 3)[0]
    pairs = np.concatenate([np.hstack([every, np.tile(x, (27, 1))]) for x, _ in points])
    assert_law(
        np.hstack(many(lambda key: model.sample(key, 3))),
        pairs,
        np.concatenate([mass for _, mass in points]),
    )
    start = many(lambda key: model.initial(key, jnp.array([0, 0, 0, -1])))
    assert_law(start, np.pad(every, ((0, 0), (0, 1)), constant_values=-1), paths(model, 3)[1])


def test_mean_probabilities_of_a_chain_without_a_limit():
    periodic = HiddenMarkov([1.0, 0.0], [[0.0, 1.0], [1.0, 0.0]], [[0.9, 0.1], [0.3, 0.7]])
    np.testing.assert_allclose(periodic.value_probabilities(), [0.6, 0.4], rtol=1e-12)


@pytest.mark.filterwarnings("ignore::lksd.LksdWarning")  # of values without probability
def test_impossible_sequences_are_named():
    x = oracles.lattice(3, 4)
    impossible = ZEROS.impossible(x).any(1)
    np.testing.assert_array_equal(impossible, [joint(ZEROS, row).sum() == 0 for row in x])
    assert 0 < impossible.sum() < len(x)
    with pytest.raises(
        ValueError,
        match=r"value 2 in observation 1 \(counting from 0\) has probability zero under "
        r"HiddenMarkov",
    ):
        lksd.estimate_scores(
            HiddenMarkov([0.5, 0.5], np.eye(2), [[0.5, 0.5, 0.0]] * 2), [[0, 1, 0, 1], [0, 0, 2, 1]]
        )


# ------------------------------------------------------------- Gaussian emissions


def test_gaussian_marginals_by_all_paths():
    outliers = HiddenMarkov(
        [1.0, 0.0, 0.0], LEFT_RIGHT, (60.0 * np.arange(3)[:, None] + np.zeros((3, 2)), COVARIANCES)
    )
    for model, x in (
        (GAUSSIAN, 2 * RNG.normal(size=(5, 8))),
        (outliers, 120 + RNG.normal(size=(5, 8))),
    ):
        with jax.enable_x64(True):
            logs = jax.vmap(float64_leaves(model).log_marginal)(jnp.asarray(x))
        each = [gaussian_joint(model, point) for point in x]
        np.testing.assert_allclose(
            logs, [logsumexp(log_joint) for log_joint, _ in each], rtol=1e-11
        )
        score = [np.exp(log_joint - logsumexp(log_joint)) @ slopes for log_joint, slopes in each]
        np.testing.assert_allclose(
            lksd.estimate_scores(model, x, exact=True).score, score, rtol=1e-9, atol=1e-11
        )


@pytest.mark.parametrize("sampler", [Gibbs(), Exact()], ids=str)
def test_gaussian_scores_within_their_errors(sampler):
    x = np.asarray(many(lambda key: GAUSSIAN.sample(key, 10), 60)[1])
    found = lksd.estimate_scores(GAUSSIAN, x, exact=False, sampler=sampler, draws=2000)
    assert_within_errors(found.score, lksd.estimate_scores(GAUSSIAN, x).score, found.mcse)


def test_gaussian_samples():
    z, x = many(lambda key: GAUSSIAN.sample(key, 6), 4000)
    assert_law(z, *paths(GAUSSIAN, 3))
    factors, centred = (
        np.linalg.cholesky(COVARIANCES)[np.asarray(z)],
        np.asarray(x).reshape(-1, 3, 2) - MEANS[np.asarray(z)],
    )
    assert stats.kstest(np.linalg.solve(factors, centred[..., None]).ravel(), "norm").pvalue > 1e-4


def test_what_gaussian_emissions_lack():
    for name in ("n_values", "marginal_ratios", "value_probabilities", "impossible"):
        assert hasattr(MODEL, name)
        assert not hasattr(GAUSSIAN, name)
    with pytest.raises(ValueError, match="expected 2 numbers for each step; got 7"):
        lksd.estimate_scores(GAUSSIAN, np.ones((5, 7)), exact=False)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"initial": np.ones(2) / 2},
            r"HiddenMarkov: expected initial \(K,\).*got \(2,\), \(3, 3\) and \(3, 3\)",
        ),
        ({"emission": np.ones((3, 1))}, "at least two values"),
        ({"emission": (MEANS, COVARIANCES[:2])}, r"means \(K, d\).*and \(3, 2\), \(2, 2, 2\)"),
        ({"initial": [0.5, 0.6, -0.1]}, "initial: expected probabilities; the smallest is -0.1"),
        (
            {"transition": TRANSITION * [[1], [1], [1.1]]},
            "transition: expected probabilities that sum to 1; row 2 sums to 1.1",
        ),
        ({"emission": np.full((3, 2), np.nan)}, "emission: expected finite"),
        ({"emission": (MEANS * np.inf, COVARIANCES)}, "means: expected finite"),
        (
            {"emission": (MEANS, -COVARIANCES)},
            "covariances: expected symmetric positive definite matrices; number 0 is not",
        ),
    ],
)
def test_bad_parameters(change, message):
    with pytest.raises(ValueError, match=message):
        HiddenMarkov(
            **({"initial": FIRST, "transition": TRANSITION, "emission": EMISSION} | change)
        )
