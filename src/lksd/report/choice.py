"""The page of a choice among candidates."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from .._storage import write_whole
from .._text import Table, pvalue_cell
from ..results.details import measure_of
from . import plots
from .page import LARGEST_GRID, LONGEST_NAME, MEANINGS, check_path, draw
from .rendering import clip, pairs, render_page

if TYPE_CHECKING:
    from ..results.choice import Choice

LISTED = 8  # observations on each side that tell two candidates apart


def write_choice(result: Choice, path: str | Path, title: str) -> None:
    """Write the page; a file that is there already is replaced only once the new one is whole."""
    path = check_path(path)
    write_whole(path, choice_page(result, title))


def choice_page(result: Choice, title: str) -> str:
    """The page as text."""
    ranking, names = result.ranking, result.candidates[:LARGEST_GRID]
    places = [ranking.position(name) for name in names]
    rows = [
        (name, *("" if i == j else pvalue_cell(ranking.pvalues[i, j]) for j in places))
        for name, i in zip(names, places, strict=True)
    ]
    return render_page(
        "choice.html",
        result=result,
        title=clip(str(title), LONGEST_NAME),
        measure=measure_of(result.criterion),
        meaning=MEANINGS.get(result.criterion, "what its criterion says of it"),
        plot=draw(plots.plot_choice, result, "The candidates above the best", height=3.4),
        folds=fold_table(result),
        pairs=Table(("is worse than", *names), rows),
        left_out=len(result.candidates) - len(names),
        rival=rival_of(result),
        deciding=deciding(result),
        settings=pairs(("option", "value"), result.settings),
        versions=pairs(("package", "version"), result.versions),
    )


def fold_table(result: Choice) -> Table:
    """The mean loss of every fold above that of the best candidate there."""
    best = result.candidates.index(result.best)
    above = result.fold_losses - result.fold_losses[:, [best]]
    rows = [
        (name, *(f"{value:.3g}" for value in above[:, column]))
        for column, name in enumerate(result.candidates)
    ]
    several = result.repeats > 1
    heads = [
        f"fold {number % result.folds + 1}" + (f" of {number // result.folds + 1}" * several)
        for number in range(len(above))
    ]
    return Table(("", *heads), rows)


def rival_of(result: Choice) -> str | None:
    """The candidate that is told from the best: the simplest where that is another, else the next
    in rank.
    """
    others = [name for name in (result.simplest, *result.ranking.names) if name != result.best]
    return others[0] if others else None


def deciding(result: Choice) -> tuple[Table, Table] | None:
    """The observations that speak most for the best candidate, and most for its rival."""
    rival = rival_of(result)
    if rival is None or result.labels is None:
        return None
    one, other = (result.losses[:, result.candidates.index(name)] for name in (result.best, rival))
    order = np.argsort(one - other, kind="stable")
    header = ("observation", f"{measure_of(result.criterion)}, difference")

    def table(rows: np.ndarray) -> Table:
        assert result.labels is not None
        return Table(
            header, [(result.labels[row], f"{abs(other[row] - one[row]):.3g}") for row in rows]
        )

    return table(order[:LISTED]), table(order[::-1][:LISTED])
