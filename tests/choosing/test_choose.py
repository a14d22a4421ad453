"""How many? Losses against densities by hand, the ways to say what is fitted, and the words."""

from dataclasses import replace

import numpy as np
import pandas
import polars
import pytest
from scipy import sparse, stats

import lksd
from lksd.fitting.base import Fit


def two_factors(n=120, dim=6, seed=0):
    rng = np.random.default_rng(seed)
    loadings = 2.0 * rng.normal(size=(dim, 2))
    return rng.normal(size=(n, 2)) @ loadings.T + rng.normal(size=(n, dim))


X = two_factors()


def fit_ppca(train, count):
    from sklearn.decomposition import PCA

    return PCA(count).fit(train)


@pytest.fixture(scope="module")
def choice():
    return lksd.choose(X, fit_ppca, [1, 2, 3])


def test_every_observation_is_scored_by_the_fit_that_left_it_out(choice):
    """Against scikit-learn's own density, fold by fold."""
    expected = np.empty((len(X), 3))
    for fold in range(5):
        inside = choice.fold_numbers[0] == fold
        for column, count in enumerate((1, 2, 3)):
            expected[inside, column] = -fit_ppca(X[~inside], count).score_samples(X[inside])
    np.testing.assert_allclose(choice.losses, expected, rtol=1e-9)
    sizes = np.bincount(choice.fold_numbers[0])
    np.testing.assert_allclose(
        np.average(choice.fold_losses, axis=0, weights=sizes), expected.mean(0), rtol=1e-12
    )
    assert not choice.loss_errors.any()


def test_differences_have_the_errors_of_the_spread_within_folds(choice):
    difference = choice.losses[:, 0] - choice.losses[:, 1]
    within = difference.copy()
    for fold in range(5):
        inside = choice.fold_numbers[0] == fold
        within[inside] -= difference[inside].mean()
    i, j = (choice.ranking.position(name) for name in ("1", "2"))
    expected = np.sqrt(np.sum(within**2) / (len(X) - 5) / len(X))
    assert choice.ranking.standard_errors[i, j] == pytest.approx(expected, rel=1e-9)
    assert choice.ranking.differences[i, j] == pytest.approx(difference.mean(), rel=1e-9)


def test_the_answer_and_its_words(choice):
    assert choice.best == choice.simplest == "2"
    assert choice.confidence_set[0] == "2"
    assert choice.sentence.startswith("2: every other") or "2 is the simplest" in choice.sentence
    assert str(choice).startswith("Which of the candidates describes the data best?")
    assert isinstance(choice.model, lksd.models.PPCA)
    np.testing.assert_allclose(
        lksd.estimate_scores(choice.model, X[:3]).score,
        lksd.estimate_scores(lksd.adapters.from_sklearn(fit_ppca(X, 2)), X[:3]).score,
    )
    table = choice.table
    assert list(table.index) == ["1", "2", "3"]
    assert table.loc["2", "difference"] == 0
    assert list(table["in_set"]) == [name in choice.confidence_set for name in ("1", "2", "3")]
    assert choice.settings["folds"] == 5


