"""Posterior draws from files, one or one a chain for each observation."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .._storage import NOT_ARRAYS, read_arrays
from ._packages import needed

ONE = "z"  # the name of draws that a file does not name
# columns that say which draw of which chain it is
NUMBERED = ((".chain", ".iteration"), ("chain__", "iter__"), ("chain", "draw"))
DIGITS = 18  # of an index, more than any array has; the first of them are enough to refuse it
SHOWN = 6  # columns in a message


def read_draws(files: Sequence[Any]) -> dict[str, np.ndarray] | np.ndarray:
    """Draws of n observations as (chains, draws, n, ...); without names where files have none."""
    every = [read_chains([one] if isinstance(one, (str, Path)) else list(one)) for one in files]
    for number, found in enumerate(every):
        shapes, wanted = (
            {name: array.shape for name, array in one.items()} for one in (found, every[0])
        )
        if shapes != wanted:
            raise ValueError(
                "draws: expected the same variables and shapes in every file; observation "
                f"{number} has {shapes}, the first {wanted}. Take the same number of draws for all."
            )
    stacked = {name: np.stack([found[name] for found in every], 2) for name in every[0]}
    return (
        stacked[ONE]
        if list(stacked) == [ONE] and Path(first_of(files)).suffix == ".npy"
        else stacked
    )


def first_of(nested):
    return first_of(nested[0]) if isinstance(nested, (list, tuple)) and nested else nested


def read_chains(files: list[Any]) -> dict[str, np.ndarray]:
    """One observation: (chains, draws, ...). Several files are a chain each; in one, arrays are
    (draws, ...).
    """
    parts = [read_one(Path(one)) for one in files]
    if any(set(part) != set(parts[0]) for part in parts[1:]):
        raise ValueError(
            f"draws: expected the same variables in every chain; {files[0]} and {files[-1]} "
            "differ. Check the files."
        )
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def read_one(path: Path) -> dict[str, np.ndarray]:
    """The variables of a file as (chains, draws, ...)."""
    if not path.is_file():
        raise FileNotFoundError(f"draws: there is no file {str(path)!r}. Check the path.")
    if path.suffix in (".npy", ".npz"):
        return read_numpy(path)
    if path.suffix == ".csv":
        return read_csv(path)
    if path.suffix == ".nc":
        arviz = needed("from_draws", "arviz", "arviz")
        return as_arrays(arviz.from_netcdf(str(path)).posterior)
    raise ValueError(
        f"draws: expected .npy, .npz, .csv or .nc files; got {str(path)!r}. Save the draws in one "
        "of these forms."
    )


def read_numpy(path: Path) -> dict[str, np.ndarray]:
    """One array, or an archive of them, of shape (draws, ...)."""
    try:
        if path.suffix == ".npz":
            return {name: array[None] for name, array in read_arrays(path).items()}
        with path.open("rb") as file:
            return {ONE: np.lib.format.read_array(file, allow_pickle=False)[None]}
    except NOT_ARRAYS as error:
        raise ValueError(
            f"draws: expected NumPy arrays in {str(path)!r}; it holds none ({error}). Check the "
            "file."
        ) from error


def as_arrays(dataset) -> dict[str, np.ndarray]:
    """The variables of an xarray Dataset, chains and draws first."""
    missing = {"chain", "draw"} - set(dataset.dims)
    if missing:
        raise ValueError(
            f"draws: expected the dimensions chain and draw; {', '.join(sorted(missing))} is "
            "missing. Give a posterior."
        )
    return {
        str(name): one.transpose("chain", "draw", ...).values
        for name, one in dataset.data_vars.items()
    }


def read_csv(path: Path) -> dict[str, np.ndarray]:
    """The variables of a table with a draw in each row, as CmdStan, cmdstanpy, ArviZ or R's
    posterior write it.
    """
    header, table = read_table(path)
    numbered = next((pair for pair in NUMBERED if set(pair) <= set(header)), ())
    chains = chain_rows(path, table[:, [header.index(name) for name in numbered]])
    found: dict[str, dict[tuple[int, ...], int]] = {}
    for number, title in enumerate(header):
        if (
            title in numbered
            or title.endswith("__")
            or title.startswith(".")
            or (not title and not number)
        ):
            continue  # what the program says of its draws, and row names
        name, where = parts_of(title)
        if where in found.setdefault(name, {}):
            raise ValueError(
                f"draws: expected every part once in {str(path)!r}; {title!r} comes twice. Check "
                "the header."
            )
        found[name][where] = number
    bases = {base_of(path, name, places, header) for name, places in found.items()} - {None}
    if len(bases) > 1:
        raise ValueError(
            f"draws: expected parts numbered from 0 or from 1 in {str(path)!r}; some variables "
            "begin with 0, others with 1, and may lack their first. Write all parts."
        )
    return {name: shaped(places, table)[chains] for name, places in found.items()}


def read_table(path: Path) -> tuple[list[str], np.ndarray]:
    """The header, and the numbers below it; lines that begin with # are comments."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            header, *rows = csv.reader(
                line for line in file if line.strip() and not line.startswith("#")
            )
        return [title.strip() for title in header], np.array(rows, dtype=np.float64).reshape(
            len(rows), len(header)
        )
    except (ValueError, csv.Error) as error:
        raise ValueError(
            f"draws: expected numbers under a header in {str(path)!r}; got something else. Check "
            "the file."
        ) from error


