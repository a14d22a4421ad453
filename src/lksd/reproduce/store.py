"""Trials in one SQLite file, which several processes may write to and which survives
being killed.
"""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from ..results.base import versions
from .experiment import Experiment, Outcome

PATIENCE = 60.0  # seconds to wait for another process that writes
SCHEMA = """
CREATE TABLE IF NOT EXISTS trials (
  problem TEXT NOT NULL, method TEXT NOT NULL, n INTEGER NOT NULL, alpha REAL NOT NULL,
  trial INTEGER NOT NULL, seed INTEGER NOT NULL, statistic REAL, pvalue REAL NOT NULL,
  reject INTEGER NOT NULL, seconds REAL NOT NULL, versions TEXT NOT NULL,
  PRIMARY KEY (problem, method, n, alpha, trial, seed)
) WITHOUT ROWID
"""


class Count(NamedTuple):
    """Rejections among the trials of a cell."""

    rejected: int
    trials: int


class Store:
    """The file of a study; every call opens it anew, so that it can be shared by threads and
    processes.
    """

    def __init__(self, path: str | Path, create: bool = True):
        self.path = Path(path)
        if not create and not self.path.is_file():
            raise ValueError(
                f"store: expected a file with trials; {str(self.path)!r} does not exist. Run the "
                "experiment first."
            )
        if not self.path.parent.is_dir():
            raise ValueError(
                f"store: expected a folder that exists; {str(self.path.parent)!r} does not. Create "
                "it first."
            )
        try:
            with closing(self._open()) as connection:
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute(SCHEMA)
        except sqlite3.DatabaseError as error:
            raise ValueError(
                f"store: expected a file of trials; {str(self.path)!r} is not ({error}). Name "
                "another."
            ) from error

    def _open(self) -> sqlite3.Connection:
        return sqlite3.connect(self.path, timeout=PATIENCE)

    def write(
        self, experiment: Experiment, trial: int, seed: int, outcomes: Iterable[Outcome]
    ) -> None:
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
            connection.executemany(
                "INSERT OR IGNORE INTO trials VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows
            )

    def done(
        self, experiment: Experiment, trial: int, seed: int
    ) -> set[tuple[str, str, int, float]]:
        """What is there of a trial, as (case, method, n, alpha)."""
        return set(
            self._select(
                "problem, method, n, alpha", experiment, "AND trial = ? AND seed = ?", trial, seed
            )
        )

    def counts(self, experiment: Experiment) -> dict[tuple[str, str, int, float], Count]:
        """Rejections and trials of every cell, by (case, method, n, alpha)."""
        columns = "problem, method, n, alpha, SUM(reject), COUNT(*)"
        found = self._select(columns, experiment, "GROUP BY problem, method, n, alpha")
        return {row[:4]: Count(*row[4:]) for row in found}

    def trials(
        self, experiment: Experiment
    ) -> dict[tuple[str, int, int, int], dict[str, tuple[float | None, float]]]:
        """Statistics and p-values of every trial by method, by (case, n, trial, seed)."""
        made: dict[tuple[str, int, int, int], dict[str, tuple[float | None, float]]] = {}
        for *key, method, statistic, pvalue in self._select(
            "problem, n, trial, seed, method, statistic, pvalue", experiment
        ):
            made.setdefault(tuple(key), {})[method] = (statistic, pvalue)
        return made

    def _select(self, columns: str, experiment: Experiment, rest: str = "", *values) -> list[tuple]:
        """Rows of an experiment; the first of the ``columns`` is the problem, in whose place its
        case is given.
        """
        cases = {experiment.problem(case): case for case in experiment.cases}
        query = (
            f"SELECT DISTINCT {columns} FROM trials WHERE (problem = ? OR problem GLOB ?) {rest}"
        )
        with closing(self._open()) as connection:
            found = connection.execute(
                query, (experiment.name, f"{experiment.name}[[]*", *values)
            ).fetchall()
        return [(cases[problem], *row) for problem, *row in found if problem in cases]

    def versions(self) -> list[tuple[str, str]]:
        """The packages that computed, each with its version."""
        with closing(self._open()) as connection:
            found = connection.execute(
                "SELECT DISTINCT versions FROM trials ORDER BY versions"
            ).fetchall()
        return [pair for (made,) in found for pair in json.loads(made).items()]

    def rows(self) -> list[tuple]:
        """Every row but for its seconds, in the order of the key: what a run gives again."""
        columns = "problem, method, n, alpha, trial, seed, statistic, pvalue, reject, versions"
        with closing(self._open()) as connection:
            return connection.execute(
                f"SELECT {columns} FROM trials ORDER BY problem, method, n, alpha, trial, seed"
            ).fetchall()
