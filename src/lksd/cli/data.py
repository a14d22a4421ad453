"""Data from files. Data are data: nothing that is read here is ever run."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from .. import _storage
from .._documents import numbered
from .tables import read_parquet, read_text, short

KINDS = ".npy, .npz, .csv, .tsv, .parquet or .jsonl, where text may be compressed as .gz"
TEXTS, DOCUMENTS = (".csv", ".tsv", ".csv.gz", ".tsv.gz"), (".jsonl", ".jsonl.gz")
TABLES = (*TEXTS, ".parquet")
FIELDS = ("tokens", "words")  # of a JSON object that is a document


def read_data(
    path: Path,
    array: str | None = None,
    columns: str | None = None,
    field: str | None = None,
    header: bool | None = None,
) -> Any:
    """The observations in a file: an array, a sparse matrix, a ``Frame``, or a list of
    documents.
    """
    if not path.is_file():
        found = "a folder is there" if path.is_dir() else "there is none"
        raise ValueError(f"{path}: expected a file; {found}. Check the path.")
    kind = (
        path.suffix.lower() if path.suffix.lower() != ".gz" else "".join(path.suffixes[-2:]).lower()
    )
    wanted = None if columns is None else [name.strip() for name in columns.split(",")]
    readers = {
        ".npy": lambda: read_npy(path),
        ".npz": lambda: read_npz(path, array),
        **{kind: lambda: read_text(path, ",", wanted, header) for kind in (".csv", ".csv.gz")},
        **{kind: lambda: read_text(path, "\t", wanted, header) for kind in (".tsv", ".tsv.gz")},
        ".parquet": lambda: read_parquet(path, wanted),
        ".jsonl": lambda: read_lines(path, field),
        ".jsonl.gz": lambda: read_lines(path, field),
    }
    if kind not in readers:
        raise ValueError(
            f"{path}: expected a file that ends in {KINDS}; got {kind or 'no ending'!r}. Convert "
            "it first."
        )
    given: list[tuple[str, Any, tuple[str, ...]]] = [
        ("--columns", columns, TABLES),
        ("--array", array, (".npz",)),
    ]
    given += [
        ("--field", field, DOCUMENTS),
        ("--header" if header else "--no-header", header, TEXTS),
    ]
    for option, value, kinds in given:
        if value is not None and kind not in kinds:
            raise ValueError(
                f"{option}: expected with {', '.join(kinds)}; got {path.name}. Leave it out."
            )
    return readers[kind]()


def read_npy(path: Path) -> np.ndarray:
    try:
        with path.open("rb") as file:
            return np.lib.format.read_array(file, allow_pickle=False)
    except _storage.NOT_ARRAYS as error:
        raise unreadable(path, "a NumPy array of numbers", error) from error


def read_npz(path: Path, name: str | None) -> Any:
    arrays = read_arrays(path)
    if {"shape", "data", "format"} <= set(arrays):  # of any of SciPy's formats
        return read_sparse(path)
    if name is None and len(arrays) != 1:
        raise ValueError(
            f"{path}: expected --array with one of {', '.join(arrays)}; the file holds "
            f"{len(arrays)} arrays."
        )
    if name is not None and name not in arrays:
        raise ValueError(
            f"--array: expected one of {', '.join(arrays)}; got {name!r}. Check the spelling."
        )
    return arrays[name or next(iter(arrays))]


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """All arrays of an .npz file."""
    try:
        return _storage.read_arrays(path)
    except _storage.NOT_ARRAYS as error:
        raise unreadable(path, "an archive of NumPy arrays", error) from error


def read_sparse(path: Path) -> Any:
    from scipy import sparse

    try:
        matrix = sparse.load_npz(path)
        # indices that point outside of the matrix would be followed there
        if hasattr(matrix, "check_format"):
            matrix.check_format(full_check=True)
        return matrix.tocsr()
    except _storage.NOT_ARRAYS as error:
        raise unreadable(path, "a SciPy sparse matrix", error) from error


def is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell


def read_lines(path: Path, field: str | None) -> list[list[int] | list[str]]:
    """Documents, one in a line: a list of words or of word ids, or an object that holds one."""
    documents: list[Any] = []
    for number, line in enumerate(lines(path), start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:  # also a number of thousands of digits
            raise ValueError(
                f"{path}: expected JSON in every line; line {number} of it is not ({error}). Check "
                "it."
            ) from error
        documents.append(
            document(
                record, field, f"{path}: {numbered(len(documents))}, line {number} of the file"
            )
        )
    if not documents:
        raise ValueError(f"{path}: expected a document in every line; the file is empty. Check it.")
    if len({isinstance(one[0], str) for one in documents if one}) > 1:
        raise ValueError(
            f"{path}: expected all documents as words, or all as word ids; got both. Use one of "
            "them."
        )
    return documents


def lines(path: Path) -> Iterator[str]:
    try:
        with (
            gzip.open(path, "rt", encoding="utf-8")
            if path.suffix == ".gz"
            else path.open(encoding="utf-8") as file
        ):
            yield from file
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        raise unreadable(path, "lines of JSON as UTF-8 text", error) from error


def document(record: Any, field: str | None, where: str) -> list[Any]:
    """The tokens of one line."""
    if isinstance(record, dict):
        name = field or next((one for one in FIELDS if one in record), None)
        if name is None or name not in record:
            wanted = repr(field) if field else " or ".join(map(repr, FIELDS))
            raise ValueError(
                f"{where}: expected an object with {wanted}; got {', '.join(map(repr, record))}. "
                "Name it with --field."
            )
        record = record[name]
    if isinstance(record, str):
        raise ValueError(
            f"{where}: expected a list of words; got a text. Split it as for the models' training "
            "documents."
        )
    if not isinstance(record, list):
        raise ValueError(
            f"{where}: expected a list of words or of word ids; got {short(record)}. Remove or "
            "mend the line."
        )
    words = bool(record) and isinstance(record[0], str)
    for entry in record:
        if isinstance(entry, bool) or not isinstance(entry, str if words else int):
            raise ValueError(
                f"{where}: expected only {'words' if words else 'word ids'}; got {short(entry)} "
                "too. Mend the line."
            )
    return record


def unreadable(path: Path, wanted: str, error: Exception) -> ValueError:
    if "pickle" in str(error).lower() or "object arrays" in str(error).lower():
        return ValueError(
            f"{path}: expected numbers; it holds Python objects, which could run code. Save plain "
            "arrays of numbers."
        )
    return ValueError(
        f"{path}: expected {wanted}; it cannot be read "
        f"({str(error).splitlines()[0] if str(error) else 'damaged'})."
    )
