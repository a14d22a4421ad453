"""Abstracts of arXiv articles as documents, and topic models of a category, prepared as in the paper (Section 4.3)."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

ABSTRACTS = Path(__file__).parents[2] / "shared" / "data" / "arxiv" / "abstracts.jsonl.gz"
OWN_STOP_WORDS = frozenset(
    re.findall(
        r"\w+", "however via using study present paper result results also based show use consider considers considered resp"
    )
)


def abstracts() -> Iterator[tuple[set[str], list[str]]]:
    """The categories and the words of every abstract that was not withdrawn."""
    from gensim.parsing.preprocessing import STOPWORDS

    dropped = STOPWORDS | OWN_STOP_WORDS
    with gzip.open(ABSTRACTS, "rt", encoding="utf-8") as lines:
        for line in lines:
            record = json.loads(line)
            if "withdrawn" not in record["abstract"].lower():
                yield set(record["categories"].split()), [word for word in words(record["abstract"]) if word not in dropped]


def words(text: str) -> list[str]:
    text = re.sub(r"\$\$?[^$]*\$\$?", " xmathx ", text).lower()
    text = re.sub(r"\b\d+([.,]\d+)*\b", " xnumx ", text)
    return re.findall(r"[a-z]+(?:-[a-z]+)*", text)


def corpus(*categories: str) -> tuple[dict[str, list[list[int]]], dict[int, str]]:
    """The documents of each category as ids into one vocabulary, and that vocabulary."""
    ids: dict[str, int] = {}
    documents: dict[str, list[list[int]]] = {name: [] for name in categories}
    for listed, tokens in abstracts():
        for name in listed & set(categories):
            documents[name].append([ids.setdefault(token, len(ids)) for token in tokens])
    return documents, {number: token for token, number in ids.items()}


def topic_model(documents: list[list[int]], vocabulary: dict[int, str], topics: int = 100):
    """gensim's LdaModel as the paper trained it."""
    from gensim.models import LdaModel

    bags = [list(zip(*(part.tolist() for part in np.unique(document, return_counts=True)), strict=True)) for document in documents]
    return LdaModel([bag for bag in bags if bag], topics, vocabulary, passes=5, alpha="auto", random_state=0)


def of_length(documents: list[list[int]], length: int, seed: int) -> np.ndarray:
    """Documents of at least ``length`` words, cut to that many of them, drawn without replacement."""
    rng = np.random.default_rng(seed)
    return np.array([rng.choice(document, length, replace=False) for document in documents if len(document) >= length])
