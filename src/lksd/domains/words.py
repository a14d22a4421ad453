"""Documents of words, and topic models of different words on one vocabulary."""

from __future__ import annotations

from typing import Any

from .._vocabulary import (
    Vocabulary,
    as_documents,
    holds_words,
    is_words,
    vocabularies_of,
    word_columns,
)
from ..models import LDA
from ..options import Reading
from .base import is_estimate


def read_words(
    x: Any, models: list[Any], reading: Reading
) -> tuple[Any, list[Any], tuple[str, ...]]:
    """Documents of words as ids, topic models on one vocabulary, and what was left out."""
    counts = reading.counts
    if any(map(is_estimate, models)) and (is_words(x) or (counts and word_columns(x))):
        raise ValueError(
            "x: expected word ids beside scores that are already estimated, or an array of counts "
            "in their order; got words. Give the ids that they belong to."
        )
    if not holds_words(x, models, counts):
        return x, models, ()
    given = vocabularies_of(models)
    if any(other != given[0] for other in given[1:]):
        models = list(share_vocabulary(*models))
    documents, notes = as_documents(x, vocabularies_of(models)[0], reading.drop_empty)
    return documents, models, notes


def share_vocabulary(*models: LDA, smoothing: float | None = None) -> tuple[LDA, ...]:
    """Topic models of different words on one vocabulary: the words of all.

    A word that a model does not know gets a small probability in each of its topics, and the rest
    is scaled down. ``compare`` does this by itself for documents of words.

    Parameters
    ----------
    models : LDA
        With their vocabularies, which have at least one word in common.
    smoothing : float, optional
        The probability of an unknown word before the topic is normalised. Default: the smallest
        that the topic gives to a word, as to one that it has never seen.

    Examples
    --------
    >>> import lksd
    >>> p = lksd.models.LDA([1.0], [[0.5, 0.5]], ["kernel", "stein"])
    >>> q = lksd.models.LDA([1.0], [[0.8, 0.2]], ["kernel", "topic"])
    >>> p, q = lksd.adapters.share_vocabulary(p, q)
    >>> q.vocabulary.words, q.topics.round(2).tolist()
    (('kernel', 'stein', 'topic'), [[0.67, 0.17, 0.17]])
    """
    if len(models) < 2:
        raise ValueError(
            f"models: expected at least two; got {len(models)}. Give the models that are to be "
            "compared."
        )
    for model in models:
        if not isinstance(model, LDA) or model.vocabulary is None:
            raise TypeError(
                f"models: expected lksd.models.LDA with their vocabularies; got {model!r}. Give "
                "vocabulary=, the words."
            )
    if smoothing is not None and not 0 < smoothing < 1:
        raise ValueError(
            f"smoothing: expected a number strictly between 0 and 1; got {smoothing!r}. Leave it "
            "out for the default."
        )
    known = [model.vocabulary.words for model in models]  # type: ignore[union-attr]
    if not set.intersection(*map(set, known)):
        sizes = ", ".join(f"{len(words):,}" for words in known)
        raise ValueError(
            f"models: expected topic models with words in common; of {sizes} words none is in all "
            f"of them ({known[0][0]!r} in one, {known[1][0]!r} in another). Prepare the words in "
            "the same way for all."
        )
    shared = Vocabulary(tuple(dict.fromkeys(word for words in sorted(known) for word in words)))
    return tuple(model.over(shared, smoothing) for model in models)