def named(noun="factor", short=("1", "2", "3", "4"), kept=(1, 2), best=1, **changes):
    """A choice whose confidence set and best candidate are as they are wanted."""
    labels = tuple(f"{one} {noun}s" for one in short) if noun else short
    rng, places = np.random.default_rng(0), range(len(short))
    shift = [0.02 * (i != best) if i in kept else 5.0 + i for i in places]
    losses = rng.normal(size=(100, 1)) + rng.normal(size=(100, len(short))) + np.array(shift)
    losses -= losses.mean(0) - shift
    ranking = lksd.rank_pointwise(dict(zip(labels, losses.T, strict=True)))
    return lksd.Choice(
        statistic=ranking.statistic,
        pvalue=ranking.pvalue,
        reject=ranking.reject,
        alpha=0.05,
        n=100,
        kernel="",
        seed=0,
        candidates=labels,
        short=short,
        noun=noun,
        ranking=replace(ranking, **changes),
        losses=losses,
        loss_errors=0 * losses,
        fold_losses=losses[:10].reshape(2, 5, -1).mean(1),
        fold_numbers=np.arange(100)[None] % 2,
        folds=2,
        repeats=1,
        procedure="by hand",
        withheld=changes.get("withheld"),
    )


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            {"kept": (2,), "best": 2},
            "3 factors: every other candidate is shown to fit worse (level 0.05).",
        ),
        (
            {"kept": (1, 2)},
            "2 or 3 factors; 2 is the simplest that the data do not rule out, and fits best (level "
            "0.05).",
        ),
        (
            {"kept": (1, 2, 3), "best": 2},
            "Between 2 and 4 factors; 2 is the simplest that the data do not rule out, 3 fits best "
            "(level 0.05).",
        ),
        (
            {"kept": (0, 2, 3), "best": 0},
            "1, 3 or 4 factors; 1 is the simplest that the data do not rule out, and fits best "
            "(level 0.05).",
        ),
        (
            {"kept": (0, 1, 2, 3)},
            "None of the 4 candidates is ruled out; 1 is the simplest that the data do not rule "
            "out, 2 fits best (level 0.05).",
        ),
        (
            {"noun": "", "short": ("a", "b", "c"), "kept": (0, 2), "best": 2},
            "Not ruled out: a and c; a is the simplest that the data do not rule out, c fits best "
            "(level 0.05).",
        ),
        ({"withheld": "too few."}, "Withheld: too few."),
    ],
)
def test_sentences(options, sentence):
    assert named(**options).sentence == sentence


def test_withheld_choices_rule_nothing_out():
    result = named(withheld="too few.")
    assert result.confidence_set == result.candidates
    assert "ruled out" not in str(result)


# ------------------------------------------------------------- what is fitted


def test_estimators_of_scikit_learn():
    from sklearn.decomposition import PCA, FactorAnalysis
    from sklearn.mixture import GaussianMixture

    one = lksd.choose(X, FactorAnalysis(), {"n_components": range(1, 4)}, folds=3)
    assert one.candidates == ("1 factor", "2 factors", "3 factors")
    assert one.noun == "factor"
    two = lksd.choose(X, PCA(), [1, 2], folds=3)
    assert two.candidates == ("1 component", "2 components")
    grid = {"n_components": [1, 2], "covariance_type": ["full", "diag"]}
    three = lksd.choose(X[:, :2], GaussianMixture(), grid, folds=3)
    assert three.candidates[:2] == ("1 component (full)", "1 component (diag)")
    assert isinstance(three.model, lksd.models.GaussianMixture)
    same = lksd.choose(X[:, :2], GaussianMixture(), grid, folds=3)
    np.testing.assert_array_equal(three.losses, same.losses)  # seeds are those of the call


def test_steps_that_did_not_suffice_are_said():
    from sklearn.mixture import GaussianMixture

    few = GaussianMixture(max_iter=1, tol=1e-12)
    result = lksd.choose(X[:, :2], few, [2, 3], folds=3)
    assert any("without converging" in note for note in result.notes)


DOCUMENTS = [
    np.random.default_rng(i).choice(12, size=25, p=np.roll([0.15] * 6 + [0.1 / 6] * 6, 6 * (i % 2)))
    for i in range(60)
]
WORDS = [[f"w{word}" for word in one] for one in DOCUMENTS]
SHORT = {"warmup": 10, "draws": 40}


@pytest.mark.parametrize("form", ["words", "ids", "counts"])
def test_topics_of_documents_in_any_form(form):
    x = {
        "words": WORDS,
        "ids": [one.tolist() for one in DOCUMENTS],
        "counts": sparse.csr_array([np.bincount(one, minlength=12) for one in DOCUMENTS]),
    }[form]
    result = lksd.choose(x, "topics", [1, 2], folds=3, exact=False, **SHORT)
    assert result.best == "2 topics"
    assert result.criterion == "conditional"
    assert len(result.topics) == (2 if form == "words" else 0)
    assert (result.loss_errors[:, 1] > 0).all()


def test_models_of_other_packages_with_words_of_their_own():
    import tomotopy

    def fit(train, count, seed):
        model = tomotopy.LDAModel(k=count, seed=seed)
        for one in train:
            model.add_doc(one)
        model.train(50, workers=1)
        return model

    assert lksd.choose(WORDS, fit, [1, 2], folds=3, **SHORT).best == "2"


