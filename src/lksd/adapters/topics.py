"""Topic models of other packages as ``lksd.models.LDA``."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._vocabulary import Vocabulary, as_vocabulary
from ..models import LDA
from ._packages import needed


def from_gensim(model: Any, dictionary: Any = None) -> LDA:
    """A trained gensim ``LdaModel`` or ``LdaMulticore`` with its prior over topics, its topics and its words.

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
    >>> texts = [["kernel", "stein", "test"], ["topic", "model", "word"], ["stein", "kernel", "model"]]
    >>> dictionary = Dictionary(texts)
    >>> trained = LdaModel([dictionary.doc2bow(text) for text in texts], num_topics=2, id2word=dictionary, random_state=0)
    >>> lksd.adapters.from_gensim(trained).n_values
    6
    """
    models = needed("from_gensim", "gensim.models", "topics")
    from gensim.utils import FakeDict

    if not isinstance(model, models.LdaModel) or isinstance(model, models.AuthorTopicModel):
        raise TypeError(f"model: expected a gensim.models.LdaModel; got {type(model).__name__}. Train one, or load it.")
    topics = model.get_topics().astype(np.float64)
    known = model.id2word if dictionary is None and not isinstance(model.id2word, FakeDict) else dictionary
    return LDA(model.alpha, topics / topics.sum(1, keepdims=True), words_of(known, topics.shape[1]))


def words_of(dictionary: Any, size: int) -> Vocabulary | None:
    """The words in the order of their ids; None where the model was trained on ids alone."""
    if dictionary is None:
        return None
    if set(dictionary) != set(range(size)):
        raise ValueError(
            f"dictionary: expected a word for each of the model's ids 0 .. {size - 1}; got {len(dictionary)} words, or other ids. "
            "Give the dictionary that the model was trained with."
        )
    return Vocabulary(tuple(str(dictionary[number]) for number in range(size)))


def from_tomotopy(model: Any) -> LDA:
    """A trained tomotopy ``LDAModel`` with its prior over topics (``alpha``), its topics and the words that it uses.

    Examples
    --------
    >>> import lksd, tomotopy
    >>> trained = tomotopy.LDAModel(k=2, seed=0)
    >>> for text in (["kernel", "stein", "test"], ["topic", "model", "word"], ["stein", "kernel", "model"]):
    ...     _ = trained.add_doc(text)
    >>> trained.train(10, workers=1)
    >>> lksd.adapters.from_tomotopy(trained).n_values
    6
    """
    tomotopy = needed("from_tomotopy", "tomotopy", "tomotopy")
    if type(model) is not tomotopy.LDAModel:
        raise TypeError(f"model: expected a tomotopy.LDAModel; got {type(model).__name__}. Train one, or load it.")
    if not model.num_words:  # its topics do not exist yet, and asking for them ends the process
        raise ValueError("model: expected a trained tomotopy.LDAModel; it has not been trained. Add documents and call train().")
    if model.tw != tomotopy.TermWeight.ONE:
        raise ValueError(
            "model: expected a tomotopy.LDAModel that counts every word once; this one weights them "
            f"(tw={weight_name(tomotopy, model)}), so that it is no distribution of documents. Train it with TermWeight.ONE."
        )
    topics = np.array([model.get_topic_word_dist(k) for k in range(model.k)], dtype=np.float64)
    return LDA(model.alpha, topics / topics.sum(1, keepdims=True), as_vocabulary([str(word) for word in model.used_vocabs]))


def weight_name(tomotopy: Any, model: Any) -> str:
    return next((one.name for one in tomotopy.TermWeight if one == model.tw), str(model.tw))
