"""Finished parts of a long run in one SQLite file, from which a run that was killed goes on with
the same digits.
"""

from __future__ import annotations

import io
import itertools
import json
import sqlite3
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import numpy as np

from .._storage import checksum
from .chains import Point
from .result import row_digests

PATIENCE = 60.0  # seconds to wait for another process that writes
MARK = 0x6C6B7364  # "lksd", in the header of the file
MAGIC = b"SQLite format 3\0"
SCHEMA = (
    "CREATE TABLE stages (stage TEXT PRIMARY KEY, identity TEXT NOT NULL)",
    "CREATE TABLE parts (stage TEXT NOT NULL REFERENCES stages, content BLOB NOT NULL)",
    f"PRAGMA application_id = {MARK}",
)
DIGEST = 32  # bytes
FEW = 16  # observations, enough to write the program down


class Checkpoint:
    """A file of finished parts. Several estimates may share one, each under a label of its own.

    A part holds rows by their position in the data, so that a run may go on with another batch size
    or engine. Every call opens the file anew and writes in one transaction: a kill at any moment
    leaves it whole, and two processes may share it.
    """

    def __init__(self, path: str | Path, label: str = ""):
        self.path, self.label = Path(path), label
        self._numbers = itertools.count()
        self._check()

    def with_label(self, label: str) -> Checkpoint:
        """The part of the file for what is called so, inside of that for what this is called."""
        return Checkpoint(self.path, self.label + label)

    def stage(self, wanted: dict[str, str]) -> Stage:
        """The next stage of an estimate; refused where the file has one of another ``identity``."""
        name = f"{self.label}/{next(self._numbers)}"
        with self.connection() as connection:
            connection.execute("BEGIN IMMEDIATE")
            if not connection.execute("PRAGMA application_id").fetchone()[0]:
                for statement in SCHEMA:
                    connection.execute(statement)
            found = connection.execute(
                "SELECT identity FROM stages WHERE stage = ?", (name,)
            ).fetchone()
            if found is None:
                connection.execute("INSERT INTO stages VALUES (?, ?)", (name, json.dumps(wanted)))
        if found is not None and (other := difference(self.identity_in(found[0]), wanted)):
            whose = f" for {self.label}" if self.label else ""
            raise ValueError(
                "checkpoint: expected one of the same data, model and settings; "
                f"{str(self.path)!r} is of {other}{whose}. It was left as it is. Name another "
                "file, or remove it to begin again."
            )
        return Stage(
            self, name, checksum(name.encode(), json.dumps(wanted, sort_keys=True).encode())
        )

    def identity_in(self, text: str) -> dict[str, str]:
        try:
            found = json.loads(text)
        except (TypeError, ValueError, RecursionError) as error:
            raise self.damage("a stage is not described") from error
        if not isinstance(found, dict):
            raise self.damage("a stage is not described")
        return found

    @contextmanager
    def connection(self) -> Iterator[sqlite3.Connection]:
        """A transaction, which is undone where something fails."""
        try:
            with (
                closing(
                    sqlite3.connect(self.path, timeout=PATIENCE, isolation_level=None)
                ) as connection,
                connection,
            ):
                yield connection
        except sqlite3.Error as error:
            if not isinstance(error, sqlite3.OperationalError) or str(error).startswith(
                ("no such", "Could not decode")
            ):
                raise self.damage(error) from error
            raise OSError(
                f"checkpoint: {str(self.path)!r} cannot be read or written ({error}). Check the "
                "disk."
            ) from error

    def damage(self, reason: object) -> ValueError:
        return ValueError(
            f"checkpoint: {str(self.path)!r} is damaged ({reason}). It was left as it is. Name "
            "another file, or remove it to begin again."
        )

    def _check(self) -> None:
        """Before any work is done: a file of ours, or none yet."""
        if not self.path.parent.is_dir():
            raise ValueError(
                f"checkpoint: expected a folder that exists; {str(self.path.parent)!r} does not. "
                "Create it first."
            )
        if not self.path.exists():
            return
        refused = ValueError(
            f"checkpoint: expected a file that an earlier run made, or none; {str(self.path)!r} is "
            "something else. Name another."
        )
        if not self.path.is_file():
            raise refused
        with self.path.open("rb") as file:
            beginning = file.read(len(MAGIC))
        if beginning and beginning != MAGIC:
            raise refused
        with self.connection() as connection:
            mark = connection.execute("PRAGMA application_id").fetchone()[0]
            tables = connection.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()[0]
        if mark != MARK and (mark or tables):
            raise refused


