"""Scores from coupled chains: no bias where the plain means have one, by replications against exact
scores.
"""

import jax
import jax.numpy as jnp
import ksd
import numpy as np
import pytest
from scipy import stats

import lksd
from lksd.models import LDA, PPCA, GaussianMixture, LatentVariableModel
from lksd.models.composed import Smoothed
from lksd.reproduce.problems.ppca import LATENT, PROBLEM_1, kernel, perturbed, weight
from lksd.samplers import HMC, MALA, NUTS, BoxStart, Exact, NormalStart, RandomWalk, WithinGibbs
from lksd.samplers.coupling import coupled

RNG = np.random.default_rng(0)
COPIES = 600
GAUSSIAN = PPCA(RNG.normal(size=(4, 2)), 0.7)
POINTS = 1.5 * RNG.normal(size=(2, 4))
DOCUMENTS = LDA([0.3, 0.2, 0.5], RNG.dirichlet(np.ones(6), 3))
WORDS = RNG.integers(0, 6, (2, 7))


def z_scores(model, points, **options):
    """The bias of the estimate at each point in standard errors, over independent copies: (points,
    coordinates).
    """
    x = np.repeat(points, COPIES, axis=0)
    estimate = lksd.estimate_scores(
        model, x, exact=False, chains=1, control_variates="none", **options
    )
    exact = lksd.estimate_scores(model, points, exact=True, operator=options.get("operator"))
    errors = estimate.score.reshape(len(points), COPIES, -1) - exact.score[:, None]
    return errors.mean(1) / (errors.std(1, ddof=1) / np.sqrt(COPIES)), estimate


CHAINS = {
    "HMC": (
        HMC(step_size=0.7, inverse_mass_matrix=np.array([0.2, 0.2])),
        {"warmup": 0, "draws": 2},
    ),
    "MALA": (MALA(step_size=0.02), {"warmup": 5, "draws": 10}),
}


@pytest.mark.parametrize("name", ["HMC", pytest.param("MALA", marks=pytest.mark.slow)])
def test_gaussian_scores_have_no_bias(name):
    sampler, lengths = CHAINS[name]
    options = {"sampler": sampler, "initial": NormalStart(3.0), **lengths}
    plain, _ = z_scores(GAUSSIAN, POINTS, **options)
    unbiased, estimate = z_scores(GAUSSIAN, POINTS, unbiased=True, **options)
    assert np.abs(plain).max() > 10
    assert np.abs(unbiased).max() < 3
    assert estimate.meeting_times.shape == (2 * COPIES, 1)
    assert (estimate.meeting_times > 0).all()
    assert f"{estimate.meeting_times.max()} at most, unbiased" in estimate.method


def test_topic_ratios_have_no_bias():
    options = {"operator": "difference", "warmup": 0, "draws": 2}
    plain, _ = z_scores(DOCUMENTS, WORDS, **options)
    unbiased, estimate = z_scores(DOCUMENTS, WORDS, unbiased=True, **options)
    assert np.abs(plain).max() > 10
    assert np.abs(unbiased).max() < 3
    assert np.median(estimate.meeting_times) < 10


def test_coupled_sweeps_are_sweeps():
    """Each of the two chains moves as one alone; chains that are equal stay so."""
    document = DOCUMENTS.at(jnp.asarray(WORDS[0]), jnp.asarray(WORDS[0])[:, None])
    keys = jax.random.split(jax.random.key(0), 4000)
    z, other = jnp.array([0, 1, 2, 0, 1, 2, 0]), jnp.array([2, 2, 2, 2, 2, 2, 2])
    first, second = jax.vmap(lambda key: document.coupled_gibbs(key, None, z, other))(keys)
    for both, start in ((first, z), (second, other)):
        alone = jax.vmap(lambda key, start=start: document.gibbs(key, None, start))(
            jax.random.split(jax.random.key(1), 4000)
        )
        for d in range(7):
            counts = [np.bincount(np.asarray(part)[:, d], minlength=3) for part in (both, alone)]
            assert stats.chi2_contingency(counts).pvalue > 1e-4
    assert 0.4 < np.mean(np.asarray(first) == np.asarray(second)) < 1
    same = jax.vmap(lambda key: document.coupled_gibbs(key, None, z, z))(keys)
    np.testing.assert_array_equal(*same)


def test_proposals_are_maximally_coupled():
    """N(0, 1) and N(1, 1) share a draw with probability 2 Phi(-1/2), and each has its own law."""
    flat = coupled(RandomWalk(step_size=1.0))

    class Flat(LatentVariableModel):
        def log_prior(self, z):
            return 0.0 * jnp.sum(z)

        def log_likelihood(self, x, z):
            return 0.0 * jnp.sum(x)

    def step(key):
        a, b = (flat.init(Flat(), jnp.zeros(1), jnp.array([start])) for start in (0.0, 1.0))
        return tuple(
            state.position[0] for state in flat.step(key, a, b, (Flat(), Flat()), jnp.zeros(1))
        )

    with jax.enable_x64(True):
        a, b = (
            np.asarray(part) for part in jax.vmap(step)(jax.random.split(jax.random.key(0), 5000))
        )
    assert stats.kstest(a, "norm").pvalue > 0.001
    assert stats.kstest(b, "norm", args=(1.0,)).pvalue > 0.001
    assert stats.binomtest(int(np.sum(a == b)), 5000, 2 * stats.norm.cdf(-0.5)).pvalue > 0.001


