"""Rankings against pairwise comparisons and brute force, their text, files, plots and reports."""

import json

import jax
import ksd
import numpy as np
import oracles
import pandas
import pytest

import lksd
from lksd.kernels import IMQ, Gaussian
from lksd.stein import Langevin, stein_kernel

N, SHIFTS = 60, {"far": 1.2, "middle": 0.6, "near": 0.3, "right": 0.0}


def scores_of(n=N, shifts=None, seed=0):
    x = np.random.default_rng(seed).normal(size=(n, 2))
    return x, {name: -(x - m * np.eye(2)[0]) for name, m in (shifts or SHIFTS).items()}


@pytest.fixture(scope="module")
def ranking():
    return lksd.rank_scores(*scores_of(), IMQ(2.0))


def test_every_pair_equals_its_comparison(ranking):
    x, scores = scores_of()
    for i, first in enumerate(ranking.names):
        for j, second in enumerate(ranking.names):
            if i != j:
                pair = lksd.compare_scores(
                    x, scores[first], scores[second], IMQ(2.0), calibration="normal"
                )
                assert ranking.differences[i, j] == pytest.approx(pair.difference, rel=1e-9)
                assert ranking.standard_errors[i, j] == pytest.approx(pair.standard_error, rel=1e-9)
                assert ranking.pvalues[i, j] >= pair.pvalue
    each = [
        oracles.u_statistic(stein_kernel(Langevin(), IMQ(2.0), x, scores[name]))
        for name in ranking.names
    ]
    np.testing.assert_allclose(ranking.ksd, each, rtol=1e-9)
    assert (np.diff(ranking.ksd) >= 0).all()


def test_two_models_are_a_two_sided_comparison():
    x, scores = scores_of(shifts={"p": 0.6, "q": 0.1})
    both = lksd.compare_scores(
        x, scores["p"], scores["q"], IMQ(2.0), alternative="two-sided", calibration="normal"
    )
    found = lksd.rank_scores(x, scores, IMQ(2.0), calibration="normal", correction="holm")
    assert found.pvalue == pytest.approx(both.pvalue)
    assert found.interval("p", "q") == pytest.approx(both.confidence_interval(0.95))


def test_joint_replicates_equal_resampling_of_rows():
    """T* of the difference of two models that are not the last, from resampled matrices."""
    from lksd.inference.contrasts import against_last
    from lksd.statistics.ustatistic import all_pairs, multinomial_weights, studentised_replicates
    from lksd.stein import gram_sums

    x, scores = scores_of(12)
    stacked = np.stack(list(scores.values()))
    weights = multinomial_weights(12, 9, seed=1)
    whole = gram_sums(Langevin(), IMQ(2.0), x, stacked, against_last(4), whole=True)
    streamed = gram_sums(Langevin(), IMQ(2.0), x, stacked, against_last(4), weights)
    pairs = all_pairs(4)
    found = studentised_replicates(
        whole.rows, whole.model_diagonal, weights, pairs, matrix=whole.matrix
    )
    again = studentised_replicates(
        streamed.rows, streamed.model_diagonal, weights, pairs, products=streamed.products
    )
    np.testing.assert_allclose(again, found, rtol=1e-8)
    draws = [np.repeat(np.arange(12), column.astype(int)) for column in weights.T]
    for a, (i, j) in enumerate(zip(*pairs, strict=True)):
        h = stein_kernel(Langevin(), IMQ(2.0), x, stacked[i]) - stein_kernel(
            Langevin(), IMQ(2.0), x, stacked[j]
        )
        for b, draw in enumerate(draws):
            resampled = h[np.ix_(draw, draw)]
            t = (
                np.sqrt(12)
                * (oracles.u_statistic(resampled) - h.mean())
                / np.sqrt(oracles.jackknife(resampled))
            )
            assert found[a, b] == pytest.approx(t, rel=1e-7)


def test_expansions_of_all_pairs_equal_those_of_comparisons():
    from lksd.inference.contrasts import studentise
    from lksd.inference.hypotheses import given_family

    x, scores = scores_of()
    decision = lksd.Decision(alternative="two-sided", variance="jackknife", calibration="edgeworth")
    family = given_family(x, tuple(scores.values()), tuple(scores), IMQ(2.0), None, None)
    (test,) = studentise(family, decision, seed=0)
    names = list(scores)
    for a, (i, j) in enumerate(zip(*test.pairs, strict=True)):
        null = lksd.compare_scores(
            x, scores[names[i]], scores[names[j]], IMQ(2.0), calibration="edgeworth"
        ).null
        assert (test.expansion.a[a], test.expansion.c[a]) == pytest.approx(
            (null.a, null.c), rel=1e-6
        )


