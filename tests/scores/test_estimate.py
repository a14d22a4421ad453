"""Estimated scores against exact ones."""

import subprocess
import sys
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import lksd
from lksd import _jax
from lksd.models import PPCA, FactorAnalysis, GaussianMixture, LatentVariableModel
from lksd.samplers import HMC, MALA, NUTS, BoxStart, Exact, NormalStart, RandomWalk
from lksd.scores import convergence

RNG = np.random.default_rng(0)
MODEL = PPCA(RNG.random((6, 2)), 0.8, RNG.normal(size=6))
X = RNG.normal(size=(20, 6))


class Decoder(LatentVariableModel):
    """x | z ~ N(tanh(W z), sd^2 I): no closed form."""

    weight: np.ndarray
    sd: float

    def log_prior(self, z):
        return -jnp.sum(z**2) / 2

    def log_likelihood(self, x, z):
        return -jnp.sum((x - jnp.tanh(self.weight @ z)) ** 2) / (2 * self.sd**2)

    def sample(self, key):
        key_z, key_x = jax.random.split(key)
        z = jax.random.normal(key_z, (self.weight.shape[1],))
        return z, jnp.tanh(self.weight @ z) + self.sd * jax.random.normal(
            key_x, (self.weight.shape[0],)
        )


def exact(model=MODEL, x=X):
    return lksd.estimate_scores(model, x, exact=True).score


def sampled(model=MODEL, x=X, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lksd.LksdWarning)  # short chains mix poorly, and say so
        return lksd.estimate_scores(model, x, exact=False, **options)


SLOW = pytest.mark.slow


@pytest.mark.parametrize(
    "sampler",
    [
        HMC(),
        NUTS(),
        pytest.param(MALA(), marks=SLOW),
        pytest.param(RandomWalk(), marks=SLOW),
        pytest.param(Exact(), marks=SLOW),
    ],
    ids=lambda s: type(s).__name__,
)
def test_plain_means_lie_within_their_errors(sampler):
    found = sampled(sampler=sampler, warmup=300, draws=2000, control_variates="none")
    z = (found.score - exact()) / found.mcse
    assert np.abs(z).max() < 6
    assert 0.5 < z.std() < 1.6
    assert found.mcse.min() > 0


@pytest.mark.parametrize(
    "model", [MODEL, FactorAnalysis(RNG.normal(size=(6, 3)), np.linspace(0.3, 2, 6))], ids=str
)
def test_control_variates_are_exact_for_gaussian_posteriors(model):
    found = sampled(model, draws=50)
    assert "control variates" in found.method
    np.testing.assert_allclose(found.score, exact(model), atol=1e-8)


def test_mixture_by_exact_draws():
    model = GaussianMixture(
        [0.4, 0.6],
        np.array([[-1.0, 0.0], [1.5, 1.0]]),
        np.array([np.eye(2), [[2.0, 0.5], [0.5, 1.0]]]),
    )
    x = RNG.normal(size=(15, 2))
    found = sampled(model, x, draws=4000)
    assert found.method.startswith("Exact")
    z = (found.score - exact(model, x)) / np.maximum(found.mcse, 1e-12)
    assert np.abs(z).max() < 6
    assert np.abs(found.score - exact(model, x)).max() < 0.1


def test_nonlinear_decoder_by_importance_sampling():
    weight, sd = np.random.default_rng(1).normal(size=(5, 2)), 0.7
    model = Decoder(weight, sd)
    x = np.random.default_rng(2).normal(size=(6, 5))
    z = np.random.default_rng(3).normal(size=(400_000, 2))
    mean = np.tanh(z @ weight.T)
    for point, score, error in zip(
        x,
        *(getattr(sampled(model, x, draws=4000), name) for name in ("score", "mcse")),
        strict=True,
    ):
        log_weights = -np.sum((point - mean) ** 2, 1) / (2 * sd**2)
        weights = np.exp(log_weights - log_weights.max())
        weights /= weights.sum()
        expected = -(point - weights @ mean) / sd**2
        # of the importance estimate
        spread = np.sqrt(weights**2 @ (mean - weights @ mean) ** 2) / sd**2
        assert (np.abs(score - expected) < 6 * np.hypot(error, spread)).all()


