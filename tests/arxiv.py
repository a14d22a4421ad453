"""The abstracts that the slow tests read, where they are."""

from __future__ import annotations

from pathlib import Path

from lksd.reproduce.problems import arxiv
from lksd.reproduce.problems.arxiv import of_length, topic_model

__all__ = ["ABSTRACTS", "corpus", "of_length", "topic_model"]

ABSTRACTS = Path(__file__).parents[2] / "shared" / "data" / "arxiv" / "abstracts.jsonl.gz"


def corpus(*categories: str) -> tuple[dict[str, list[list[int]]], dict[int, str]]:
    return arxiv.corpus(ABSTRACTS, categories)
