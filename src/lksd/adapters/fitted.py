"""Fitted models of scikit-learn, gensim and tomotopy, as the native models with the
same density.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import digamma

from .._vocabulary import Vocabulary, as_vocabulary
from ..models import LDA, PPCA, FactorAnalysis, GaussianMixture, LatentVariableModel
from ._packages import needed


def from_sklearn(model: Any, vocabulary: Sequence[str] | None = None) -> LatentVariableModel:
    """A fitted ``PCA``, ``FactorAnalysis``, ``GaussianMixture``, ``BayesianGaussianMixture`` or
    ``LatentDirichletAllocation``.

    The log density is that of the model's own ``score_samples``, up to a constant for
    ``BayesianGaussianMixture``. Topics of ``LatentDirichletAllocation`` are the means of their
    variational posterior; documents are then word counts (a SciPy sparse matrix, or dense with
    ``counts=True``) or, with a vocabulary, words. Where the model was fitted on a data frame, the
    result has the names of its columns.

    Parameters
    ----------
    model : fitted estimator
    vocabulary : sequence of str, optional
        The words of a ``LatentDirichletAllocation``: ``vectorizer.get_feature_names_out()``.

    Examples
    --------
    >>> import numpy as np, lksd
    >>> from sklearn.decomposition import PCA
    >>> x = np.random.default_rng(0).normal(size=(50, 4))
    >>> lksd.adapters.from_sklearn(PCA(2).fit(x)).weight.shape
    (4, 2)
    """
    needed("from_sklearn", "sklearn", "sklearn")
    from sklearn import decomposition, mixture
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    known: dict[type, Callable] = {
        decomposition.PCA: from_pca,
        decomposition.FactorAnalysis: lambda one: FactorAnalysis(
            one.components_.T, one.noise_variance_, mean=one.mean_
        ),
        mixture.GaussianMixture: lambda one: GaussianMixture(
            one.weights_, one.means_, full_covariances(one)
        ),
        mixture.BayesianGaussianMixture: from_bayesian_mixture,
        decomposition.LatentDirichletAllocation: from_lda,
    }
    convert = next((function for kind, function in known.items() if isinstance(model, kind)), None)
    if convert is None:
        names = ", ".join(kind.__name__ for kind in known)
        what = (
            f"the class {model.__name__}"
            if isinstance(model, type)
            else f"a {type(model).__name__}"
        )
        raise TypeError(
            f"model: expected a fitted {names}; got {what}. Give the estimator itself, without a "
            "pipeline around it."
        )
    try:
        check_is_fitted(model)
    except NotFittedError as error:
        raise ValueError(
            f"model: expected a fitted {type(model).__name__}; it is not fitted yet. Call "
            "fit(data) first."
        ) from error
    if convert is from_lda:
        return from_lda(model, vocabulary)
    if vocabulary is not None:
        raise ValueError(
            "vocabulary: expected with LatentDirichletAllocation only; got one with "
            f"{type(model).__name__}. Leave it out."
        )
    return replace(convert(model), columns=getattr(model, "feature_names_in_", None))


def from_pca(model) -> PPCA:
    """The covariance W W' + noise I of Tipping and Bishop (1999): variances of its own along the
    components, noise elsewhere.
    """
    variances, noise, components = (
        model.explained_variance_,
        float(model.noise_variance_),
        model.components_,
    )
    count, dim = components.shape
    scale = variances if model.whiten else 1.0  # as its own get_covariance has it
    own = scale * np.maximum(variances - noise, 0.0) + noise
    if noise == 0 and count == dim:
        # the same covariance, with the smallest variance in all directions
        noise = float(own.min())
    if not noise > 0:
        raise ValueError(
            f"model: expected a PCA with noise; this one keeps {count} of {dim} components, and "
            f"the variance of the others is {noise:g}, so its density is degenerate. Keep fewer "
            "components (n_components), or fit it on more observations."
        )
    return PPCA(components.T * np.sqrt(own - noise), np.sqrt(noise), mean=model.mean_)


def from_bayesian_mixture(model) -> GaussianMixture:
    """Its ``score_samples`` is a mixture with weights exp E[log(weight)] and Gaussians shrunk by
    the expected precision.
    """
    count, dim = model.means_.shape
    freedom = np.broadcast_to(model.degrees_of_freedom_, count)
    # E log |precision|, up to its scale
    log_precision = dim * np.log(2) + digamma((freedom - np.arange(dim)[:, None]) / 2).sum(0)
    log_weights = expected_log_weights(model)
    log_weights = (
        log_weights + (log_precision - dim * np.log(freedom) - dim / model.mean_precision_) / 2
    )
    weights = np.exp(log_weights - log_weights.max())
    # a component that never occurs has no part in the score
    kept = weights > np.finfo(np.float64).tiny
    return GaussianMixture(
        weights[kept] / weights[kept].sum(), model.means_[kept], full_covariances(model)[kept]
    )


def expected_log_weights(model) -> np.ndarray:
    """E log(weight) under the Dirichlet posterior, or the stick-breaking one of a Dirichlet
    process.
    """
    if model.weight_concentration_prior_type == "dirichlet_distribution":
        return digamma(model.weight_concentration_) - digamma(np.sum(model.weight_concentration_))
    a, b = model.weight_concentration_
    stick, rest = digamma(a) - digamma(a + b), digamma(b) - digamma(a + b)
    return stick + np.concatenate([[0.0], np.cumsum(rest)[:-1]])


def full_covariances(model) -> np.ndarray:
    """(K, D, D), whatever the covariance type."""
    count, dim = model.means_.shape
    given = np.asarray(model.covariances_, dtype=np.float64)
    if model.covariance_type == "full":
        return given
    if model.covariance_type == "tied":
        return np.broadcast_to(given, (count, dim, dim))
    return (given if model.covariance_type == "diag" else given[:, None])[..., None] * np.eye(dim)


def from_lda(model, vocabulary: Sequence[str] | None) -> LDA:
    topics = model.components_ / model.components_.sum(1, keepdims=True)
    words = getattr(model, "feature_names_in_", None) if vocabulary is None else vocabulary
    named = None if words is None else as_vocabulary([str(word) for word in words])
    return LDA(np.full(len(topics), model.doc_topic_prior_), topics, named)


def from_gensim(model: Any, dictionary: Any = None) -> LDA:
    """A trained gensim ``LdaModel`` or ``LdaMulticore`` with its prior over topics, its topics and
    its words.

    Parameters
    ----------
    model : gensim.models.LdaModel
        Concentrations are its ``alpha``; topics are the means of their variational posterior.
    dictionary : gensim.corpora.Dictionary or dict of id to word, optional
        The words of the ids; default: those the model knows, if it was trained with words.

    Examples
    --------
    >>> from gensim.corpora import Dictionary
    >>> from gensim.models import LdaModel
    >>> import lksd
    >>> texts = [["kernel", "stein", "test"], ["topic", "model", "word"], ["stein", "model"]]
    >>> dictionary = Dictionary(texts)
    >>> bags = [dictionary.doc2bow(text) for text in texts]
    >>> trained = LdaModel(bags, num_topics=2, id2word=dictionary, random_state=0)
    >>> lksd.adapters.from_gensim(trained).n_values
    6
    """
    models = needed("from_gensim", "gensim.models", "topics")
    from gensim.utils import FakeDict

    if not isinstance(model, models.LdaModel) or isinstance(model, models.AuthorTopicModel):
        raise TypeError(
            f"model: expected a gensim.models.LdaModel; got {type(model).__name__}. Train one, or "
            "load it."
        )
    topics = model.get_topics().astype(np.float64)
    known = (
        model.id2word
        if dictionary is None and not isinstance(model.id2word, FakeDict)
        else dictionary
    )
    return LDA(model.alpha, topics / topics.sum(1, keepdims=True), words_of(known, topics.shape[1]))


def words_of(dictionary: Any, size: int) -> Vocabulary | None:
    """The words in the order of their ids; None where the model was trained on ids alone."""
    if dictionary is None:
        return None
    if set(dictionary) != set(range(size)):
        raise ValueError(
            f"dictionary: expected a word for each of the model's ids 0 .. {size - 1}; got "
            f"{len(dictionary)} words, or other ids. Give the dictionary that the model was "
            "trained with."
        )
    return Vocabulary(tuple(str(dictionary[number]) for number in range(size)))


def from_tomotopy(model: Any) -> LDA:
    """A trained tomotopy ``LDAModel`` with its prior over topics (``alpha``), its topics and the
    words that it uses.

    Examples
    --------
    >>> import lksd, tomotopy
    >>> trained = tomotopy.LDAModel(k=2, seed=0)
    >>> for text in (["kernel", "stein", "test"], ["topic", "model", "word"], ["stein", "model"]):
    ...     _ = trained.add_doc(text)
    >>> trained.train(10, workers=1)
    >>> lksd.adapters.from_tomotopy(trained).n_values
    6
    """
    tomotopy = needed("from_tomotopy", "tomotopy", "tomotopy")
    if type(model) is not tomotopy.LDAModel:
        raise TypeError(
            f"model: expected a tomotopy.LDAModel; got {type(model).__name__}. Train one, or load "
            "it."
        )
    # its topics do not exist yet, and asking for them ends the process; another way to do so was
    # fixed after https://github.com/bab2min/tomotopy/issues/197
    if not model.num_words:
        raise ValueError(
            "model: expected a trained tomotopy.LDAModel; it has not been trained. Add documents "
            "and call train()."
        )
    if model.tw != tomotopy.TermWeight.ONE:
        weighting = next(
            (one.name for one in tomotopy.TermWeight if one == model.tw), str(model.tw)
        )
        raise ValueError(
            "model: expected a tomotopy.LDAModel that counts every word once; this one weights "
            f"them (tw={weighting}), so that it is no distribution of documents. Train it with "
            "TermWeight.ONE."
        )
    topics = np.array([model.get_topic_word_dist(k) for k in range(model.k)], dtype=np.float64)
    return LDA(
        model.alpha,
        topics / topics.sum(1, keepdims=True),
        as_vocabulary([str(word) for word in model.used_vocabs]),
    )
