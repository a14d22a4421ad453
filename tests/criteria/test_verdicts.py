"""One criterion decides, the others stand beside it."""

from typing import ClassVar

import jax.numpy as jnp
import numpy as np
import pytest

import lksd
from lksd.criteria.choice import choose_criteria

RNG = np.random.default_rng(11)
WEIGHT = RNG.normal(size=(6, 3)) * [1.2, 0.9, 1.0]
X = RNG.normal(size=(150, 3)) @ WEIGHT.T + RNG.normal(size=(150, 6))
TWO, THREE = lksd.models.PPCA(WEIGHT[:, :2], 1.1), lksd.models.PPCA(WEIGHT, 1.0)
MIXTURE = lksd.models.GaussianMixture([0.5, 0.5], np.zeros((2, 6)), np.stack([np.eye(6)] * 2))
TOPICS = lksd.models.LDA([0.5, 0.5], RNG.dirichlet(np.ones(5), 2))
CHAIN = lksd.models.HiddenMarkov([0.5, 0.5], np.full((2, 2), 0.5), np.full((2, 5), 0.2))


class Shifted(lksd.models.LatentVariableModel):
    """A Gaussian without its constants, and a log density that lacks some too."""

    mean: float = 0.0
    constant: float = 0.0
    complete: ClassVar = None

    def log_prior(self, z):
        return -jnp.sum(z**2) / 2

    def log_likelihood(self, x, z):
        return -jnp.sum((x - self.mean - z) ** 2) / 2

    def log_marginal(self, x):
        return -jnp.sum((x - self.mean) ** 2) / 4 + self.constant

    def initial(self, key, x):
        return jnp.zeros(6)


class Declared(Shifted):
    complete: ClassVar = True


class Reconstruction(lksd.criteria.Additive):
    """The expected squared error of x given its latent."""

    name = "reconstruction"

    def observe(self, model, x, z, key, prepared):
        return jnp.sum((x - model.weight @ z) ** 2)[None]


@pytest.mark.parametrize(
    ("models", "exact", "wanted"),
    [
        ([TWO, THREE], None, "log"),
        ([TWO, MIXTURE], None, "log"),
        ([TWO, THREE], False, "fisher"),
        ([TWO, Shifted()], None, "fisher"),
        ([TWO, Declared()], None, "log"),
        ([TOPICS, TOPICS], None, "conditional"),
        ([CHAIN, CHAIN], None, "log"),
        ([CHAIN, TOPICS], None, "conditional"),
    ],
)
def test_the_types_of_the_models_decide(models, exact, wanted):
    assert choose_criteria("auto", "auto", models, exact, None).primary.name == wanted
    assert choose_criteria("auto", "auto", models[::-1], exact, None).primary.name == wanted
    assert choose_criteria("auto", "auto", models, exact, "smooth").primary.name == "ksd"


def test_the_primary_and_what_stands_beside_it():
    result = lksd.compare(X, {"two": TWO, "three": THREE}, also=("fisher", "ksd"))
    assert (result.criterion, [one.criterion for one in result.beside]) == (
        "log",
        ["fisher", "ksd"],
    )
    wanted = lksd.compare_pointwise(*(-densities(model) for model in (TWO, THREE)))
    for name in ("statistic", "pvalue", "difference", "standard_error"):
        assert getattr(result, name) == pytest.approx(getattr(wanted, name), rel=1e-9), name
    ksd = lksd.compare(X, TWO, THREE, criterion="ksd")
    assert (result.ksd_p, result.ksd_q) == (ksd.ksd_p, ksd.ksd_q)
    assert result.beside[1].statistic == ksd.statistic
    assert result.beside[1].pvalue >= ksd.pvalue
    assert result.pointwise.criteria == ("log", "fisher")
    np.testing.assert_allclose(
        np.asarray(result.pointwise)[:, 0].mean(), result.difference, rtol=1e-9
    )
    assert "three fits better than two" in result.sentence
    assert "; the Fisher score agrees; the kernel Stein discrepancy " in result.sentence
    table = result.table
    assert list(table.index) == ["log", "fisher", "ksd"]
    assert table.loc["log", "favours"] == "three"


def densities(model):
    from scipy import stats

    covariance = np.asarray(model.weight) @ np.asarray(model.weight).T
    covariance = covariance + float(model.noise_scale) ** 2 * np.eye(6)
    return stats.multivariate_normal(np.zeros(6), covariance).logpdf(X)


def test_exchanged_models_are_mirror_images():
    one = lksd.compare(X, {"two": TWO, "three": THREE}, exact=False)
    other = lksd.compare(X, {"three": THREE, "two": TWO}, exact=False)
    assert one.criterion == "fisher"
    assert one.sentence == other.sentence
    assert (one.pvalue, one.statistic) == (other.pvalue, -other.statistic)
    np.testing.assert_array_equal(one.contributions, -other.contributions)
    assert one.beside[0].pvalue == other.beside[0].pvalue
    low, high = other.confidence_interval()
    assert one.confidence_interval() == pytest.approx((-high, -low), rel=1e-12)


def test_a_constant_that_is_missing_changes_no_verdict():
    x = X[:40]
    pairs = [(Shifted(0.0), Shifted(0.3, constant)) for constant in (0.0, 100.0)]
    results = [lksd.compare(x, *pair, also=()) for pair in pairs]
    assert {one.criterion for one in results} == {"fisher"}
    assert results[0].pvalue == results[1].pvalue
    with pytest.raises(ValueError, match=r"no log score, since Shifted does not declare complete"):
        lksd.compare(x, *pairs[0], criterion="log")
    assert lksd.compare(x, Declared(0.0), Declared(0.3), also=()).criterion == "log"