def test_states_and_components():
    rng = np.random.default_rng(0)
    stays = np.repeat(rng.integers(2, size=(60, 4)), 5, axis=1)
    x = np.where(rng.random((60, 20)) < 0.9, stays, 1 - stays)
    result = lksd.choose(x, "states", [1, 2], folds=3)
    assert result.best == "2 states"
    assert result.criterion == "log"
    apart = rng.normal(size=(90, 2)) + 6.0 * (np.arange(90) % 2)[:, None]
    found = lksd.choose(apart, "mixture", [1, 2, 3], folds=3)
    assert found.confidence_set[0] == "2 components"
    both = lksd.choose(apart, "mixture", {"count": [1, 2], "covariance": ["full", "diag"]}, folds=3)
    assert "2 components (diag)" in both.candidates


def test_frames_keep_their_names():
    columns = [f"c{i}" for i in range(6)]
    frame = pandas.DataFrame(X, columns=columns, index=[f"row {i}" for i in range(len(X))])
    result = lksd.choose(frame, "factors", [1, 2], folds=3)
    assert result.labels[3] == "row 3"
    assert tuple(result.model.columns) == tuple(columns)
    other = lksd.choose(polars.DataFrame(X, schema=columns), "factors", [1, 2], folds=3)
    np.testing.assert_allclose(result.losses, other.losses, rtol=1e-12)


def test_own_models_by_chains_are_compared_in_one_metric():
    def fit(train, scale):
        return lksd.models.PPCA(np.ones((6, 1)), scale)

    result = lksd.choose(X[:40], fit, [1.0, 3.0], folds=2, exact=False, criterion="fisher")
    assert result.criterion == "fisher"
    model = lksd.models.PPCA(np.ones((6, 1)), 1.0)
    whole = lksd.estimate_scores(
        model, X[:40], criteria=lksd.criteria.Fisher(np.var(X[:40], 0, ddof=1))
    )
    np.testing.assert_allclose(result.losses[:, 0], whole.loss("fisher"), atol=1e-6)


def test_repeats_are_averaged_for_each_observation():
    several = lksd.choose(X, fit_ppca, [1, 2], folds=3, repeats=3)
    assert several.losses.shape == (len(X), 2)
    assert several.fold_numbers.shape == (3, len(X))
    assert several.fold_losses.shape == (9, 2)
    assert several.n == len(X)
    first = lksd.choose(X, fit_ppca, [1, 2], folds=3)
    np.testing.assert_array_equal(first.fold_numbers[0], several.fold_numbers[0])
    assert not np.allclose(first.losses, several.losses)


# ------------------------------------------------------------- doubts


def test_unstable_fits_are_said():
    def fit(train, kind):
        wild = 5.0 * np.sin(1e3 * train.sum()) if kind == "wild" else 0.0
        return lksd.models.PPCA(np.zeros((6, 1)), 1.5, mean=np.full(6, wild))

    result = lksd.choose(X, fit, ["calm", "wild"])
    assert any("varies more between folds" in note for note in result.notes)
    assert not any("varies more" in note for note in lksd.choose(X, fit_ppca, [1, 2]).notes)


def test_copies_and_the_edge_of_the_candidates_are_said(choice):
    doubled = np.concatenate([X, X[:30]])
    result = lksd.choose(doubled, fit_ppca, [1, 2])
    assert any("exact copies" in note for note in (*result.notes, str(result.withheld)))
    edge = lksd.choose(X, "factors", [1, 2], folds=3)
    assert any("largest candidate" in note for note in edge.notes)
    assert not any("copies" in note for note in choice.notes)


def test_a_candidate_that_fails_is_left_out_and_named():
    def fit(train, count):
        if count == 3:
            raise RuntimeError("no third factor today")
        return fit_ppca(train, count)

    result = lksd.choose(X, fit, [1, 2, 3], folds=3)
    assert result.candidates == ("1", "2")
    assert "no third factor today" in result.failures[0]
    assert result.failures[0].startswith("3: it cannot be fitted")
    assert "Left out: 3" in str(result)
    with pytest.raises(ValueError, match="3: it cannot be fitted: no third factor today"):
        lksd.choose(X, fit, [1, 2, 3], folds=3, failures="raise")
    with pytest.raises(ValueError, match="expected at least two that can be fitted"):
        lksd.choose(X, fit, [2, 3], folds=3)


