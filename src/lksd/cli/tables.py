"""Tables of numbers: CSV, TSV and Parquet. A first line is a header or an observation by one rule,
or the user says which.
"""

from __future__ import annotations

import csv
import gzip
import io
import itertools
import re
import unicodedata
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
INTEGER = re.compile(r"[+-]?[0-9]+")
MISSING = frozenset(
    [
        "",
        "na",
        "n/a",
        "#n/a",
        "nan",
        "+nan",
        "-nan",
        "null",
        "none",
        "nil",
        "missing",
        ".",
        "-",
        "--",
        "?",
    ]
)
INFINITE = frozenset(f"{sign}{word}" for sign in ("", "+", "-") for word in ("inf", "infinity"))
SAY = "Say --header if it holds the columns' names, --no-header if it is an observation."
EXACT = 2**53  # beyond it not every integer is a float64


@dataclass(frozen=True, eq=False)
class Frame:
    """Numbers with the names of their columns, which the library takes as it takes a data frame."""

    values: np.ndarray
    names: tuple[str, ...]
    header: bool = True  # whether the file has the names
    notes: tuple[str, ...] = ()  # what a user may not have meant

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


@dataclass(frozen=True)
class Text:
    """A file of text as rows of cells."""

    path: Path
    delimiter: str
    lines: list[str]
    skipped: int  # lines of comments at the top

    def rows(self) -> Any:
        """The line of the file, counted from 1, in which a row ends, and its cells; blank lines are
        left out.
        """
        reader = csv.reader(self.lines[self.skipped :], delimiter=self.delimiter)
        for row in reader:
            if len(row) > 1 or (row and row[0].strip()):
                yield self.skipped + reader.line_num, [cell.strip() for cell in row]


def read_text(path: Path, delimiter: str, wanted: list[str] | None, header: bool | None) -> Frame:
    """A table of numbers with or without a header."""
    text = Text(path, delimiter, *text_lines(path, header))
    try:
        first = list(itertools.islice(text.rows(), 3))
    except csv.Error as error:
        raise ValueError(
            f"{path}: expected a table of numbers; it cannot be read ({error}). Check its quotes."
        ) from error
    if not first:
        raise ValueError(f"{path}: expected a table of numbers; the file is empty. Check it.")
    number, every = first[0]
    empty_last = len(every) > 1 and len(first) > 1 and all(row[-1] == "" for _, row in first)
    cells = every[:-1] if empty_last else every
    named = is_header(text, number, cells, first) if header is None else header
    names = (
        [name.removeprefix("#").strip() if i == 0 else name for i, name in enumerate(cells)]
        if named
        else None
    )
    chosen = positions(names or [f"column {i}" for i in range(len(cells))], wanted, named)
    body = [line for line in text.lines[number if named else text.skipped :] if line.strip()]
    values = parsed(text, body, len(every), chosen, empty_last)
    if values is None:
        raise fault(text, named, len(every), chosen, names, empty_last)
    found = Frame(values, tuple(names[j] if names else f"column {j}" for j in chosen), named)
    notes = doubts(found, wanted is not None)
    if text.skipped:
        notes.append(
            f"lines at the top that begin with # are left out ({text.skipped}). Say --header if "
            "the first has the names."
        )
    if empty_last:
        notes.append("every line ends with a delimiter; the empty last column is left out.")
    if not named and header is None and may_be_names(values):
        notes.append(
            f"the first line, {shown(cells)}, is read as an observation. Say --header if it holds "
            "the columns' names."
        )
    return replace(found, notes=tuple(f"{path.name}: {one}" for one in notes))


def text_lines(path: Path, header: bool | None) -> tuple[list[str], int]:
    """The lines of a file, and how many at its top are comments."""
    try:
        raw = path.read_bytes()
        text = (gzip.decompress(raw) if path.suffix.lower() == ".gz" else raw).decode("utf-8-sig")
    except (UnicodeDecodeError, EOFError, OSError, zlib.error) as error:
        raise ValueError(
            f"{path}: expected a table of numbers as UTF-8 text; it cannot be read ({error}). "
            "Convert it."
        ) from error
    lines = re.split(r"(?<=\n)|(?<=\r)(?!\n)", text)
    comments = (
        0
        if header
        else len(list(itertools.takewhile(lambda line: line.lstrip().startswith("#"), lines)))
    )
    return lines, comments