def test_mcse_is_honest():
    """Two hundred copies of one observation: independent chains, whose z-scores have standard
    deviation one.
    """
    found = sampled(
        x=np.repeat(X[:1], 200, 0), warmup=100, draws=4000, chains=1, control_variates="none"
    )
    z = (found.score - exact(x=X[:1])) / found.mcse
    assert found.ess.min() > 200
    assert 0.9 <= z.std() <= 1.15


@SLOW
def test_control_variates_have_no_bias_of_one_sign():
    """With few draws of a nonlinear model, the mean error over many chains is nil within its
    standard error.
    """
    weight = np.random.default_rng(1).normal(size=(3, 2))
    model, x = Decoder(weight, 0.7), np.repeat(np.array([[0.5, -0.4, 0.9]]), 400, 0)
    long = sampled(model, x[:16], warmup=500, draws=20_000).score
    short = sampled(model, x, warmup=300, draws=40)
    assert "control variates" in short.method
    difference = short.score.mean(0) - long.mean(0)
    error = np.hypot(short.score.std(0, ddof=1) / np.sqrt(400), long.std(0, ddof=1) / np.sqrt(16))
    assert (np.abs(difference) < 4 * error).all()


@pytest.mark.parametrize("control", ["auto", pytest.param("none", marks=SLOW)])
def test_observations_are_independent_of_their_company(control):
    options = {"draws": 60, "warmup": 20, "control_variates": control}
    whole = sampled(**options)
    order = np.random.default_rng(1).permutation(len(X))[:13]
    part = sampled(x=X[order], index=order, **options)
    np.testing.assert_array_equal(part.score, whole.score[order])
    np.testing.assert_array_equal(part.mcse, whole.mcse[order])
    np.testing.assert_array_equal(sampled(x=X[:7], **options).score, whole.score[:7])
    for batch_size in (1, 7, 20):
        np.testing.assert_array_equal(sampled(batch_size=batch_size, **options).score, whole.score)


def test_seeds_differ_and_repeat():
    options = {"draws": 40, "warmup": 10, "control_variates": "none"}
    np.testing.assert_array_equal(
        sampled(seed=3, **options).score, sampled(seed=3, **options).score
    )
    assert np.abs(sampled(seed=3, **options).score - sampled(seed=4, **options).score).min() > 0


def test_one_compilation_serves_all_models_of_one_shape():
    sampled(draws=40, warmup=10)
    before = len(_jax.programs)
    sampled(PPCA(RNG.random((6, 2)), 1.3, np.zeros(6)), X + 1, draws=40, warmup=10, seed=5)
    assert len(_jax.programs) == before


def test_fallbacks_say_so():
    assert "plain means" in sampled(chains=1, draws=40).method
    assert "control variates need" in sampled(chains=1, draws=40).notes[0]


@pytest.mark.parametrize("chains", [1, 2, 4])
@pytest.mark.parametrize("length", [8, 11, 50, 201])
def test_diagnostics_equal_arviz(chains, length):
    import arviz  # a development dependency; slow to load

    for correlation in (-0.97, -0.5, 0.0, 0.6, 0.95, 0.999):
        x = np.random.default_rng(length).normal(size=(chains, length, 4))
        for t in range(1, length):
            x[:, t] += correlation * x[:, t - 1]
        x[0, :, 2] += 1.0
        x[:, :, 3] = 1.0
        rhat, ess = convergence.rhat_and_ess(x)
        each = [np.ascontiguousarray(x[:, :, k]) for k in range(4)]
        np.testing.assert_allclose(ess, [arviz.ess(one, method="bulk") for one in each], rtol=1e-10)
        if chains > 1:  # of one chain ArviZ says nothing
            with np.errstate(invalid="ignore"):
                np.testing.assert_allclose(rhat, [arviz.rhat(one) for one in each], rtol=1e-10)