def test_the_model_may_fail_where_the_candidates_did_not():
    def fit(train, count):
        if len(train) == len(X):
            raise RuntimeError("too many")
        return fit_ppca(train, count)

    result = lksd.choose(X, fit, [1, 2], folds=3)
    assert result.model is None
    assert any("there is no model: too many" in note for note in result.notes)


def test_left_out_candidates_are_in_the_sentence():
    def fit(train, count):
        if count == 3:
            raise RuntimeError("no")
        return fit_ppca(train, count)

    assert lksd.choose(X, fit, [1, 2, 3]).sentence.endswith("; left out, since it failed: 3.")


def test_components_on_single_values_withhold_the_verdict():
    rng = np.random.default_rng(0)
    answers = np.clip(np.round(3 + rng.normal(size=(300, 1)) + rng.normal(size=(300, 3))), 1, 5)
    result = lksd.choose(answers, "mixture", [1, 4, 8], folds=3)
    assert "shrink onto single values" in result.withheld
    calm = lksd.choose(rng.normal(size=(150, 2)), "mixture", [1, 2], folds=3)
    assert calm.withheld is None
    assert not any("shrink" in note for note in calm.notes)


def test_the_order_of_the_candidates_is_said():
    result = lksd.choose(np.random.default_rng(0).normal(size=(80, 5)), "factors", [3, 2, 1])
    assert any("do not go up" in note for note in result.notes)
    assert not any("largest candidate" in note for note in result.notes)


def test_tables_of_counts_and_of_ids():
    counts = np.array([np.bincount(one, minlength=12) for one in DOCUMENTS])
    with pytest.raises(ValueError, match="counts=True for counts"):
        lksd.choose(counts, "topics", [1, 2])
    given = {"folds": 3, **SHORT}
    sparse_answer = lksd.choose(sparse.csr_array(counts), "topics", [1, 2], **given)
    dense = lksd.choose(counts, "topics", [1, 2], counts=True, **given)
    np.testing.assert_array_equal(dense.losses, sparse_answer.losses)
    ids = lksd.choose(np.stack(DOCUMENTS), "topics", [1, 2], counts=False, **given)
    lists = lksd.choose([one.tolist() for one in DOCUMENTS], "topics", [1, 2], **given)
    np.testing.assert_array_equal(ids.losses, lists.losses)
    frame = pandas.DataFrame(counts, columns=[f"w{i}" for i in range(12)])
    named = lksd.choose(frame, "topics", [1, 2], counts=True, **given)
    assert named.topics[0][0].startswith("w")


def test_emissions_may_be_chosen():
    x = np.random.default_rng(0).integers(5, size=(40, 6))
    result = lksd.choose(x, "states", {"count": [1, 2], "emission": ["gaussian"]}, folds=2)
    assert result.candidates == ("1 state (gaussian)", "2 states (gaussian)")
    assert result.model.is_gaussian


def test_a_candidate_that_cannot_be_scored_is_left_out_and_named():
    rng = np.random.default_rng(0)
    x = rng.integers(3, size=(40, 5))

    def fit(train, kind):
        emission = [[0.5, 0.5, 0.0]] if kind == "blind" else [[0.3, 0.3, 0.4]]
        emission = [[0.4, 0.3, 0.3]] if kind == "other" else emission
        return lksd.models.HiddenMarkov([1.0], [[1.0]], emission)

    result = lksd.choose(x, fit, ["seeing", "other", "blind"], folds=2)
    assert result.candidates == ("seeing", "other")
    assert result.failures[0].startswith("blind: it cannot be scored")


def nothing(train, candidate):
    return candidate


