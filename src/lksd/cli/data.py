"""Data from files. Data are data: nothing that is read here is ever run."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .. import _storage
from .._documents import numbered

KINDS = ".npy, .npz, .csv, .tsv, .parquet, .jsonl or .jsonl.gz"
TABLES, DOCUMENTS = (".csv", ".tsv", ".parquet"), (".jsonl", ".jsonl.gz")
FIELDS = ("tokens", "words")  # of a JSON object that is a document


@dataclass(frozen=True, eq=False)
class Frame:
    """Numbers with the names of their columns, which the library takes as it takes a data frame."""

    values: np.ndarray
    names: tuple[str, ...]
    header: bool = True  # whether the file has the names

    @property
    def columns(self) -> tuple[str, ...] | None:
        return self.names if self.header else None

    def to_numpy(self) -> np.ndarray:
        return self.values

    @property
    def shape(self) -> tuple[int, ...]:
        return self.values.shape

    def row(self, index: int, named: bool = True) -> dict[str, float]:
        return dict(zip(self.names, self.values[index].tolist(), strict=True))


def read_data(path: Path, array: str | None = None, columns: str | None = None, field: str | None = None) -> Any:
    """The observations in a file: an array, a sparse matrix, a ``Frame``, or a list of documents."""
    if not path.is_file():
        raise ValueError(f"{path}: expected a file; there is none. Check the path.")
    kind = path.suffix.lower() if path.suffix.lower() != ".gz" else "".join(path.suffixes[-2:]).lower()
    wanted = None if columns is None else [name.strip() for name in columns.split(",")]
    readers = {
        ".npy": lambda: read_npy(path),
        ".npz": lambda: read_npz(path, array),
        ".csv": lambda: read_text(path, ",", wanted),
        ".tsv": lambda: read_text(path, "\t", wanted),
        ".parquet": lambda: read_parquet(path, wanted),
        ".jsonl": lambda: read_lines(path, field),
        ".jsonl.gz": lambda: read_lines(path, field),
    }
    if kind not in readers:
        raise ValueError(f"{path}: expected a file that ends in {KINDS}; got {kind or 'no ending'!r}. Convert it first.")
    for option, value, kinds in (("--columns", columns, TABLES), ("--array", array, (".npz",)), ("--field", field, DOCUMENTS)):
        if value is not None and kind not in kinds:
            raise ValueError(f"{option}: expected with {', '.join(kinds)}; got {path.name}. Leave it out.")
    return readers[kind]()


def positions(names: list[str], wanted: list[str] | None) -> list[int]:
    """Where the wanted columns stand; all of them if none is named."""
    for name in wanted or ():
        if name not in names:
            raise ValueError(f"--columns: expected names among {short(names)}; got {name!r}. Check the spelling.")
    return list(range(len(names))) if wanted is None else [names.index(name) for name in wanted]


def read_npy(path: Path) -> np.ndarray:
    try:
        with path.open("rb") as file:
            return np.lib.format.read_array(file, allow_pickle=False)
    except (ValueError, OSError, EOFError, SyntaxError) as error:
        raise unreadable(path, "a NumPy array of numbers", error) from error


def read_npz(path: Path, name: str | None) -> Any:
    arrays = read_arrays(path)
    if {"indices", "indptr", "shape", "data", "format"} <= set(arrays):
        return read_sparse(path)
    if name is None and len(arrays) != 1:
        raise ValueError(f"{path}: expected --array with one of {', '.join(arrays)}; the file holds {len(arrays)} arrays.")
    if name is not None and name not in arrays:
        raise ValueError(f"--array: expected one of {', '.join(arrays)}; got {name!r}. Check the spelling.")
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
        return sparse.load_npz(path)
    except (ValueError, KeyError, IndexError) as error:
        raise unreadable(path, "a SciPy sparse matrix", error) from error


def read_text(path: Path, delimiter: str, wanted: list[str] | None) -> Frame:
    """A table of numbers with or without a header."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = [row for row in csv.reader(file, delimiter=delimiter) if any(cell.strip() for cell in row)]
    except (UnicodeDecodeError, csv.Error) as error:
        raise unreadable(path, "a table of numbers as UTF-8 text", error) from error
    if not rows:
        raise ValueError(f"{path}: expected a table of numbers; the file is empty. Check it.")
    header = None if all(is_number(cell) for cell in rows[0]) else [cell.strip() for cell in rows.pop(0)]
    width = len(header or rows[0])
    names = header or [f"column {i}" for i in range(width)]
    chosen = positions(names, wanted)
    values = np.empty((len(rows), len(chosen)))
    for i, row in enumerate(rows):
        if len(row) != width:
            raise ValueError(f"{path}: expected {width} cells in every row; row {i} has {len(row)}. Check its commas and quotes.")
        for column, j in enumerate(chosen):
            if not is_number(row[j]):
                raise ValueError(
                    f"{path}: expected numbers; got {short(row[j])} in row {i}, column {names[j]!r}. "
                    "Remove missing values, or choose numeric columns with --columns."
                )
            values[i, column] = float(row[j])
    return Frame(values, tuple(names[j] for j in chosen), header is not None)