def test_save_and_load(tmp_path):
    path = tmp_path / "scores.npz"
    found = sampled(draws=40)
    found.save(path)
    loaded = lksd.load_scores(path)
    np.testing.assert_array_equal(loaded.score, found.score)
    assert (loaded.method, loaded.seed, str(loaded)) == (found.method, found.seed, str(found))
    path.write_bytes(b"nothing")
    with pytest.raises(ValueError, match="expected scores written by"):
        lksd.load_scores(path)


def begun(initial, seed=0):
    """Where chains that never move begin, from their conditional scores."""
    frozen = MALA(step_size=1e-30)
    found = sampled(
        x=np.repeat(X[:1], 400, 0),
        sampler=frozen,
        warmup=0,
        draws=1,
        initial=initial,
        seed=seed,
        control_variates="none",  # nothing is run again
    )
    mean = X[:1] + found.score * float(MODEL.noise_scale) ** 2
    return np.linalg.lstsq(MODEL.weight, (mean - MODEL.mean).T, rcond=None)[0].T


def test_chains_begin_where_they_are_told():
    normal = begun(NormalStart(np.array([1.0, -2.0]), 0.5))
    assert all(
        stats.kstest((normal[:, i] - mean) / 0.5, "norm").pvalue > 1e-3
        for i, mean in enumerate((1.0, -2.0))
    )
    assert stats.kstest(begun(BoxStart(-2.0, 2.0)).ravel(), stats.uniform(-2, 4).cdf).pvalue > 1e-3
    assert stats.kstest(begun(None).ravel(), "norm").pvalue > 1e-3