@pytest.mark.parametrize(
    ("arguments", "options", "words"),
    [
        ((X[:3], fit_ppca, [1, 2]), {}, "at least 4 observations"),
        ((X[:4], fit_ppca, [1, 2]), {}, "folds: expected at most 2"),
        ((X, fit_ppca, [1, 2]), {"folds": 1}, "folds: expected an integer of at least 2"),
        ((X, fit_ppca, [1, 2]), {"repeats": 0}, "repeats: expected an integer"),
        ((X, fit_ppca, [1]), {}, "candidates: expected from 2"),
        ((X, fit_ppca, [1, 2, 2]), {}, "expected different ones; got '2' twice"),
        ((X, fit_ppca, 3), {}, "candidates: expected several values"),
        ((X, "clusters", [1, 2]), {}, "fit: expected one of 'factors'"),
        ((X, 3, [1, 2]), {}, "fit: expected a function"),
        ((X, "factors", [1, 0]), {}, "whole numbers of factors from 1 on; got 0"),
        ((X, "factors", [1, 2.5]), {}, "got 2.5"),
        ((X, "factors", [{"count": 1, "colour": 2}, 2]), {}, "candidates: expected numbers of"),
        ((X, fit_ppca, [1, 2]), {"names": ["one"]}, "names: expected one for each of 2"),
        ((X, fit_ppca, [1, 2]), {"criterion": "ksd"}, "expected one that adds up"),
        ((X, fit_ppca, [1, 2]), {"criterion": "mmd"}, "stands beside another"),
        ((X, fit_ppca, [1, 2]), {"criterion": "conditional"}, "no conditional score"),
        ((X, fit_ppca, [1, 2]), {"failures": "ignore"}, "failures: expected one of"),
        ((X, nothing, [1, 2]), {}, "expected it to return a lksd.models.LatentVariableModel"),
        ((np.where(X > 3, np.nan, X), fit_ppca, [1, 2]), {}, "x: expected finite numbers"),
        ((7, fit_ppca, [1, 2]), {}, "x: expected observations"),
        (([[1.5], [2]] * 10, "topics", [1, 2]), {}, "x: expected documents"),
        (([[1, 2], []] * 10, "states", [1, 2]), {}, "one is empty"),
        (([["a", "b"], ["c"]] * 10, "states", [1, 2]), {}, "x: expected real numbers"),
    ],
)
def test_bad_input_gets_a_sentence(arguments, options, words):
    with pytest.raises((ValueError, TypeError), match=words):
        lksd.choose(*arguments, **options)


def test_parameters_that_an_estimator_lacks():
    from sklearn.decomposition import PCA

    with pytest.raises(ValueError, match="candidates: expected parameters of PCA; got 'factors'"):
        lksd.choose(X, PCA(), {"factors": [1, 2]})


# ------------------------------------------------------------- files


def test_results_are_written_and_read(choice, tmp_path):
    path = tmp_path / "choice.json"
    choice.to_json(path)
    loaded = lksd.load_result(path)
    assert str(loaded) == str(choice)
    assert loaded.model is None
    np.testing.assert_array_equal(loaded.losses, choice.losses)
    assert loaded.to_json() == path.read_text()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"candidates": ("1", "2", "4")}, "candidates and ranking differ"),
        ({"pvalue": 0.5}, "another in the ranking"),
        ({"losses": np.zeros((120, 3))}, "mean losses are not those of the ranking"),
        ({"losses": np.zeros((12, 3))}, "losses is not of n"),
        ({"fold_numbers": np.full((1, 120), 9)}, "fold_numbers are not those of folds"),
        ({"folds": 1}, "there are no folds"),
        ({"labels": ("a",)}, "labels are not of n"),
    ],
)
def test_made_up_results_are_refused(choice, tmp_path, change, said):
    path = tmp_path / "choice.json"
    replace(choice, **change).to_json(path)
    with pytest.raises(ValueError, match=said):
        lksd.load_result(path)


def test_a_constant_loss_is_no_difference():
    def fit(train, name):
        return Fit(lksd.models.PPCA(np.zeros((6, 1)), 2.0))

    result = lksd.choose(X, fit, ["a", "b"])
    assert result.confidence_set == ("a", "b")
    assert not result.reject


def test_the_coverage_of_one_difference():
    """Two models that fit equally well, without estimation: p-values are uniform or larger."""
    pvalues = []
    for seed in range(200):
        x = np.random.default_rng(seed).normal(size=(100, 1))

        def fit(train, mean):
            return lksd.models.PPCA([[0.5]], 1.0, mean=[mean])

        result = lksd.choose(x, fit, [-0.5, 0.5], seed=seed)
        pvalues.append(result.ranking.pvalues.min())
    assert stats.binomtest(int(np.sum(np.array(pvalues) <= 0.05)), 200, 0.055).pvalue > 1e-3
