"""Chains that fail are run again, what remains is named, and no verdict rests on it; scores against
quadrature.
"""

import sqlite3
import warnings
from contextlib import closing

import jax
import jax.numpy as jnp
import ksd
import numpy as np
import pytest

import lksd
from lksd import _jax
from lksd.models import PPCA, LatentVariableModel
from lksd.samplers import HMC, MALA
from lksd.scores.averages import average, refine
from lksd.scores.chains import run_batch
from lksd.scores.convergence import disagreement, outlying

LENGTH = {"warmup": 300, "draws": 1_500}


class ScaleMixture(LatentVariableModel):
    """x = exp(z/2) e with standard normal z and e: from a prior start an outlier's z is far away,
    and its gradient huge.
    """

    dim: int

    def log_prior(self, z):
        return -jnp.sum(z**2) / 2

    def log_likelihood(self, x, z):
        return -self.dim * z[0] / 2 - jnp.exp(-z[0]) * jnp.sum(x**2) / 2

    def sample(self, key):
        key_z, key_x = jax.random.split(key)
        z = jax.random.normal(key_z, (1,))
        return z, jnp.exp(z[0] / 2) * jax.random.normal(key_x, (self.dim,))


class TwoBasins(LatentVariableModel):
    """z near 3 or -3, and nothing between that a chain could cross; x | z ~ N(z / 10, 1)."""

    weight: float

    def log_prior(self, z):
        near = [
            jnp.log(w) - 50 * (z[0] - m) ** 2
            for w, m in ((self.weight, 3.0), (1 - self.weight, -3.0))
        ]
        return jnp.logaddexp(*near)

    def log_likelihood(self, x, z):
        return -jnp.sum((x - z / 10) ** 2) / 2

    def sample(self, key):
        key_side, key_z, key_x = jax.random.split(key, 3)
        side = jnp.where(jax.random.uniform(key_side) < self.weight, 3.0, -3.0)
        z = side + jax.random.normal(key_z, (1,)) / 10
        return z, z / 10 + jax.random.normal(key_x, (1,))


def exact_score(x):
    """-E[exp(-z) | x] x by quadrature."""
    z = np.linspace(-15, 40, 50_001)
    squares = (x**2).sum(1)[:, None]
    log_density = -(z**2) / 2 - x.shape[1] * z / 2 - np.exp(-z) * squares / 2
    weights = np.exp(log_density - log_density.max(1, keepdims=True))
    return -((weights * np.exp(-z)).sum(1) / weights.sum(1))[:, None] * x


def student(freedom, dim, seed):
    return np.random.default_rng(seed).standard_t(freedom, size=(80, dim))


def check_scores(x, seed):
    found, wanted = (
        lksd.estimate_scores(ScaleMixture(x.shape[1]), x, seed=seed, **LENGTH),
        exact_score(x),
    )
    assert np.sqrt(np.mean((found.score - wanted) ** 2) / np.mean(wanted**2)) < 0.03
    assert (np.abs(found.score - wanted) < 5 * found.mcse).all()
    assert found.converged.all()
    return found


@pytest.mark.filterwarnings("error::lksd.LksdWarning")
@pytest.mark.parametrize(("freedom", "seed"), [(3, 1), (2, 0), (1.5, 0), (1.5, 1)])
def test_outliers_of_a_scale_mixture(freedom, seed):
    found = check_scores(student(freedom, 1, seed), seed)
    assert "run again by " in found.notes[0]


@pytest.mark.parametrize(("freedom", "dim", "seed"), [(3, 1, 4), (2, 1, 17), (2, 2, 15)])
def test_one_chain_that_comes_late_does_not_make_all_the_error(freedom, dim, seed):
    """R-hat and ESS are good enough at all observations; at one a chain spent the first few draws
    far away, where the score is a hundred times as large.
    """
    x = student(freedom, dim, 1_000 + seed)
    found = check_scores(x, seed)
    assert "run again by " in found.notes[0]


def test_batches_far_from_all_others():
    rng = np.random.default_rng(0)
    for dim in (1, 5):
        means = rng.normal(size=(20_000, 2, 10, dim))
        assert np.mean(outlying(means)) < 1e-3  # at D = 1 1e-5 is nominal
        means[:, 1, 0] += 30.0
        assert np.mean(outlying(means)) > 0.9
    assert not outlying(np.ones((3, 2, 10, 5)) * (1 + 1e-12 * rng.normal(size=(3, 2, 10, 5)))).any()