def test_linear_algebra_in_chains_does_not_hang():
    """Programs that call LAPACK wait for each other for ever when they run at the same time."""
    code = """
import numpy as np, lksd
rng = np.random.default_rng(0)
means, covariances = rng.normal(size=(10, 40)), np.stack([np.eye(40)] * 10)
model = lksd.models.GaussianMixture(np.full(10, 0.1), means, covariances)
lksd.estimate_scores(model, rng.normal(size=(80, 40)), exact=False)
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300)


def test_to_arviz():
    import arviz  # a development dependency; slow to load

    found = sampled(draws=40, control_variates="none")
    data = found.to_arviz()
    assert dict(data.posterior.sizes) == {
        "chain": 2,
        "draw": 10,
        "observation": 20,
        "coordinate": 6,
    }
    np.testing.assert_allclose(
        data.posterior["score"].mean(("chain", "draw")), found.score, rtol=1e-12
    )
    np.testing.assert_array_equal(data.constant_data["rhat"], found.rhat)
    assert len(arviz.summary(data, var_names=["score"])) == 20 * 6
    with pytest.raises(ValueError, match="exact, so there are no chains"):
        lksd.estimate_scores(MODEL, X).to_arviz()


def test_poor_mixing_is_warned_of():
    slow = {
        "exact": False,
        "sampler": MALA(step_size=1e-6),
        "warmup": 10,
        "draws": 200,
        "control_variates": "none",
    }
    with pytest.warns(lksd.LksdWarning, match="chains have not converged at 20 of 20 observations"):
        lksd.estimate_scores(MODEL, X, **slow)


# ------------------------------------------------------------- bad input


class Broken(LatentVariableModel):
    """A model with one thing wrong at a time."""

    fault: str

    def log_prior(self, z):
        return jnp.where(self.fault == "prior", -jnp.inf, -jnp.sum(z**2) / 2)

    def log_likelihood(self, x, z):
        if self.fault == "shape":
            return -((x - z) ** 2) / 2
        value = -jnp.sum((x - z) ** 2) / 2
        return jnp.where((self.fault == "nan") & (x[0] > 100), jnp.nan, value)

    def sample(self, key):
        return jnp.zeros(()), jnp.zeros(2)


class Silent(LatentVariableModel):
    def log_prior(self, z):
        return -(z**2)

    def log_likelihood(self, x, z):
        return -jnp.sum((x - z) ** 2)


class Unnormalised(Silent):
    normalised = False

    def sample(self, key):
        return jnp.zeros(()), jnp.zeros(2)


class Swapped(Silent):
    def sample(self, key):
        return jnp.zeros(2), jnp.zeros(())


class Scalar(Silent):
    def sample(self, key):
        return jnp.zeros(()), jnp.zeros(2)

    def marginal_score(self, x):
        return x.sum()


Y = np.full((6, 2), 0.5) + np.arange(6)[:, None]
Y_FAR = np.where(np.arange(6)[:, None] == 4, 200.0, Y)


@pytest.mark.parametrize(
    ("model", "x", "options", "kind", "message"),
    [
        (
            Broken("nan"),
            Y_FAR,
            {},
            ValueError,
            "log_likelihood is not finite at the initial point for observation 4",
        ),
        (
            Broken("prior"),
            Y,
            {},
            ValueError,
            "log_prior is not finite at the initial point for observation 0",
        ),
        (
            Broken("shape"),
            Y,
            {},
            ValueError,
            "log_likelihood of Broken to return one number; got shape",
        ),
        (Silent(), Y, {}, TypeError, "neither sample"),
        (Unnormalised(), Y, {}, ValueError, "sample_likelihood"),
        (Broken, Y, {}, TypeError, "expected an instance"),
        (3, Y, {}, TypeError, "expected an instance"),
        (
            MODEL,
            Y,
            {"exact": False},
            ValueError,
            r"expected sample\(key\) of PPCA to return .* of shape \(2,\)",
        ),
        (Broken(""), Y, {"exact": True}, ValueError, "has neither log_marginal"),
        (Broken(""), Y, {"sampler": HMC}, TypeError, "sampler: expected a sampler"),
        (Broken(""), Y, {"draws": 0}, ValueError, "draws: expected an integer of at least 1"),
        (Broken(""), Y, {"warmup": -1}, ValueError, "warmup: expected an integer of at least 0"),
        (
            Broken(""),
            Y,
            {"index": [0, 0, 1, 2, 3, 4]},
            ValueError,
            "index: expected 6 different integers",
        ),
        (
            Broken(""),
            Y,
            {"control_variates": "yes"},
            ValueError,
            "control_variates: expected one of",
        ),
        (Broken(""), Y, {"sampler": Exact()}, ValueError, "has no sample_posterior"),
        (
            MODEL,
            X,
            {"exact": False, "sampler": HMC(step_size=1e4), "control_variates": "none"},
            ValueError,
            "every chain diverged for observation 0",
        ),
        (
            MODEL,
            X,
            {"exact": False, "sampler": RandomWalk(1e8), "draws": 20, "control_variates": "none"},
            ValueError,
            "no proposal was accepted",
        ),
        (
            Swapped(),
            Y,
            {},
            ValueError,
            r"expected sample\(key\) of Swapped to return \(z, x\) with x of shape \(2,\)",
        ),
        (
            Scalar(),
            Y,
            {},
            ValueError,
            r"expected an exact score of shape \(2,\); Scalar returned \(\)",
        ),
        (Broken(""), Y, {"initial": 3}, TypeError, "initial: expected a start such as"),
        (
            MODEL,
            X,
            {"exact": False, "initial": NormalStart(np.ones(3))},
            ValueError,
            "one for each of the 2 latent coordinates",
        ),
        (
            MODEL,
            X,
            {"exact": False, "progress": "yes"},
            TypeError,
            "progress: expected True, False or None",
        ),
    ],
)
def test_bad_input(model, x, options, kind, message):
    with pytest.raises(kind, match=message):
        lksd.estimate_scores(model, x, **options)


@SLOW
def test_normal_errors_of_long_chains():
    found = sampled(warmup=200, draws=4000, chains=4, control_variates="none")
    z = ((found.score - exact()) / found.mcse)[:, 0]
    assert stats.kstest(z, "norm").pvalue > 1e-3
