"""Abstracts of arXiv articles as documents, and topic models of a category, prepared as in the paper (Section 4.3)."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

OWN_STOP_WORDS = frozenset(
    re.findall(
        r"\w+", "however via using study present paper result results also based show use consider considers considered resp"
    )
)


def gensim() -> Any:
    try:
        import gensim.models
        import gensim.parsing.preprocessing
    except ImportError as error:
        raise ImportError("the arXiv experiments need gensim, which is not installed. Run: pip install 'lksd[topics]'") from error
    return gensim


def abstracts(path: Path) -> Iterator[tuple[set[str], list[str]]]:
    """The categories and the words of every abstract that was not withdrawn; ``path`` holds one JSON object a line."""
    dropped = gensim().parsing.preprocessing.STOPWORDS | OWN_STOP_WORDS
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            try:
                record = json.loads(line)
                text, categories = record["abstract"], set(record["categories"].split())
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise ValueError(
                    f"{path}: expected an object with 'abstract' and 'categories' in each line; line {number} is not. "
                    "Give the arXiv snapshot as Kaggle has it."
                ) from error
            if "withdrawn" not in text.lower():
                yield categories, [word for word in words(text) if word not in dropped]


def words(text: str) -> list[str]:
    """Lower-case words; formulas and numbers each become one word."""
    text = re.sub(r"\$\$?[^$]*\$\$?", " xmathx ", text).lower()
    text = re.sub(r"\b\d+([.,]\d+)*\b", " xnumx ", text)
    return re.findall(r"[a-z]+(?:-[a-z]+)*", text)


def corpus(path: Path, categories: tuple[str, ...]) -> tuple[dict[str, list[list[int]]], dict[int, str]]:
    """The documents of each category as ids into one vocabulary, and that vocabulary."""
    ids: dict[str, int] = {}
    documents: dict[str, list[list[int]]] = {name: [] for name in categories}
    for listed, tokens in abstracts(path):
        for name in sorted(listed & set(categories)):
            documents[name].append([ids.setdefault(token, len(ids)) for token in tokens])
    return documents, {number: token for token, number in ids.items()}


def topic_model(documents: list[list[int]], vocabulary: dict[int, str], topics: int = 100):
    """gensim's LdaModel as the paper trained it."""
    bags = [list(zip(*(part.tolist() for part in np.unique(document, return_counts=True)), strict=True)) for document in documents]
    return gensim().models.LdaModel([bag for bag in bags if bag], topics, vocabulary, passes=5, alpha="auto", random_state=0)


def of_length(documents: list[list[int]], length: int, seed: int) -> np.ndarray:
    """Documents of at least ``length`` words, cut to that many of them, drawn without replacement."""
    rng = np.random.default_rng(seed)
    return np.array([rng.choice(document, length, replace=False) for document in documents if len(document) >= length])