def test_control_variates_of_higher_degree_where_the_latent_has_few_coordinates():
    """With linear ones the error is about .01, of which the standard errors speak."""
    x = np.clip(student(3, 1, 5), -3, 3)
    found, wanted = lksd.estimate_scores(ScaleMixture(1), x, **LENGTH), exact_score(x)
    assert np.sqrt(np.mean((found.score - wanted) ** 2) / np.mean(wanted**2)) < 0.002
    assert (np.abs(found.score - wanted) < 2 * found.mcse).all()
    np.testing.assert_allclose(found.batch_means.mean((1, 2)), found.score, rtol=1e-12)


def test_means_of_higher_degree_that_lie_too_far_are_not_used():
    rng = np.random.default_rng(0)
    linear = average(rng.normal(size=(3, 2, 10, 1)))
    refined = average(linear.batch_means * 0.1 + np.array([0.0, 9.0, 0.0]).reshape(3, 1, 1, 1))
    found = refine(linear, refined)
    np.testing.assert_allclose(found.score[[0, 2]], refined.score[[0, 2]], atol=1e-12)
    np.testing.assert_array_equal(found.score[1], linear.score[1])
    np.testing.assert_array_equal(found.batch_means[1], linear.batch_means[1])


@pytest.mark.slow
@pytest.mark.filterwarnings("error::lksd.LksdWarning")
@pytest.mark.parametrize("dim", [1, 2, 5])
@pytest.mark.parametrize("freedom", [3, 2, 1.5])
def test_outliers_of_many_scale_mixtures(freedom, dim):
    for seed in range(40):
        check_scores(student(freedom, dim, 1_000 + seed), seed)


def test_reruns_depend_on_seed_and_id_alone():
    x = student(2, 1, 0)
    whole = lksd.estimate_scores(ScaleMixture(1), x, **LENGTH)
    rows = np.concatenate([[np.argmax(np.abs(x))], np.flatnonzero(np.abs(x) < 1)[:5]])
    for options in ({}, {"batch_size": 1}):
        few = lksd.estimate_scores(ScaleMixture(1), x[rows], index=rows, **LENGTH, **options)
        assert (
            few.notes[0]
            == "1 observation was run again by itself, since its chains had not converged; now "
            "they have."
        )
        for name in ("score", "mcse", "batch_means", "rhat", "ess"):
            np.testing.assert_array_equal(getattr(few, name), getattr(whole, name)[rows])


def test_plain_chains_are_judged_and_not_run_again():
    x = student(3, 1, 1)
    with pytest.warns(
        lksd.LksdWarning,
        match=r"chains have not converged at 1 of 80 observations \(8\): R-hat is 2\.2",
    ) as said:
        found = lksd.estimate_scores(ScaleMixture(1), x, control_variates="none", **LENGTH)
    np.testing.assert_array_equal(np.flatnonzero(~found.converged), [8])
    assert found.notes == (str(said[0].message),)


def test_where_all_is_well_nothing_is_compiled_or_run_again(tmp_path):
    model, x = PPCA(np.ones((3, 1)), 0.7), np.random.default_rng(0).normal(size=(30, 3))
    before = set(_jax.programs.found)
    found = lksd.estimate_scores(model, x, exact=False, checkpoint=tmp_path / "kept", draws=401)
    new = [
        key for key in _jax.programs.found if key not in before and repr(run_batch) in repr(key[0])
    ]
    assert len(new) == 1
    assert found.converged.all()
    assert found.notes == ()
    assert stages(tmp_path / "kept") == 1


def stages(path):
    with closing(sqlite3.connect(path)) as file, file:
        return file.execute("SELECT COUNT(*) FROM stages").fetchone()[0]


def test_reruns_are_kept_in_a_checkpoint(tmp_path):
    x, path = student(2, 1, 0), tmp_path / "kept"
    wanted = lksd.estimate_scores(ScaleMixture(1), x, **LENGTH)
    lksd.estimate_scores(ScaleMixture(1), x, checkpoint=path, **LENGTH)
    assert stages(path) > 1
    with closing(sqlite3.connect(path)) as file, file:  # as if killed before the last stage
        file.execute("DELETE FROM parts WHERE stage = (SELECT MAX(stage) FROM stages)")
    found = lksd.estimate_scores(ScaleMixture(1), x, checkpoint=path, batch_size=7, **LENGTH)
    np.testing.assert_array_equal(found.score, wanted.score)
    np.testing.assert_array_equal(found.converged, wanted.converged)