def is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell


def read_parquet(path: Path, wanted: list[str] | None) -> Frame:
    try:
        import polars
    except ImportError as error:
        raise ImportError("Parquet files need polars, which is not installed. Run: pip install 'lksd[parquet]'") from error
    try:
        table = polars.read_parquet(path)
    except Exception as error:  # polars has no common class for damaged files
        raise unreadable(path, "a Parquet table", error) from error
    table = table[:, positions(table.columns, wanted)]
    for name, kind in table.schema.items():
        if not kind.is_numeric() and kind != polars.Boolean:
            raise ValueError(f"{path}: expected numeric columns; {name!r} is {kind}. Choose others with --columns.")
        if table[name].null_count():
            raise ValueError(f"{path}: expected no missing values; column {name!r} has {table[name].null_count()}. Remove them.")
    return Frame(table.to_numpy().astype(np.float64), tuple(table.columns))


def read_lines(path: Path, field: str | None) -> list[list[int] | list[str]]:
    """Documents, one in a line: a list of words or of word ids, or an object that holds one."""
    documents: list[Any] = []
    for number, line in enumerate(lines(path), start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (json.JSONDecodeError, RecursionError) as error:
            raise ValueError(f"{path}: expected JSON in every line; line {number} of it is not ({error}). Check it.") from error
        documents.append(document(record, field, f"{path}: {numbered(len(documents))}, line {number} of the file"))
    if not documents:
        raise ValueError(f"{path}: expected a document in every line; the file is empty. Check it.")
    if len({isinstance(one[0], str) for one in documents if one}) > 1:
        raise ValueError(f"{path}: expected all documents as words, or all as word ids; got both. Use one of them.")
    return documents


def lines(path: Path) -> Iterator[str]:
    try:
        with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as file:
            yield from file
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise unreadable(path, "lines of JSON as UTF-8 text", error) from error


def document(record: Any, field: str | None, where: str) -> list[Any]:
    """The tokens of one line."""
    if isinstance(record, dict):
        name = field or next((one for one in FIELDS if one in record), None)
        if name is None or name not in record:
            wanted = repr(field) if field else " or ".join(map(repr, FIELDS))
            raise ValueError(
                f"{where}: expected an object with {wanted}; got {', '.join(map(repr, record))}. Name it with --field."
            )
        record = record[name]
    if isinstance(record, str):
        raise ValueError(f"{where}: expected a list of words; got a text. Split it as for the models' training documents.")
    if not isinstance(record, list):
        raise ValueError(f"{where}: expected a list of words or of word ids; got {short(record)}. Remove or mend the line.")
    words = bool(record) and isinstance(record[0], str)
    for entry in record:
        if isinstance(entry, bool) or not isinstance(entry, str if words else int):
            raise ValueError(f"{where}: expected only {'words' if words else 'word ids'}; got {short(entry)} too. Mend the line.")
    return record


def short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def unreadable(path: Path, wanted: str, error: Exception) -> ValueError:
    if "pickle" in str(error).lower() or "object arrays" in str(error).lower():
        return ValueError(f"{path}: expected numbers; it holds Python objects, which could run code. Save plain arrays of numbers.")
    return ValueError(f"{path}: expected {wanted}; it cannot be read ({str(error).splitlines()[0] if str(error) else 'damaged'}).")
