"""Posterior draws from files, one or one a chain for each observation."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ._packages import needed

ONE = "z"  # the name of draws that a file does not name


def read_draws(files: Sequence[Any]) -> dict[str, np.ndarray] | np.ndarray:
    """Draws of n observations as (chains, draws, n, ...); without names where files have none."""
    every = [read_chains([one] if isinstance(one, (str, Path)) else list(one)) for one in files]
    for number, found in enumerate(every):
        shapes, wanted = ({name: array.shape for name, array in one.items()} for one in (found, every[0]))
        if shapes != wanted:
            raise ValueError(
                f"draws: expected the same variables and shapes in every file; observation {number} has {shapes}, the first "
                f"{wanted}. Take the same number of draws for all."
            )
    stacked = {name: np.stack([found[name] for found in every], 2) for name in every[0]}
    return stacked[ONE] if list(stacked) == [ONE] and Path(first_of(files)).suffix == ".npy" else stacked


def first_of(nested):
    return first_of(nested[0]) if isinstance(nested, (list, tuple)) and nested else nested


def read_chains(files: list[Any]) -> dict[str, np.ndarray]:
    """One observation: (chains, draws, ...). Several files are a chain each; in one, arrays are (draws, ...)."""
    parts = [read_one(Path(one)) for one in files]
    if any(set(part) != set(parts[0]) for part in parts[1:]):
        raise ValueError(f"draws: expected the same variables in every chain; {files[0]} and {files[-1]} differ. Check the files.")
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def read_one(path: Path) -> dict[str, np.ndarray]:
    """The variables of a file as (chains, draws, ...)."""
    if not path.is_file():
        raise FileNotFoundError(f"draws: there is no file {str(path)!r}. Check the path.")
    if path.suffix == ".npy":
        return {ONE: np.load(path, allow_pickle=False)[None]}
    if path.suffix == ".npz":
        with np.load(path, allow_pickle=False) as file:
            return {name: array[None] for name, array in file.items()}
    if path.suffix == ".csv":
        return read_csv(path)
    if path.suffix == ".nc":
        arviz = needed("from_draws", "arviz", "arviz")
        return as_arrays(arviz.from_netcdf(str(path)).posterior)
    raise ValueError(f"draws: expected .npy, .npz, .csv or .nc files; got {str(path)!r}. Save the draws in one of these forms.")


def as_arrays(dataset) -> dict[str, np.ndarray]:
    """The variables of an xarray Dataset, chains and draws first."""
    missing = {"chain", "draw"} - set(dataset.dims)
    if missing:
        raise ValueError(
            f"draws: expected the dimensions chain and draw; {', '.join(sorted(missing))} is missing. Give a posterior."
        )
    return {str(name): one.transpose("chain", "draw", ...).values for name, one in dataset.data_vars.items()}


def read_csv(path: Path) -> dict[str, np.ndarray]:
    """As CmdStan writes it: comments, a header, a draw in each row. z.1 or z[1] is a part of z; names ending in __ are its own."""
    with path.open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(line for line in file if line.strip() and not line.startswith("#"))
    try:
        table = np.array(rows, dtype=np.float64).reshape(len(rows), len(header))
    except ValueError as error:
        raise ValueError(f"draws: expected numbers under a header in {str(path)!r}; got other text. Check the file.") from error
    columns: dict[str, list[tuple[tuple[int, ...], int]]] = {}
    for number, name in enumerate(header):
        if name.endswith("__"):
            continue
        base, *numbers = re.split(r"[.\[\],]+", name.strip().rstrip("]"))
        columns.setdefault(base, []).append((tuple(int(one) for one in numbers), number))
    found = {}
    for name, parts in columns.items():
        shape = np.max([where for where, _ in parts], axis=0).astype(int).tolist() if parts[0][0] else []
        array = np.empty((*shape, len(rows)))
        for where, number in parts:
            array[tuple(one - 1 for one in where)] = table[:, number]
        found[name] = np.moveaxis(array, -1, 0)[None]
    return found