def is_header(
    text: Text, number: int, cells: list[str], first: list[tuple[int, list[str]]]
) -> bool:
    """Whether the first line has names: some text and no number. What may be either is refused."""
    if not any(NUMBER.fullmatch(cell) for cell in cells) and any(map(spells_number, cells)):
        raise ValueError(
            f"{text.path}: expected a first line of names or of numbers; {shown(cells)} has "
            f"numbers in a spelling that is not read. {SAY}"
        )
    numeric = [bool(NUMBER.fullmatch(cell)) or cell.lower() in INFINITE for cell in cells]
    words = [
        not is_one and cell.lower() not in MISSING
        for cell, is_one in zip(cells, numeric, strict=True)
    ]
    where = f"{text.path}: expected a first line of names or of numbers; {shown(cells)}"
    if any(words) and any(numeric):
        raise ValueError(f"{where} has words and numbers, and may be either. {SAY}")
    if any(words):
        return True
    if not all(numeric):
        raise ValueError(f"{where} has missing values and no words. {SAY}")
    quoted = (
        '"' in text.lines[number - 1] and len(first) > 1 and '"' not in text.lines[first[1][0] - 1]
    )
    distinct = len(set(cells)) == len(cells) > 1 and len(first) > 2
    if quoted or (distinct and any(alone(text, cells, one) for one in (written_whole, is_whole))):
        raise ValueError(f"{where} is unlike all others and may be names, as years are. {SAY}")
    return False


def spells_number(cell: str) -> bool:
    """Whether it is a number as people or other programs write it: in digits of other alphabets,
    with a unit of money or per cent, as 1_000, or as 0x10.
    """
    plain = unicodedata.normalize("NFKC", cell).replace("\u2212", "-").strip("%$€£ ")
    if NUMBER.fullmatch(cell) or not any(map(str.isdigit, plain)):
        return False
    for read in (float, lambda given: int(given, 0)):
        try:
            read(plain)
        except ValueError:
            continue
        return True
    return False


def alone(text: Text, cells: list[str], kind: Callable[[str], bool]) -> bool:
    """Whether the first line is of this kind in all its cells, and no other line is."""
    return all(map(kind, cells)) and not any(
        all(map(kind, row)) for _, row in itertools.islice(text.rows(), 1, None)
    )


def written_whole(cell: str) -> bool:
    return INTEGER.fullmatch(cell) is not None


def is_whole(cell: str) -> bool:
    """Whether it is an integer in any spelling, such as 2019.0."""
    return NUMBER.fullmatch(cell) is not None and float(cell).is_integer()


def may_be_names(values: np.ndarray) -> bool:
    """Whether the first row of numbers looks like names of columns beside the others: it counts up
    in equal steps, lies outside of their range in every column, or is the only integer in one.
    """
    first, others = values[0], values[1:]
    if len(others) < 2:
        return False
    if len(first) == 1:
        return bool(first == np.rint(first)) and not (others == np.rint(others)).any()
    steps = np.diff(first)
    counting = steps[0] == 1 if len(steps) == 1 else steps[0] > 0
    outside = (first > others.max(0)) | (first < others.min(0))
    return bool((counting and np.allclose(steps, steps[0], rtol=1e-9)) or outside.all())


def positions(names: list[str], wanted: list[str] | None, named: bool = True) -> list[int]:
    """Where the wanted columns stand; all of them if none is named."""
    if wanted is not None and not named:
        raise ValueError(
            "--columns: expected a table with the columns' names; it has none. Say --header if its "
            "first line has them."
        )
    for name in wanted or ():
        if name not in names:
            raise ValueError(
                f"--columns: expected names among {short(names)}; got {name!r}. Check the spelling."
            )
    for name in dict.fromkeys(wanted or names):
        if names.count(name) > 1 and name:
            raise ValueError(
                f"x: expected columns with different names; {name!r} occurs twice. Rename one, or "
                "choose --columns."
            )
    if wanted is None and any(name == "" or name.startswith("Unnamed: ") for name in names):
        nth = next(i for i, name in enumerate(names) if name == "" or name.startswith("Unnamed: "))
        raise ValueError(
            f"x: expected a name for every column; column {nth + 1} has none, as the index that "
            "pandas and R write. Choose the others with --columns, or name it."
        )
    return list(range(len(names))) if wanted is None else [names.index(name) for name in wanted]


