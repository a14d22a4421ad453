"""Documents of words as the word ids of two topic models."""

from __future__ import annotations

from typing import Any

from .._vocabulary import Vocabulary


def as_ids(documents: list[Any], models: list[Any]) -> tuple[list[list[int]], tuple[str, ...]]:
    """Word ids, and a note where words are in no model's vocabulary and so left out."""
    if not isinstance(documents[0][0], str):
        return documents, ()
    known = common_vocabulary(models)
    ids = {word: number for number, word in enumerate(known.words)}
    found = [[ids[word] for word in document if word in ids] for document in documents]
    for number, (document, left) in enumerate(zip(documents, found, strict=True)):
        if not left:
            raise ValueError(
                f"document {number}: none of its {len(document)} words is in the models' vocabulary of {len(ids)} words. "
                "Remove it, or prepare the documents as for the models' training."
            )
    total, kept = sum(map(len, documents)), sum(map(len, found))
    if kept == total:
        return found, ()
    kinds = len({word for document in documents for word in document} - ids.keys())
    note = f"{total - kept:,} of {total:,} words ({kinds:,} different) are not in the models' vocabulary and are left out."
    return found, (note,)


def common_vocabulary(models: list[Any]) -> Vocabulary:
    vocabularies = [getattr(model, "vocabulary", None) for model in models]
    given = [one for one in vocabularies if one is not None]
    if not given:
        raise ValueError("the documents hold words, but no model has a vocabulary. Give word ids, or models with their words.")
    if any(one != given[0] for one in given[1:]):
        raise ValueError("the models' vocabularies differ. Train both with one dictionary, or give documents of word ids.")
    return given[0]
