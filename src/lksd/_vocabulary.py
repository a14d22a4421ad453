"""The words of a topic model, as a constant that compiled programs may carry."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ._documents import DROP, numbered


@dataclass(frozen=True)
class Vocabulary:
    """Words in the order of their ids."""

    words: tuple[str, ...]

    def __post_init__(self) -> None:
        if len(set(self.words)) < len(self.words):
            first: dict[str, int] = {}
            word, number = next((w, i) for i, w in enumerate(self.words) if first.setdefault(w, i) != i)
            raise ValueError(
                f"vocabulary: expected different words; words {first[word]} and {number} (counting from 0) are both {word!r}. "
                "Rename one, or add up their columns."
            )

    def __hash__(self) -> int:
        return len(self.words)  # hundreds of thousands of words are compared where that must be, and never hashed

    def __repr__(self) -> str:
        return f"Vocabulary({len(self.words)} words)"


def as_vocabulary(words: Sequence[str] | Vocabulary | None) -> Vocabulary | None:
    if words is None or isinstance(words, Vocabulary):
        return words
    if isinstance(words, str) or not all(isinstance(word, str) for word in words):
        raise TypeError("vocabulary: expected a sequence of strings, one for each word id; got something else. List the words.")
    return Vocabulary(tuple(words))


def is_words(x: Any) -> bool:
    """Documents as lists of words, not of ids."""
    column = getattr(x, "ndim", 0) == 1 and getattr(x.dtype, "kind", "O") in "OUT"
    if not column and not isinstance(x, (list, tuple)):
        return False
    first: Any = next((one for one in x if hasattr(one, "__len__") and len(one)), ())
    if isinstance(first, str):
        raise TypeError(f"x: expected each document as a list of words; got text, {first[:40]!r}. Split it into words first.")
    return hasattr(first, "__getitem__") and len(first) > 0 and isinstance(first[0], str)


def as_ids(
    documents: Sequence[Sequence[str]], vocabulary: Vocabulary, drop_empty: bool = False
) -> tuple[list[list[int]], tuple[str, ...]]:
    """Word ids, and a note where words are not in the vocabulary and so left out; a document without any is an error, or empty."""
    ids = {word: number for number, word in enumerate(vocabulary.words)}
    found = [[ids[word] for word in document if word in ids] for document in documents]
    for number, (document, left) in enumerate(zip(documents, found, strict=True)):
        if not left and not drop_empty:
            raise ValueError(
                f"x: {numbered(number)}: none of its {len(document)} words is in the models' vocabulary of {len(ids)} words. "
                f"Say {DROP} to leave such documents out, or prepare them as for the models' training."
            )
    total, kept = sum(map(len, documents)), sum(map(len, found))
    if kept == total:
        return found, ()
    kinds = len({word for document in documents for word in document} - ids.keys())
    note = f"{total - kept:,} of {total:,} words ({kinds:,} different) are not in the models' vocabulary and are left out."
    return found, (note,)


def vocabularies_of(models: Sequence[Any]) -> list[Vocabulary]:
    """The vocabularies of the models that have one; documents of words need at least one."""
    given = [model.vocabulary for model in models if getattr(model, "vocabulary", None) is not None]
    if not given:
        raise ValueError("x: the documents hold words, but no model has a vocabulary. Give word ids, or models with their words.")
    return given