def test_the_parts_of_an_estimate(tmp_path):
    mixture = GaussianMixture([0.5, 0.5], [[-1.0], [1.0]], [np.eye(1)] * 2)
    x = RNG.normal(size=(30, 1))
    options = {"exact": False, "unbiased": True, "draws": 20, "warmup": 0, "chains": 2}
    estimate = lksd.estimate_scores(mixture, x, sampler=Exact(), **options)
    assert estimate.batch_means.shape == (30, 2, 1, 1)
    np.testing.assert_allclose(estimate.score, estimate.batch_means.mean((1, 2)))
    assert (estimate.meeting_times <= 1).all()
    whole = lksd.estimate_scores(mixture, x, sampler=Exact(), batch_size=16, **options)
    part = lksd.estimate_scores(mixture, x[:7], sampler=Exact(), **options)
    np.testing.assert_array_equal(whole.score, estimate.score)
    np.testing.assert_array_equal(part.score, estimate.score[:7])
    estimate.save(tmp_path / "scores.npz")
    np.testing.assert_array_equal(
        lksd.load_scores(tmp_path / "scores.npz").meeting_times, estimate.meeting_times
    )
    assert "unbiased" in str(
        ksd.compare(
            x, mixture, mixture, sampler=Exact(), exact=False, unbiased=True, draws=20, warmup=0
        )
    )


TWO_FAR = PPCA(np.ones((2, 1)), 0.1)
CASES = {
    "never meet": (
        lambda: lksd.estimate_scores(
            TWO_FAR,
            np.ones((4, 2)),
            exact=False,
            unbiased=True,
            warmup=0,
            draws=2,
            meeting_limit=20,
            sampler=MALA(step_size=1e-9),
        ),
        r"unbiased: coupled chains had not met after 20 steps for observation 0 \(4 of 4 "
        r"observations\).*meeting_limit",
    ),
    "NUTS": (
        lambda: lksd.estimate_scores(
            TWO_FAR, np.ones((4, 2)), exact=False, unbiased=True, sampler=NUTS(0.1, np.ones(1))
        ),
        "sampler: no coupling of two chains is known for NUTS",
    ),
    "Barker": (
        lambda: lksd.estimate_scores(
            DOCUMENTS, WORDS, exact=False, unbiased=True, operator="barker"
        ),
        "unbiased: scores of Barker.* are not posterior means.*difference",
    ),
    "limit alone": (
        lambda: lksd.estimate_scores(TWO_FAR, np.ones((4, 2)), meeting_limit=5),
        "meeting_limit: expected with unbiased",
    ),
    "limit of nothing": (
        lambda: lksd.estimate_scores(
            TWO_FAR, np.ones((4, 2)), exact=False, unbiased=True, meeting_limit=0
        ),
        "meeting_limit: expected an integer of at least 1",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_bad_input(case):
    call, message = CASES[case]
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::lksd.LksdWarning")
def test_slow_chains_keep_the_level():
    """The paper's slow MALA (Figure 5) at n = 300, 1,000 draws after 50: plain means reject,
    unbiased scores do not.
    """
    n, trials, rejected = 300, 10, {False: 0, True: 0}
    p, q = (perturbed(delta, 100) for delta in PROBLEM_1)
    slow = {
        "sampler": MALA(step_size=1e-4 * LATENT ** (-1 / 3)),
        "initial": NormalStart(np.ones(LATENT)),
    }
    quick = {"sampler": NUTS(), "initial": BoxStart()}
    common = {"exact": False, "control_variates": "none", "chains": 1, "warmup": 50}
    for trial in range(trials):
        rng = np.random.default_rng(10_000 + trial)
        x = rng.normal(size=(n, LATENT)) @ weight(100).T + rng.normal(size=(n, 100))
        score_q = lksd.estimate_scores(q, x, draws=500, seed=5000 + trial, **quick, **common).score
        for unbiased in rejected:
            limit = 200_000 if unbiased else None
            options = (
                common
                | slow
                | {"draws": 1000, "seed": trial, "unbiased": unbiased, "meeting_limit": limit}
            )
            score_p = lksd.estimate_scores(p, x, **options).score
            rejected[unbiased] += lksd.compare_scores(
                x, score_p, score_q, kernel("imq", 100), calibration="normal"
            ).reject
    assert rejected[False] == trials
    assert rejected[True] <= 2  # P(3 or more of 10 at level 0.05) = 0.012


@pytest.mark.slow
def test_other_couplings_have_no_bias():
    """A random walk; and HMC within Gibbs on a latent of an integer and a real, of a mixture with
    noise added.
    """
    options = {"unbiased": True, "initial": NormalStart(3.0), "warmup": 5, "draws": 10}
    assert (
        np.abs(z_scores(GAUSSIAN, POINTS, sampler=RandomWalk(step_size=0.2), **options)[0]).max()
        < 3
    )
    mixture, x = (
        GaussianMixture([0.3, 0.7], [[-1.0], [1.0]], np.ones((2, 1, 1))),
        np.repeat([[0.5], [-1.5]], 4000, axis=0),
    )
    sampler = WithinGibbs(HMC(step_size=0.5, inverse_mass_matrix=np.array([0.4])))
    options = {"warmup": 0, "draws": 1, "chains": 1, "control_variates": "none", "seed": 1}
    found = lksd.estimate_scores(
        Smoothed(mixture, 0.8), x, sampler=sampler, unbiased=True, **options
    )
    errors = (found.score - lksd.estimate_scores(mixture.smoothed(0.8), x).score).reshape(2, 4000)
    assert np.abs(errors.mean(1) / errors.std(1) * np.sqrt(4000)).max() < 3