class Stage:
    """One run over all observations."""

    def __init__(self, checkpoint: Checkpoint, name: str, mark: str):
        self.checkpoint, self.name, self.mark = checkpoint, name, mark

    def finished_parts(self) -> Generator[tuple[np.ndarray, list[np.ndarray]]]:
        """What is there: positions of observations, and the leaves of what is kept of them."""
        with self.checkpoint.connection() as connection:
            for (content,) in connection.execute(
                "SELECT content FROM parts WHERE stage = ? ORDER BY rowid", (self.name,)
            ):
                written = content[DIGEST:] if isinstance(content, bytes) else b""
                if not written or content[:DIGEST] != self.digest(written):
                    raise self.checkpoint.damage("a part is not what was written")
                with np.load(io.BytesIO(written), allow_pickle=False) as arrays:
                    rows, *leaves = (arrays[name] for name in arrays.files)
                yield rows, leaves

    def write(self, rows: np.ndarray, leaves: list[np.ndarray]) -> None:
        content = io.BytesIO()
        np.savez(content, rows, *leaves)
        written = content.getvalue()
        with self.checkpoint.connection() as connection:
            connection.execute(
                "INSERT INTO parts VALUES (?, ?)", (self.name, self.digest(written) + written)
            )

    def digest(self, written: bytes) -> bytes:
        """Of a part of this stage, the first ``DIGEST`` bytes of its content."""
        return checksum(self.mark.encode(), written).encode()


def as_checkpoint(checkpoint: Any) -> Checkpoint | None:
    if checkpoint is None or isinstance(checkpoint, Checkpoint):
        return checkpoint
    if not isinstance(checkpoint, (str, Path)):
        raise TypeError(
            f"checkpoint: expected the path of a file; got {checkpoint!r}. Give a str or a Path."
        )
    return Checkpoint(checkpoint)


def identity(
    function: Callable, fixed: tuple, points: Point, keys, plan: Any, backend: str
) -> dict[str, str]:
    """What decides the digits of ``function(*fixed, points, keys, plan)``; the first of ``fixed``
    is the model.

    The program itself, as it goes to the compiler, stands for the code of the model and of the
    sampler.
    """
    model, *others = fixed
    few = jax.tree.map(lambda leaf: leaf[np.zeros(FEW, int)], (points, keys))
    arrays, static = eqx.partition((*fixed, *few, plan), eqx.is_array)
    program = jax.jit(lambda given: function(*eqx.combine(given, static))).lower(arrays).as_text()
    settings = (points.values, points.site, points.starts, jax.random.key_data(keys), others)
    return {
        "data": digest(row_digests(np.asarray(points.x))),
        "model": digest(model, type(model).__qualname__),
        "settings": digest(settings, repr(plan), *(type(one).__qualname__ for one in others)),
        "versions": f"lksd {version('lksd')} and jax {version('jax')} on {backend}",
        "program": digest((), program),
    }


def difference(found: dict[str, str], wanted: dict[str, str]) -> str | None:
    """In words. Settings follow from data and model in part, and the program from all of them."""
    other = {name for name in wanted if found.get(name) != wanted[name]}
    if "versions" in other:
        return f"{found.get('versions')}, and this is {wanted['versions']}"
    if {"data", "model"} <= other:
        return "other data and another model"
    sentences = {
        "data": "other data",
        "model": "another model",
        "settings": "other settings (seed, index, operator, sampler or lengths)",
        "program": "a model or sampler whose code or options differ",
    }
    return next((text for name, text in sentences.items() if name in other), None)


def digest(tree: Any, *texts: str) -> str:
    """Of the arrays and numbers in a tree, and of texts."""
    found = sha256("\0".join(texts).encode())
    for leaf in jax.tree.leaves(tree):
        if isinstance(leaf, (np.ndarray, jax.Array, bool, int, float, str)):
            array = np.ascontiguousarray(leaf)
            found.update(f"{array.dtype.str}{array.shape}".encode())
            found.update(array.tobytes())
    return found.hexdigest()
