"""The words of a topic model, as a constant that compiled programs may carry."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Vocabulary:
    """Words in the order of their ids."""

    words: tuple[str, ...]

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
