"""Trials in one SQLite file, which several processes may write to and which survives being killed."""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from ..inference.records import versions
from .experiment import Experiment, Outcome

PATIENCE = 60.0  # seconds to wait for another process that writes
SCHEMA = """
CREATE TABLE IF NOT EXISTS trials (
  problem TEXT NOT NULL, method TEXT NOT NULL, n INTEGER NOT NULL, alpha REAL NOT NULL, trial INTEGER NOT NULL,
  seed INTEGER NOT NULL, statistic REAL, pvalue REAL NOT NULL, reject INTEGER NOT NULL, seconds REAL NOT NULL,
  versions TEXT NOT NULL,
  PRIMARY KEY (problem, method, n, alpha, trial, seed)
) WITHOUT ROWID
"""


class Count(NamedTuple):
    """Rejections among the trials of a cell."""

    rejected: int
    trials: int


class Store:
    """The file of a study; every call opens it anew, so that it can be shared by threads and processes."""

    def __init__(self, path: str | Path, create: bool = True):
        self.path = Path(path)
        if not create and not self.path.is_file():
            raise ValueError(f"store: expected a file with trials; {str(self.path)!r} does not exist. Run the experiment first.")
        if not self.path.parent.is_dir():
            raise ValueError(f"store: expected a folder that exists; {str(self.path.parent)!r} does not. Create it first.")
        try:
            with closing(self._open()) as connection:
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute(SCHEMA)
        except sqlite3.DatabaseError as error:
            raise ValueError(f"store: expected a file of trials; {str(self.path)!r} is not ({error}). Name another.") from error

    def _open(self) -> sqlite3.Connection:
        return sqlite3.connect(self.path, timeout=PATIENCE)

    def write(self, experiment: Experiment, trial: int, seed: int, outcomes: Iterable[Outcome]) -> None:
        """All rows of a trial in one transaction; those that are there already stay."""
        made = json.dumps(versions())
        rows = [
            (
                experiment.problem(one.case),
                one.method,
                one.n,
                one.alpha,
                trial,
                seed,
                one.statistic if math.isfinite(one.statistic) else None,
                one.pvalue,
                int(one.reject),
                round(one.seconds, 4),
                made,
            )
            for one in outcomes
        ]
        with closing(self._open()) as connection, connection:
            connection.executemany("INSERT OR IGNORE INTO trials VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)

    def done(self, experiment: Experiment, trial: int, seed: int) -> set[tuple[str, str, int, float]]:
        """What is there of a trial, as (case, method, n, alpha)."""
        cases = {experiment.problem(case): case for case in experiment.cases}
        with closing(self._open()) as connection:
            found = connection.execute(
                "SELECT problem, method, n, alpha FROM trials WHERE trial = ? AND seed = ? AND (problem = ? OR problem GLOB ?)",
                (trial, seed, experiment.name, f"{experiment.name}[[]*"),
            ).fetchall()
        return {(cases[problem], method, n, alpha) for problem, method, n, alpha in found if problem in cases}

    def counts(self, experiment: Experiment) -> dict[tuple[str, str, int, float], Count]:
        """Rejections and trials of every cell, by (case, method, n, alpha)."""
        cases = {experiment.problem(case): case for case in experiment.cases}
        with closing(self._open()) as connection:
            found = connection.execute(
                "SELECT problem, method, n, alpha, SUM(reject), COUNT(*) FROM trials "
                "WHERE problem = ? OR problem GLOB ? GROUP BY problem, method, n, alpha",
                (experiment.name, f"{experiment.name}[[]*"),
            ).fetchall()
        return {(cases[row[0]], *row[1:4]): Count(row[4], row[5]) for row in found if row[0] in cases}

    def trials(self, experiment: Experiment) -> dict[tuple[str, int, int, int], dict[str, tuple[float | None, float]]]:
        """Statistics and p-values of every trial by method, by (case, n, trial, seed)."""
        cases = {experiment.problem(case): case for case in experiment.cases}
        made: dict[tuple[str, int, int, int], dict[str, tuple[float | None, float]]] = {}
        with closing(self._open()) as connection:
            for problem, n, trial, seed, method, statistic, pvalue in connection.execute(
                "SELECT DISTINCT problem, n, trial, seed, method, statistic, pvalue FROM trials "
                "WHERE problem = ? OR problem GLOB ?",
                (experiment.name, f"{experiment.name}[[]*"),
            ):
                if problem in cases:
                    made.setdefault((cases[problem], n, trial, seed), {})[method] = (statistic, pvalue)
        return made

    def versions(self) -> list[str]:
        """The versions that computed, as JSON objects."""
        with closing(self._open()) as connection:
            return [row[0] for row in connection.execute("SELECT DISTINCT versions FROM trials ORDER BY versions")]

    def rows(self) -> list[tuple]:
        """Every row but for its seconds, in the order of the key: what a run gives again."""
        columns = "problem, method, n, alpha, trial, seed, statistic, pvalue, reject, versions"
        with closing(self._open()) as connection:
            return connection.execute(f"SELECT {columns} FROM trials ORDER BY problem, method, n, alpha, trial, seed").fetchall()
