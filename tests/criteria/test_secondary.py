"""Criteria beside the one that decides, and scores that are given, on equal terms."""

import jax.numpy as jnp
import numpy as np
import pytest

import lksd

RNG = np.random.default_rng(2)
WEIGHT = RNG.normal(size=(5, 2))
X = RNG.normal(size=(120, 2)) @ WEIGHT.T + RNG.normal(size=(120, 5))
WIDE, RIGHT = lksd.models.PPCA(WEIGHT, 1.3), lksd.models.PPCA(WEIGHT, 1.0)


def names(result):
    return [one.criterion for one in (result, *result.beside)]


def test_the_kernel_test_has_others_beside_it():
    alone = lksd.compare(X, WIDE, RIGHT, criterion="ksd")
    result = lksd.compare(X, WIDE, RIGHT, criterion="ksd", also=("fisher", "mmd"))
    assert names(result) == ["ksd", "fisher", "mmd"]
    assert (result.pvalue, result.statistic) == (alone.pvalue, alone.statistic)
    assert list(result.table.index) == ["ksd", "fisher", "mmd"]
    ranked = lksd.rank(X, {"wide": WIDE, "right": RIGHT}, criterion="ksd", also="fisher")
    assert names(ranked) == ["ksd", "fisher"]


def test_the_mmd_stands_beside_an_additive_criterion(tmp_path):
    result = lksd.compare(X, WIDE, RIGHT, also=lksd.criteria.MMD(samples=300))
    assert names(result) == ["log", "mmd"]
    assert result.beside[0].n_p == 300
    result.to_json(tmp_path / "result.json")
    assert lksd.load_result(tmp_path / "result.json").sentence == result.sentence
    assert "the maximum mean discrepancy" in result.sentence
    result.to_html(tmp_path / "report.html")


def test_what_is_asked_for_twice_stands_once():
    assert names(lksd.compare(X, WIDE, RIGHT, also=("log", "fisher", "ksd", "ksd"))) == [
        "log",
        "fisher",
        "ksd",
    ]


def test_secondary_pvalues_agree_with_what_is_said():
    model = lksd.models.HiddenMarkov([0.5, 0.5], np.full((2, 2), 0.5), [[0.4, 0.6], [0.7, 0.3]])
    other = lksd.models.HiddenMarkov([0.5, 0.5], np.full((2, 2), 0.5), [[0.5, 0.5], [0.5, 0.5]])
    for seed in range(5):
        x = np.random.default_rng(seed).integers(0, 2, (60, 4))
        result = lksd.compare(x, model, other, also=("conditional", "ksd"))
        for one in result.beside:
            assert (one.favours is not None) == (one.smaller_pvalue <= one.alpha)


def test_given_scores_in_another_metric_are_refused():
    given = lksd.estimate_scores(WIDE, X, criteria="fisher")
    wanted = lksd.compare(X, WIDE, RIGHT, criterion="fisher")
    assert lksd.compare(X, given, RIGHT, criterion="fisher").difference == wanted.difference
    with pytest.raises(ValueError, match="in the same coordinates, metric and form"):
        lksd.compare(X, given, RIGHT, criterion="fisher", holdout=5 * X)
    other = lksd.estimate_scores(RIGHT, X, criteria=lksd.criteria.Fisher(np.full(5, 9.0)))
    with pytest.raises(ValueError, match="in the same coordinates, metric and form"):
        lksd.compare(X, given, other, criterion="fisher")


def test_given_conditional_scores():
    topics = RNG.dirichlet(np.ones(9), 2)
    p, q = (lksd.models.LDA([a, a], topics) for a in (1.0, 0.2))
    x, operator = RNG.integers(0, 9, (30, 12)), lksd.discrete_operators(p, q, names=("barker",))
    given = lksd.estimate_scores(p, x, criteria="conditional", operator=operator)
    wanted = lksd.compare(x, p, q)
    assert lksd.compare(x, given, q).difference == pytest.approx(wanted.difference, rel=1e-9)


def test_a_composition_has_no_first_part():
    class Dirichlet(lksd.models.LatentVariableModel):
        alpha: np.ndarray
        support = "simplex"

        def log_prior(self, z):
            return -jnp.sum(z**2) / 2

        def log_likelihood(self, x, z):
            return jnp.sum((self.alpha - 1) * jnp.log(x))

        def log_marginal(self, x):
            return self.log_likelihood(x, 0.0)

        def initial(self, key, x):
            return jnp.zeros(1)

    alpha = np.array([2.0, 30.0, 0.8])
    x = RNG.dirichlet(alpha, 80)
    found = [
        lksd.compare(
            x[:, order],
            Dirichlet((alpha * [1, 1, 1.8])[order]),
            Dirichlet((alpha * [1.9, 1, 1])[order]),
            also=(),
            check=False,
        ).pvalue
        for order in ([0, 1, 2], [0, 2, 1], [1, 2, 0])
    ]
    assert found == pytest.approx([found[0]] * 3, rel=1e-6)


def test_a_kink_behind_an_adapter_is_seen():
    """The second derivatives of |x - z| are zero wherever they are taken."""
    numpyro = pytest.importorskip("numpyro")
    from numpyro import distributions as dist

    def laplace(scale):
        def model(x=None):
            z = numpyro.sample("z", dist.Normal(0, 1))
            numpyro.sample("x", dist.Laplace(z * jnp.ones(3), scale).to_event(1), obs=x)

        return lksd.adapters.from_numpyro(model, observed="x")

    x = RNG.normal(size=(50, 1)) + RNG.normal(size=(50, 3))
    assert laplace(1.0).log_marginal is None
    result = lksd.compare(x, laplace(1.0), laplace(0.5), draws=40)
    assert result.criterion == "ksd"
    assert any("there is no Fisher score" in note for note in result.notes)


class Silent(lksd.criteria.Additive):
    name = "silent"


class Scalar(lksd.criteria.Additive):
    name = "scalar"

    def observe(self, model, x, z, key, prepared):
        return jnp.sum(z)


@pytest.mark.parametrize(
    ("criterion", "said"),
    [(Silent(), "nothing to average over draws"), (Scalar(), "an array of one axis")],
)
def test_own_criteria_that_say_too_little(criterion, said):
    with pytest.raises(ValueError, match=said):
        lksd.compare(X, WIDE, RIGHT, criterion=criterion)