def test_the_verdict(ranking):
    assert ranking.names == ("right", "near", "middle", "far")
    assert "right" in ranking.confidence_set
    assert "far" not in ranking.confidence_set
    assert ("right", "far") in ranking.better
    assert ranking.reject
    low, high = ranking.interval("far", "right")
    assert 0 < low < ranking.differences[3, 0] < high
    assert ranking.interval("right", "far") == (-high, -low)
    assert ranking.selective_pvalues[0] == 1.0
    assert ranking.selective_pvalues[3] < 0.01
    assert ranking.sentence in str(ranking)


@pytest.mark.parametrize("correction", ["max-t", "holm", "bonferroni"])
def test_corrections_agree_in_order(correction, ranking):
    x, scores = scores_of()
    found = lksd.rank_scores(x, scores, IMQ(2.0), correction=correction)
    assert found.names == ranking.names
    assert (found.pvalues >= ranking.pvalues - 0.005).all()  # max-T is the sharpest
    assert (
        not found.reject
        or found.lower[np.unravel_index(found.pvalues.argmin(), found.pvalues.shape)] > -0.05
    )


def test_identical_and_tiny_families():
    x, scores = scores_of()
    found = lksd.rank_scores(
        x, {"a": scores["near"], "b": scores["near"], "c": scores["far"]}, IMQ(2.0)
    )
    i, j = found.position("a"), found.position("b")
    assert (found.pvalues[i, j], found.differences[i, j], found.interval("a", "b")) == (
        1.0,
        0.0,
        (0.0, 0.0),
    )
    assert "agree to rounding: a and b" in str(found)
    same = lksd.rank_scores(x, {"a": scores["near"], "b": scores["near"]}, IMQ(2.0))
    assert (same.pvalue, same.reject, same.statistic) == (1.0, False, 0.0)


def test_several_kernels_are_corrected_together(ranking):
    x, scores = scores_of()
    found = lksd.rank_scores(x, scores, [IMQ(2.0), Gaussian(2.0)])
    assert [one.kernel for one in found.tests] == [str(IMQ(2.0)), str(Gaussian(2.0))]
    assert (found.tests[0].pvalues >= ranking.pvalues - 0.005).all()
    assert found.pvalue == min(one.pvalue for one in found.tests)


def test_a_margin_turns_small_differences_off():
    x, scores = scores_of()
    plain, wide = (lksd.rank_scores(x, scores, IMQ(2.0), margin=m) for m in (0.0, 10.0))
    assert plain.reject
    assert not wide.reject
    assert wide.confidence_set == wide.names
    assert "by more than 10" in wide.sentence


def test_files_and_frames(ranking, tmp_path):
    text = ranking.to_json(tmp_path / "r.json")
    loaded = lksd.load_result(tmp_path / "r.json")
    assert loaded.to_json() == text
    assert str(loaded) == str(ranking)
    assert json.loads(text)["kind"] == "RankResult"
    frame = ranking.to_dataframe()
    assert isinstance(frame, pandas.DataFrame)
    assert tuple(frame.index) == ranking.names
    assert list(frame["rank"]) == [1, 2, 3, 4]
    np.testing.assert_array_equal(frame["difference"], ranking.differences[:, 0])
    assert "<table" in ranking._repr_html_()


def test_plot_and_report(ranking, tmp_path):
    import matplotlib as mpl

    mpl.use("Agg")
    axes = ranking.plot()
    assert [label.get_text() for label in axes.get_yticklabels()] == list(ranking.names)
    mpl.pyplot.close(axes.figure)
    ranking.to_html(tmp_path / "r.html", title="<b>Which?</b>")
    page = (tmp_path / "r.html").read_text()
    assert "&lt;b&gt;Which?&lt;/b&gt;" in page
    assert ranking.sentence in page
    with pytest.raises(ValueError, match=r"ends in \.html"):
        ranking.to_html(tmp_path / "r.txt")


# ------------------------------------------------------------- models


@pytest.fixture(scope="module")
def factors():
    rng = np.random.default_rng(0)
    weight = rng.random((4, 2))
    x = rng.normal(size=(80, 2)) @ weight.T + rng.normal(size=(80, 4))
    return x, {f"noise {s}": lksd.models.PPCA(weight, s) for s in (2.0, 1.0, 1.4)}


def test_models_equal_their_scores(factors):
    x, models = factors
    found = ksd.rank(x, models)
    scores = {name: lksd.estimate_scores(model, x).score for name, model in models.items()}
    by_scores = lksd.rank_scores(x, scores, lksd.kernels.Standardised.median(x))
    np.testing.assert_allclose(found.pvalues, by_scores.pvalues)
    assert found.names[0] == "noise 1.0"
    assert [one.method_p for one in found.diagnostics] == ["exact marginal score"] * 3
    assert found.settings["models"] == list(models)
    mixed = ksd.rank(x, [(name, lksd.estimate_scores(model, x)) for name, model in models.items()])
    np.testing.assert_array_equal(mixed.pvalues, found.pvalues)