def test_faults_of_the_sampler_are_repaired_or_refused():
    x, model = np.random.default_rng(0).normal(size=(20, 3)), PPCA(np.ones((3, 1)), 0.7)
    wild = {"exact": False, "sampler": HMC(step_size=60.0, inverse_mass_matrix=np.ones(1))}
    found = lksd.estimate_scores(model, x, **wild)  # every chain of every observation
    assert np.abs(found.score - lksd.estimate_scores(model, x).score).max() < 1e-8
    with pytest.raises(
        ValueError, match=r"sampler: (most steps|no proposal).* \(20 of 20 observations\)"
    ):
        lksd.estimate_scores(model, x, control_variates="none", **wild)


def test_halves_of_chains_that_disagree_about_one_coordinate():
    rng = np.random.default_rng(0)
    means = rng.normal(size=(2_000, 2, 10, 5))
    assert np.mean(disagreement(means) > 1) < 2e-3  # 1e-4 is nominal
    means[:, 1, :, 3] += 6.0
    assert np.mean(disagreement(means) > 1) > 0.99
    still = np.ones((3, 2, 10, 5)) * (1 + 1e-12 * rng.normal(size=(3, 2, 10, 5)))
    assert (disagreement(still) < 1).all()


@pytest.fixture(scope="module")
def basins():
    """Data of the model with two basins, its scores, and those of a model that is right but for its
    scale.
    """
    x = np.random.default_rng(0).choice([-0.3, 0.3], size=(80, 1)) + np.random.default_rng(
        1
    ).normal(size=(80, 1))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        scores = lksd.estimate_scores(TwoBasins(0.5), x)
    return x, scores, lksd.estimate_scores(PPCA(np.ones((1, 1)), 3.0), x), said


def test_chains_that_cannot_cross_are_never_a_verdict(basins, tmp_path):
    x, scores, other, said = basins
    assert (~scores.converged).mean() > 0.3
    assert f"{(~scores.converged).sum()} still have not" in scores.notes[-2]
    assert [(one.category, one.filename) for one in said] == [(lksd.LksdWarning, __file__)]
    answers = [
        ksd.compare(x, scores, other, alternative="two-sided"),
        ksd.rank(x, {"P": scores, "other": other}),
        lksd.goodness_of_fit(x, scores),
    ]
    for answer in answers:
        assert not answer.reject
        assert answer.sentence.startswith("Withheld: the chains of ")
        assert "in doubt everywhere" in str(answer)
        answer.to_json(tmp_path / "result.json")
        assert lksd.load_result(tmp_path / "result.json").withheld == answer.withheld
    quality = answers[0].diagnostics
    assert quality.withheld == answers[0].withheld
    assert [one.model for one in quality.unconverged] == ["P"]
    np.testing.assert_array_equal(
        quality.unconverged[0].observations, np.flatnonzero(~scores.converged)
    )
    assert [one.unconverged == () for one in answers[1].diagnostics] == [
        name == "other" for name in answers[1].names
    ]


def test_warnings_name_the_model_and_point_at_the_callers_line(basins):
    x = basins[0]
    models = {"near": PPCA(np.ones((1, 1)), 1.0), "two basins": TwoBasins(0.5)}
    for call, name in (
        (lambda: ksd.compare(x, *models.values()), "Q: "),
        (lambda: ksd.rank(x, models), "two basins: "),
        (lambda: lksd.goodness_of_fit(x, models["two basins"]), ""),
    ):
        with pytest.warns(lksd.LksdWarning, match=f"^{name}chains have not converged at ") as said:
            call()
        assert {one.filename for one in said} == {__file__}


def test_the_papers_preset_withholds_too():
    x, slow = student(3, 1, 1), MALA(step_size=1e-6)
    said = "^[PQ]: chains have not converged at"
    with pytest.warns(lksd.LksdWarning, match=said):
        result = ksd.compare(
            x, ScaleMixture(1), ScaleMixture(1), preset="paper", sampler=slow, warmup=10, draws=100
        )
    assert result.withheld is not None
    assert "run again" not in str(result)