def parts_of(title: str) -> tuple[str, tuple[int, ...]]:
    """z.1.2, z[1,2] or ArviZ's ('z[0,1]', 0, 1) as the variable and the indices of its part; any
    other title is a name.
    """
    if named := re.fullmatch(r"\(['\"](.+?)['\"]((?:, -?[0-9]+)+)\)", title):
        title = named[1] if "[" in named[1] else f"{named[1]}[{named[2][2:]}]"
    if split := re.fullmatch(
        r"(.+?)(?:((?:\.-?[0-9]+)+)\.?|((?:\[ *-?[0-9]+(?: *, *-?[0-9]+)* *\])+))", title
    ):
        return split[1], tuple(
            int(one[:DIGITS]) for one in re.findall("-?[0-9]+", split[2] or split[3])
        )
    return title, ()


def base_of(
    path: Path, name: str, places: dict[tuple[int, ...], int], header: list[str]
) -> int | None:
    """Whether parts are numbered from 0 or from 1, None where there are none; refuses those that
    are not a whole array.
    """
    if list(places) == [()]:
        return None
    if len({len(where) for where in places}) == 1:
        low, high = (tuple(map(extreme, zip(*places, strict=True))) for extreme in (min, max))
        whole = math.prod(last - min(low) + 1 for last in high)
        if min(low) in (0, 1) and len(places) == whole:
            return min(low)
    titles = [header[number] for number in places.values()]
    said = ", ".join(titles[:SHOWN]) + (
        f" and {len(titles) - SHOWN} more" if len(titles) > SHOWN else ""
    )
    raise ValueError(
        f"draws: expected all parts of {name!r} in {str(path)!r}, numbered from 0 or from 1 "
        f"without gaps; got {said}. Write all of them."
    )


def shaped(places: dict[tuple[int, ...], int], table: np.ndarray) -> np.ndarray:
    """The columns of a variable as (draws, ...)."""
    order = sorted(places)
    shape = [last - first + 1 for first, last in zip(order[0], order[-1], strict=True)]
    return table[:, [places[where] for where in order]].reshape(len(table), *shape)


def chain_rows(path: Path, numbers: np.ndarray) -> np.ndarray:
    """The rows (chains, draws) of each chain, from the chain and draw that each belongs to; all of
    one where nothing says that.
    """
    if not numbers.shape[1]:
        return np.arange(len(numbers))[None]
    labels, owners, lengths = np.unique(numbers[:, 0], return_inverse=True, return_counts=True)
    repeated = len(np.unique(numbers, axis=0)) < len(numbers)
    if repeated or len(set(lengths.tolist())) > 1:
        raise ValueError(
            f"draws: expected one row for each draw in {str(path)!r}, and as many of every chain; "
            f"got {len(numbers)} rows of {len(labels)} "
            f"chains{', some for the same draw' if repeated else ''}. Write one column for each "
            "part of a variable."
        )
    return np.argsort(owners, kind="stable").reshape(len(labels), -1)
