"""scikit-learn's models against their own densities."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA, FactorAnalysis, LatentDirichletAllocation
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.mixture import BayesianGaussianMixture, GaussianMixture
from sklearn.preprocessing import StandardScaler

import lksd
from lksd.adapters import from_sklearn

DATA = StandardScaler().fit_transform(load_wine().data[:, :5])
TRAIN, X = DATA[::2], DATA[1::2][:20]
COVARIANCES = ("full", "tied", "diag", "spherical")
PRIORS = ("dirichlet_process", "dirichlet_distribution")
BAYESIAN = {"n_components": 4, "max_iter": 500, "random_state": 0}
MODELS = [
    PCA(2),
    PCA(2, whiten=True),
    PCA(),
    PCA(5, whiten=True),
    FactorAnalysis(2),
    *(GaussianMixture(3, covariance_type=kind, random_state=0) for kind in COVARIANCES),
    *(
        BayesianGaussianMixture(
            covariance_type=kind, weight_concentration_prior_type=prior, **BAYESIAN
        )
        for kind in COVARIANCES
        for prior in PRIORS
    ),
]


def slopes(log_density, x, step=1e-5):
    """By central differences."""
    moves = step * np.eye(x.shape[1])
    return np.stack(
        [(log_density(x + move) - log_density(x - move)) / (2 * step) for move in moves], 1
    )


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_scores_are_those_of_score_samples(model):
    fitted = model.fit(TRAIN)
    np.testing.assert_allclose(
        lksd.estimate_scores(from_sklearn(fitted), X).score,
        slopes(fitted.score_samples, X),
        atol=1e-6,
    )


@pytest.mark.parametrize(
    "model", [PCA(2), FactorAnalysis(2), GaussianMixture(2, random_state=0)], ids=str
)
def test_densities_are_equal_too(model):
    fitted = model.fit(TRAIN)
    ours = [float(from_sklearn(fitted).log_marginal(one)) for one in X[:3]]
    # in the caller's single precision
    np.testing.assert_allclose(ours, fitted.score_samples(X[:3]), rtol=1e-5)


TEXTS = [
    "kernel stein test kernel",
    "topic model word topic",
    "stein kernel model word",
    "word topic test stein",
] * 3


def test_topics():
    vectorizer = CountVectorizer().fit(TEXTS)
    counts = vectorizer.transform(TEXTS)
    trained = LatentDirichletAllocation(2, doc_topic_prior=0.4, random_state=0).fit(counts)
    model = from_sklearn(trained, vocabulary=vectorizer.get_feature_names_out())
    np.testing.assert_allclose(
        model.topics, trained.components_ / trained.components_.sum(1, keepdims=True)
    )
    np.testing.assert_allclose(model.concentration, [0.4, 0.4])
    native = lksd.models.LDA([0.4, 0.4], model.topics)
    as_counts, as_words = (
        lksd.estimate_scores(model, x)
        for x in (csr_array(counts), [text.split() for text in TEXTS])
    )
    np.testing.assert_array_equal(
        as_counts.score, lksd.estimate_scores(native, csr_array(counts)).score
    )
    np.testing.assert_allclose(np.sort(as_counts.score, 1), np.sort(as_words.score, 1), rtol=1e-9)


NAMED = [
    PCA(2),
    FactorAnalysis(2),
    GaussianMixture(2, random_state=0),
    BayesianGaussianMixture(**BAYESIAN),
]


@pytest.mark.parametrize("estimator", NAMED, ids=lambda one: type(one).__name__)
def test_columns_have_the_names_of_the_data_frame(estimator):
    frame = pd.DataFrame(TRAIN, columns=list("abcde"))
    model = from_sklearn(estimator.fit(frame))
    assert (
        model.columns
        == lksd.models.composed.smoothed(model, 0.1).columns
        == replace(model).columns
        == tuple("abcde")
    )
    field = "means" if hasattr(model, "means") else "mean"
    predictive = lksd.models.PosteriorPredictive(
        model, {field: np.stack([getattr(model, field)] * 2)}
    )
    assert predictive.models.columns == tuple("abcde")
    np.testing.assert_allclose(
        lksd.estimate_scores(predictive, X).score, lksd.estimate_scores(model, X).score, rtol=1e-9
    )
    assert from_sklearn(estimator.fit(TRAIN)).columns is None


BAD = {
    "names of columns": (
        lambda: lksd.models.PPCA(np.ones((3, 1)), 1.0, columns=["a", "b"]),
        ValueError,
        "columns: expected 3 different names, one for each column of x; got .'a', 'b'.",
    ),
    "not fitted": (
        lambda: from_sklearn(PCA(2)),
        ValueError,
        "expected a fitted PCA; it is not fitted yet. Call fit",
    ),
    "mixture not fitted": (
        lambda: from_sklearn(GaussianMixture(2)),
        ValueError,
        "expected a fitted GaussianMixture",
    ),
    "another estimator": (
        lambda: from_sklearn(StandardScaler()),
        TypeError,
        "expected a fitted PCA, .*; got a StandardScaler",
    ),
    "a class": (lambda: from_sklearn(PCA), TypeError, "got the class PCA"),
    "degenerate": (
        lambda: from_sklearn(PCA().fit(TRAIN[:4])),
        ValueError,
        "keeps 4 of 5 components.*degenerate",
    ),
    "words of a mixture": (
        lambda: from_sklearn(GaussianMixture(2).fit(TRAIN), ["a"]),
        ValueError,
        "vocabulary: expected with LatentDirichletAllocation only",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name):
    call, kind, message = BAD[name]
    with pytest.raises(kind, match=message):
        call()
