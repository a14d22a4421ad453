"""Texts as documents of words."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import polars

from .data import DOCUMENTS, TEXTS, lines, unreadable

TITLE = "title"  # the column of titles, where none is named
TABLES = (*TEXTS, ".parquet")
KINDS = "a folder of .txt files, or a .csv, .tsv, .parquet or .jsonl file"


class Corpus(NamedTuple):
    """Documents as lists of words, what they are called, and how they were made, in words."""

    documents: list[list[str]]
    titles: tuple[str, ...] | None
    said: str


def read_corpus(
    path: Path, text: str | None, title: str | None, stop_words: str, least: int
) -> Corpus:
    """The texts of a folder or of a column, split into words."""
    texts, titles = read_folder(path) if path.is_dir() else read_column(path, text, title)
    if not texts:
        raise ValueError(f"{path}: expected texts; got none. Check the path and --text.")
    if least < 1:
        raise ValueError(
            f"--min-documents: expected a number of at least 1; got {least}. Give how many "
            "documents a word must be in."
        )
    if stop_words not in ("english", "none"):
        raise ValueError(
            f"--stop-words: expected english or none; got {stop_words!r}. Give one of them."
        )
    return split(texts, titles, stop_words, least)


def split(
    texts: Sequence[str], titles: tuple[str, ...] | None, stop_words: str, least: int
) -> Corpus:
    """Words by scikit-learn's ``CountVectorizer``; texts without any are left out."""
    from sklearn.feature_extraction.text import CountVectorizer

    stopped = "english" if stop_words == "english" else None
    vectorizer = CountVectorizer(stop_words=stopped, min_df=least)
    try:
        known = set(vectorizer.fit(texts).get_feature_names_out())
    except ValueError as error:
        raise ValueError(
            f"--text: no words are left of {len(texts):,} texts ({error}). Lower --min-documents, "
            "or name another column."
        ) from error
    words = vectorizer.build_analyzer()
    documents = [[word for word in words(text) if word in known] for text in texts]
    kept = [number for number, one in enumerate(documents) if one]
    total = sum(map(len, documents))
    said = (
        f"{len(kept):,} documents, {total:,} words, {len(known):,} of them different: in lower "
        f"case, {'without English stop words, ' if stopped else ''}each in at least {least} "
        f"documents"
    )
    if len(kept) < len(texts):
        lost = len(texts) - len(kept)
        said += f"; {lost:,} document{'s' * (lost > 1)} without such words left out"
    called = None if titles is None else tuple(titles[number] for number in kept)
    return Corpus([documents[number] for number in kept], called, said)


def read_folder(path: Path) -> tuple[list[str], tuple[str, ...]]:
    """The .txt files of a folder, by their names."""
    files = sorted(path.glob("*.txt"))
    if not files:
        raise ValueError(f"{path}: expected .txt files in the folder; there are none. Check it.")
    try:
        return [one.read_text(encoding="utf-8") for one in files], tuple(one.stem for one in files)
    except UnicodeDecodeError as error:
        raise unreadable(path, "texts as UTF-8", error) from error


def read_column(
    path: Path, text: str | None, title: str | None
) -> tuple[list[str], tuple[str, ...] | None]:
    """The texts in a column of a table or a field of JSON lines, with their titles."""
    if not path.is_file():
        raise ValueError(f"{path}: expected {KINDS}; there is none. Check the path.")
    kind = "".join(path.suffixes[-2:]).lower() if path.suffix == ".gz" else path.suffix.lower()
    if kind not in (*TABLES, *DOCUMENTS):
        raise ValueError(f"{path}: expected {KINDS}; got {kind!r}. Convert it first.")
    columns = read_records(path) if kind in DOCUMENTS else read_table(path, kind)
    if text is None or text not in columns:
        came = "none was named" if text is None else f"got {text!r}"
        raise ValueError(
            f"--text: expected the column that has the texts, one of {', '.join(columns)}; {came}. "
            "Name one."
        )
    if title is not None and title not in columns:
        raise ValueError(
            f"--title: expected one of {', '.join(columns)}; got {title!r}. Check the spelling."
        )
    named = title or (TITLE if TITLE in columns and text != TITLE else None)
    texts = [one if isinstance(one, str) else "" for one in columns[text]]
    if not any(texts):
        raise ValueError(f"--text: expected texts in {text!r}; it has none. Name another column.")
    return texts, None if named is None else tuple(map(str, columns[named]))


def read_table(path: Path, kind: str) -> dict[str, list[Any]]:
    """The columns of a table, as text."""
    try:
        if kind == ".parquet":
            frame = polars.read_parquet(path)
        else:
            separator = "\t" if "tsv" in kind else ","
            frame = polars.read_csv(path, separator=separator, infer_schema=False)
    except (polars.exceptions.PolarsError, OSError, ValueError) as error:
        raise unreadable(path, "a table with a header", error) from error
    return frame.to_dict(as_series=False)


def read_records(path: Path) -> dict[str, list[Any]]:
    """The fields of JSON objects, one in a line."""
    records = []
    for number, line in enumerate(lines(path), start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise ValueError(
                f"{path}: expected JSON in every line; line {number} is not ({error}). Check it."
            ) from error
        if not isinstance(record, dict):
            raise ValueError(
                f"{path}: expected a JSON object with texts in every line; line {number} is none. "
                "Leave --text out for lists of words."
            )
        records.append(record)
    names = dict.fromkeys(name for record in records for name in record)
    return {name: [record.get(name) for record in records] for name in names}
