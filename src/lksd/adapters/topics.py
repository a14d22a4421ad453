"""Topic models of other packages as ``lksd.models.LDA``."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._vocabulary import Vocabulary
from ..models import LDA


def from_gensim(model: Any, dictionary: Any = None) -> LDA:
    """A trained gensim ``LdaModel`` with its prior over topics, its topics and its words.

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
    try:
        from gensim.models import LdaModel
        from gensim.utils import FakeDict
    except ImportError as error:
        raise ImportError("from_gensim needs gensim, which is not installed. Run: pip install 'lksd[topics]'") from error
    if not isinstance(model, LdaModel):
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
