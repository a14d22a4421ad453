"""A study to keep: one HTML page; or a folder with a page of its tables and figures, and every
trial in CSV files.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from .._storage import write_whole
from .._text import Table
from ..report.page import inline_svg
from ..report.rendering import render_page
from .experiment import Experiment
from .figures import draw, is_grid, save_figure
from .show import Cell, cells, method_name, side_by_side, summary
from .store import Store

PAGE = "index.md"
SEEDS = "seeds.csv"
MOST_CASES = 20  # of an experiment with a table
CURVES = "Rates with intervals; open circles are published. Dashed: the level."
HEAT = (
    "Above the diagonal Q is the better model, so that a test should reject; on it and below it "
    "should not."
)
# by case, n, trial and seed; and by method
Trials = dict[tuple[str, int, int, int], dict[str, tuple[float | None, float]]]


def with_trials(
    verb: str, experiments: Iterable[Experiment], store: Store
) -> list[tuple[Experiment, list[Cell]]]:
    """Every experiment of which the store has trials, with its cells."""
    kept = [
        (experiment, found) for experiment in experiments if (found := cells(experiment, store))
    ]
    if not kept:
        raise ValueError(
            f"{verb}: the store {str(store.path)!r} has no trials yet. Run an experiment first."
        )
    return kept


def write_study(experiments: Iterable[Experiment], store: Store, path: Path) -> None:
    """One HTML page of every experiment of which the store has trials."""
    parts: list[dict[str, Any]] = [
        {
            "name": experiment.name,
            "title": experiment.title,
            "aliases": ", ".join(experiment.aliases),
            "summary": summary(found),
            "picture": inline_svg(partial(draw, experiment, found), experiment.title),
            "caption": HEAT if is_grid(experiment) else CURVES,
            "table": side_by_side(experiment, found),
        }
        for experiment, found in with_trials("report", experiments, store)
    ]
    versions = Table(("package", "version"), list(dict.fromkeys(store.versions())), left=(0, 1))
    write_whole(
        path,
        render_page("reproduction.html", parts=parts, store=store.path.name, versions=versions),
    )


def write_folder(experiments: Iterable[Experiment], store: Store, folder: Path) -> list[Path]:
    """NAME.csv and NAME.svg of every experiment that the store has trials of, the seeds of all
    trials, and one page: paths.
    """
    kept = with_trials("export", experiments, store)
    paths = [folder / PAGE, folder / SEEDS]
    seeds: list[tuple[str, int, int]] = []
    for experiment, found in kept:
        trials = store.trials(experiment)
        paths += [
            write_trials(experiment, trials, folder),
            *save_figure(experiment, found, folder, kinds=("svg",)),
        ]
        seeds += sorted({(experiment.name, trial, seed) for _, _, trial, seed in trials})
    write_table(paths[1], ["experiment", "trial", "seed"], seeds)
    write_whole(paths[0], "\n".join(page(kept, store)) + "\n")
    return paths


def write_trials(experiment: Experiment, found: Trials, folder: Path) -> Path:
    """A row for each case, sample size and trial; for each method its statistic and p-value, for
    grids of cases the p-value alone.

    Decisions at all levels follow from the p-values. The seed stands there only where trials of
    several seeds have the same number.
    """
    methods = [
        name for name in experiment.all_methods if any(name in row for row in found.values())
    ]
    several = len({key[2:] for key in found}) > len({key[2] for key in found})
    columns = ("case", "n", "trial", "seed")[: 4 if several else 3]
    kinds = ("p",) if has_many_cases(experiment) else ("statistic", "p")

    def values(row: dict[str, tuple[float | None, float]]) -> Iterator[str]:
        for name in methods:
            statistic, pvalue = row.get(name, (None, None))
            if "statistic" in kinds:
                yield "" if statistic is None else f"{statistic:.4g}"
            yield "" if pvalue is None else rounded(pvalue, experiment.alphas)

    path, in_order = (
        folder / f"{experiment.name}.csv",
        sorted(found, key=lambda key: (experiment.cases.index(key[0]), *key[1:])),
    )
    header = [*columns, *(f"{name} {kind}" for name in methods for kind in kinds)]
    write_table(path, header, ((*key[: len(columns)], *values(found[key])) for key in in_order))
    return path


def rounded(pvalue: float, alphas: tuple[float, ...]) -> str:
    """Four digits, or all where these would be on the other side of a level."""
    short = f"{pvalue:.4g}"
    return (
        short
        if all((float(short) <= alpha) == (pvalue <= alpha) for alpha in alphas)
        else repr(pvalue)
    )


def write_table(path: Path, header: list[str], rows: Iterable[tuple]) -> None:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    write_whole(path, text.getvalue())


def has_many_cases(experiment: Experiment) -> bool:
    """Whether it is a heat map or a grid of chains: shown as a picture alone, its trials by their
    p-values.
    """
    return len(experiment.cases) > MOST_CASES


def page(kept: list[tuple[Experiment, list[Cell]]], store: Store) -> list[str]:
    """The page as lines of Markdown."""
    made: dict[str, list[str]] = {}
    for name, number in store.versions():
        made.setdefault(name, []).append(number)
    versions = ", ".join(
        f"{name} {' and '.join(dict.fromkeys(numbers))}" for name, numbers in made.items()
    )
    lines = [
        "# The paper, run again: results",
        "",
        "Written by `lksd reproduce export`. What the methods are, and how to run them: [The paper "
        "again](../reproduction.md).",
        "",
        f"Versions: {versions}.",
        "",
        "A cell holds our rate, the published one in brackets, and the mark of `lksd reproduce "
        "show`. For what the paper lacks the",
        "bracket holds the best that the paper has in the same cell. Each experiment's CSV has "
        "every trial, and",
        "[seeds.csv](seeds.csv) the seeds; heat maps and grids of chains have p-values alone.",
    ]
    for experiment, found in kept:
        lines += ["", *section(experiment, found)]
    return lines


def section(experiment: Experiment, found: list[Cell]) -> list[str]:
    name = experiment.name
    return [
        f"## {name}",
        "",
        f"{experiment.title}. {summary(found)} [Every trial]({name}.csv).",
        "",
        f"    {command(experiment, found)}",
        "",
        f"![{experiment.title}]({name}.svg)",
        "",
        *(() if has_many_cases(experiment) else wide_table(experiment, found)),
    ]


def command(experiment: Experiment, found: list[Cell]) -> str:
    """What gives the same trials again."""
    data = " --data FILE" if experiment.prepare is not None else ""
    return (
        f"lksd reproduce {experiment.name} --trials "
        f"{max(cell.tally.trials for cell in found)}{data}"
    )


def wide_table(experiment: Experiment, found: list[Cell]) -> list[str]:
    """A row for each case, level and method, a column for each sample size."""
    sizes = sorted({cell.n for cell in found})
    with_cases = experiment.cases != ("",)
    rows: dict[tuple[str, float, str], dict[int, str]] = {}
    for cell in found:
        published = "" if cell.published is None else f" ({cell.published:.3f})"
        text = f"{cell.rate:.3f}{published} {cell.mark}".rstrip()
        rows.setdefault((cell.case, cell.alpha, cell.method), {})[cell.n] = text
    header = [
        *([experiment.axis] if with_cases else []),
        "level",
        "method",
        *(f"n = {n}" for n in sizes),
    ]
    lines = [
        [
            *([case] if with_cases else []),
            f"{alpha:g}",
            method_name(method),
            *(texts.get(n, "") for n in sizes),
        ]
        for (case, alpha, method), texts in rows.items()
    ]
    return [f"| {' | '.join(line)} |" for line in (header, ["---"] * len(header), *lines)]