def test_one_that_models_lack_is_refused_with_a_sentence():
    rng = np.random.default_rng(203)
    with pytest.raises(ValueError, match="no conditional score, since PPCA describes real numbers"):
        lksd.compare(X, TWO, THREE, criterion="conditional")
    with pytest.raises(ValueError, match="no log score, since LDA has no log_marginal"):
        lksd.compare(rng.integers(0, 5, (9, 4)), TOPICS, TOPICS, criterion="log")
    with pytest.raises(ValueError, match=r"smooth: expected with criterion=\"ksd\" alone"):
        lksd.compare(X, TWO, THREE, criterion="fisher", smooth="auto")
    with pytest.raises(ValueError, match=r'criterion: .*"mmd" stands beside another'):
        lksd.compare(X, TWO, THREE, criterion="mmd")
    with pytest.raises(ValueError, match=r"criterion: .*'fischer'"):
        lksd.compare(X, TWO, THREE, criterion="fischer")
    with pytest.raises(ValueError, match=r'"ksd" for a goodness-of-fit test; got fisher'):
        lksd.goodness_of_fit(X, TWO, criterion="fisher")
    assert lksd.goodness_of_fit(X, THREE, criterion=lksd.criteria.KSD()).pvalue > 0


def test_the_papers_question_is_asked_as_before():
    kernel = lksd.kernels.IMQ.median(X)
    result = lksd.compare(X, TWO, THREE, criterion="ksd", alternative="greater", kernel=kernel)
    scores = [lksd.estimate_scores(model, X).score for model in (TWO, THREE)]
    wanted = lksd.compare_scores(X, *scores, kernel)
    assert (result.statistic, result.pvalue) == (wanted.statistic, wanted.pvalue)
    paper = lksd.compare(X[:30], TWO, THREE, preset="paper", draws=20)
    assert (paper.criterion, paper.alternative, paper.calibration) == ("ksd", "greater", "normal")


def test_scores_keep_their_losses(tmp_path):
    estimates = [
        lksd.estimate_scores(model, X, criteria=["fisher"], exact=False) for model in (TWO, THREE)
    ]
    estimates[0].save(tmp_path / "two.npz")
    loaded = lksd.load_scores(tmp_path / "two.npz")
    np.testing.assert_array_equal(loaded.losses, estimates[0].losses)
    assert loaded.criteria == ("fisher",)
    from_scores = lksd.compare(X, loaded, estimates[1])
    from_models = lksd.compare(X, TWO, THREE, exact=False)
    assert from_scores.criterion == "fisher"
    assert from_scores.statistic == pytest.approx(from_models.statistic, rel=1e-9)
    with pytest.raises(ValueError, match=r"the scores given were estimated without it"):
        lksd.compare(X, loaded, estimates[1], criterion="log")
    assert lksd.compare(X, lksd.estimate_scores(TWO, X), THREE).criterion == "ksd"


def test_a_criterion_of_ones_own(tmp_path):
    result = lksd.compare(X, TWO, THREE, criterion=Reconstruction(), also=(), draws=100)
    assert (result.criterion, result.favours) == ("reconstruction", "Q")
    assert result.diagnostics.noise_share > 0
    result.to_json(tmp_path / "result.json")
    assert lksd.load_result(tmp_path / "result.json").sentence == result.sentence
    result.to_html(tmp_path / "report.html")
    models = {"two": TWO, "three": THREE}
    ranked = lksd.rank(X, models, criterion="reconstruction", also=(), draws=100)
    assert ranked.confidence_set == ("three",)
    scores = lksd.estimate_scores(TWO, X, criteria=[Reconstruction, "fisher"], exact=False)
    assert scores.criteria == ("reconstruction", "fisher")
    exact = lksd.estimate_scores(TWO, X, criteria="fisher").losses[:, 0]
    np.testing.assert_allclose(scores.loss("fisher"), exact, rtol=1e-5)


def test_a_ranking_by_the_primary_criterion():
    one = lksd.models.PPCA(WEIGHT[:, :1], 1.3)
    result = lksd.rank(X, {"one": one, "two": TWO, "three": THREE})
    assert (result.criterion, result.names[0]) == ("log", "three")
    assert result.beside[0].criterion == "ksd"
    assert result.confidence_set == ("three",)
    assert result.sentence.startswith("three fits best (level 0.05); the kernel Stein discrepancy")
    assert result.pointwise.losses.shape == (150, 3, 1)
    pair = lksd.compare(X, one, THREE, also=())
    i, j = result.position("one"), result.position("three")
    assert result.differences[i, j] == pytest.approx(pair.difference, rel=1e-9)


def test_with_gross_outliers_a_wrong_verdict_carries_its_caution():
    """5 % of the rows replaced by 4 t_1.5: never a wrong sentence without its caution."""
    wrong = 0
    for trial in range(25):
        rng = np.random.default_rng(trial)
        x = rng.normal(size=(200, 3)) @ WEIGHT.T + rng.normal(size=(200, 6))
        rows = rng.permutation(200)[:10]
        x[rows] = 4 * rng.standard_t(1.5, size=(10, 6))
        result = lksd.compare(x, TWO, THREE, also=(), criterion="fisher")
        wrong += result.favours == "P" and result.caution is None
    assert wrong <= 2
