"""Fitted objects of other packages in the place of models."""

import numpy as np
import pytest

import lksd

X = np.random.default_rng(0).normal(size=(60, 4)) @ np.diag([2.0, 1.0, 1.0, 1.0])


def test_estimators_are_models_in_every_verb():
    from sklearn.decomposition import PCA, FactorAnalysis

    fits = {"pca": PCA(1).fit(X), "factors": FactorAnalysis(2).fit(X)}
    models = {name: lksd.adapters.from_sklearn(one) for name, one in fits.items()}
    assert str(lksd.compare(X, fits)) == str(lksd.compare(X, models))
    assert str(lksd.rank(X, fits)) == str(lksd.rank(X, models))
    assert (
        lksd.goodness_of_fit(X, fits["pca"]).pvalue == lksd.goodness_of_fit(X, models["pca"]).pvalue
    )


def test_topic_models_of_other_packages():
    import tomotopy
    from gensim.corpora import Dictionary
    from gensim.models import LdaModel

    rng = np.random.default_rng(0)
    documents = [[f"w{word}" for word in rng.integers(8, size=12)] for _ in range(30)]
    dictionary = Dictionary(documents)
    one = LdaModel(
        [dictionary.doc2bow(words) for words in documents],
        num_topics=1,
        id2word=dictionary,
        random_state=0,
    )
    other = tomotopy.LDAModel(k=1, seed=0)
    for words in documents:
        other.add_doc(words)
    other.train(10, workers=1)
    assert lksd.compare(documents, one, other, also=()).n == 30


def program(x=None):
    return x


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (program, "Read a NumPyro program with lksd.adapters.from_numpyro"),
        (lksd.models.PPCA, "Give an instance"),
        (3.0, "Give an instance"),
    ],
)
def test_others_get_a_sentence(given, said):
    with pytest.raises(TypeError, match=f"model: expected a lksd.models.*{said}"):
        lksd.goodness_of_fit(X, given)


def test_an_estimator_that_is_not_fitted():
    from sklearn.decomposition import PCA

    with pytest.raises(ValueError, match="not fitted yet"):
        lksd.compare(X, PCA(1), PCA(2))