def parsed(
    text: Text, body: list[str], width: int, chosen: list[int], empty_last: bool
) -> np.ndarray | None:
    """The chosen columns as numbers; None where a cell is none, or a row has too many cells or too
    few.
    """
    import polars

    if not body:
        return np.empty((0, len(chosen)))
    schema = {f"{i}": polars.String for i in range(width)}
    content = re.sub(r"\r\n?", "\n", "".join(body)).encode()
    try:
        table = polars.read_csv(
            io.BytesIO(content),
            has_header=False,
            schema=schema,
            separator=text.delimiter,
            glob=False,
        )
    except polars.exceptions.PolarsError:
        return None
    cells = [table[str(j)].str.strip_chars() for j in chosen]
    last = table[str(width - 1)].null_count()
    if last and (
        last < len(table) if empty_last else any(len(cells) != width for _, cells in text.rows())
    ):
        return None
    if any(
        one.null_count() or not one.str.contains(f"^(?:{NUMBER.pattern})$").all() for one in cells
    ):
        return None
    values = np.stack([one.cast(polars.Float64).to_numpy() for one in cells], axis=1)
    return values if np.isfinite(values).all() else None


def fault(
    text: Text,
    named: bool,
    width: int,
    chosen: list[int],
    names: list[str] | None,
    empty_last: bool,
) -> ValueError:
    """What is wrong with the first row that cannot be used."""
    for number, cells in itertools.islice(text.rows(), int(named), None):
        if len(cells) != width:
            return ValueError(
                f"{text.path}: expected {width} cells in every row; line {number} has "
                f"{len(cells)}. Check its commas and quotes."
            )
        if empty_last and cells[-1]:
            return ValueError(
                f"{text.path}: expected an empty last cell, as above; got {short(cells[-1])} in "
                f"line {number}. Fix it."
            )
        for j in chosen:
            cell = cells[j]
            if NUMBER.fullmatch(cell) and np.isfinite(float(cell)):
                continue
            where = f"in line {number}, column {repr(names[j]) if names else j + 1}"
            if cell.lower() in MISSING:
                return ValueError(
                    f"{text.path}: expected no missing values; got {short(cell)} {where}. Remove "
                    "or impute such rows, or choose other columns with --columns."
                )
            return ValueError(
                f"{text.path}: expected finite numbers; got {short(cell)} {where}. {advice(cell)}"
            )
    return ValueError(
        f"{text.path}: expected a table of numbers; its rows cannot be told apart. Check its "
        "quotes."
    )


def advice(cell: str) -> str:
    if ";" in cell or "\t" in cell:
        return (
            "Separate cells by commas in .csv files and by tabs in .tsv files, and write decimals "
            "with points."
        )
    if re.fullmatch(r"[+-]?\d+,\d+", cell):
        return "Write decimals with points."
    return "Fix it, or choose numeric columns with --columns."


def doubts(frame: Frame, asked: bool) -> list[str]:
    """Columns that a user may not have meant, unless they were asked for by name."""
    n, found = len(frame.values), []
    for j, name in enumerate(frame.names):
        column = frame.values[:, j]
        label = repr(name) if frame.header else f"{j + 1}"
        if (
            not asked
            and n >= 4
            and len(frame.names) > 1
            and column[0] in (0, 1)
            and (np.diff(column) == 1).all()
        ):
            found.append(
                f"column {label} counts the rows. If it is an index, leave it out: choose the "
                "others with --columns."
            )
        if n and np.abs(column).max() > EXACT and (column == np.rint(column)).all():
            found.append(
                f"column {label} has integers beyond 2^53, which are rounded. If they are "
                "identifiers, leave it out."
            )
    return found


def read_parquet(path: Path, wanted: list[str] | None) -> Frame:
    import polars

    try:
        table = polars.read_parquet(path)
    # polars has no common class for damaged files, and panics at some of them, such as that of
    # https://github.com/pola-rs/polars/issues/18085; a panic is no Exception
    except (Exception, polars.exceptions.PanicException) as error:
        why = str(error).splitlines()[0] if str(error) else "damaged"
        raise ValueError(f"{path}: expected a Parquet table; it cannot be read ({why}).") from error
    table = table[:, positions(table.columns, wanted)]
    for name, kind in table.schema.items():
        if not kind.is_numeric() and kind != polars.Boolean:
            raise ValueError(
                f"{path}: expected numeric columns; {name!r} is {kind}. Choose others with "
                "--columns."
            )
        if table[name].null_count():
            raise ValueError(
                f"{path}: expected no missing values; column {name!r} has "
                f"{table[name].null_count()}. Remove them."
            )
    found = Frame(table.to_numpy().astype(np.float64), tuple(table.columns))
    return replace(
        found, notes=tuple(f"{path.name}: {one}" for one in doubts(found, wanted is not None))
    )


def shown(cells: list[str]) -> str:
    return short(",".join(cells))


def short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