def test_topic_models_with_both_operators():
    topics = np.random.default_rng(0).dirichlet(np.full(8, 0.3), size=2)
    models = {f"a = {a}": lksd.models.LDA([a, a], topics) for a in (3.0, 0.3, 1.0)}
    documents = [
        np.asarray(models["a = 0.3"].sample(key, length=8)[1]).tolist()
        for key in jax.random.split(jax.random.key(0), 20)
    ]
    found = ksd.rank(documents, models, operator=lksd.discrete_operators(*models.values()))
    assert len(found.tests) == 2
    assert {one.operator.split("(")[0] for one in found.tests} == {"Difference", "Barker"}


MODEL = lksd.models.PPCA(np.ones((2, 1)), 1.0)
X, S = scores_of(20)
BAD = {
    "one model": (
        lambda: lksd.rank_scores(X, {"a": S["far"]}, IMQ(2.0)),
        ValueError,
        "at least two models to rank; got 1",
    ),
    "no model": (lambda: ksd.rank(X, {}), ValueError, "at least two models to rank; got 0"),
    "a name twice": (
        lambda: ksd.rank(X, [("a", MODEL), ("a", MODEL)]),
        ValueError,
        "models: .*got 'a' twice. Rename one",
    ),
    "no names": (
        lambda: ksd.rank(X, [MODEL, MODEL]),
        TypeError,
        "models: expected a dict of models by their names",
    ),
    "a number as name": (
        lambda: ksd.rank(X, {1: MODEL, 2: MODEL}),
        TypeError,
        "names that are text; got 1",
    ),
    "no model at all": (
        lambda: ksd.rank(X, {"a": MODEL, "b": 3}),
        TypeError,
        "b: expected a lksd.models.LatentVariableModel",
    ),
    "integers and reals": (
        lambda: ksd.rank(X, {"a": MODEL, "b": lksd.models.BetaBinomial(3, 1.0, 1.0)}),
        ValueError,
        "a and b: expected models of the same kind of data; a describes real numbers and b "
        "describes integers",
    ),
    "other dimension": (
        lambda: ksd.rank(X, {"a": MODEL, "b": lksd.models.PPCA(np.ones((3, 1)), 1.0)}),
        ValueError,
        "b: model: the exact score of PPCA fails on observations of 2 columns",
    ),
    "other vocabulary": (
        lambda: ksd.rank(
            np.zeros((20, 2), int),
            {
                n: lksd.models.LDA([1.0], np.full((1, size), 1 / size))
                for n, size in (("a", 4), ("b", 5))
            },
        ),
        ValueError,
        "same vocabulary; got 4 and 5 values",
    ),
    "scores of another shape": (
        lambda: lksd.rank_scores(X, {"a": S["far"], "b": S["near"][:, :1]}, IMQ(2.0)),
        ValueError,
        r"b: expected shape \(20, 2\)",
    ),
    "negative margin": (
        lambda: lksd.rank_scores(X, S, IMQ(2.0), margin=-0.1),
        ValueError,
        "margin: .*at least 0; got -0.1",
    ),
    "infinite margin": (
        lambda: lksd.rank_scores(X, S, IMQ(2.0), margin=np.inf),
        TypeError,
        "margin: expected one finite number",
    ),
    "margin of a comparison": (
        lambda: ksd.compare(X, MODEL, MODEL, margin=-1),
        ValueError,
        "margin: expected a number of at least 0; got -1",
    ),
    "unknown correction": (
        lambda: lksd.rank_scores(X, S, IMQ(2.0), correction="sidak"),
        ValueError,
        "correction: expected one of 'auto', 'min-p', 'max-t', 'holm', 'bonferroni'; got 'sidak'",
    ),
    "no kernel": (
        lambda: lksd.rank_scores(X, S, []),
        ValueError,
        "expected at least one of each; got an empty list",
    ),
    "an unknown model": (
        lambda: lksd.rank_scores(X, S, IMQ(2.0)).interval("far", "x"),
        ValueError,
        "got 'x'. They are: ",
    ),
    "MMD of scores": (
        lambda: ksd.compare(X, MODEL, lksd.estimate_scores(MODEL, X), also_mmd=True),
        ValueError,
        r"also_mmd: expected models with sample\(key\); q has none",
    ),
    "MMD with a margin": (
        lambda: ksd.compare(X, MODEL, MODEL, also_mmd=True, margin=0.1),
        ValueError,
        "expected margin=0",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name):
    call, kind, message = BAD[name]
    with pytest.raises(kind, match=message):
        call()
