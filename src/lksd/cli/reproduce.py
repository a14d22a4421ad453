"""The command ``lksd reproduce``: the paper's experiments, and ours beside them."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from .._jax import cores
from .._text import visible
from .._validation import check_choice, check_seed
from ..engines import opened
from ..report.page import check_path
from .main import say
from .options import option

WORDS = ("list", "all", "show", "figure", "report", "export")
STORE, REPORT = Path("reproduction.sqlite"), Path("reproduction.html")
Words = Annotated[
    list[str],
    typer.Argument(
        help="Names of experiments to run, or all; or list, show NAME, figure NAME, report, "
        "export.",
        metavar="WHAT...",
    ),
]
Trials = Annotated[
    int | None,
    option(
        "Trials of each experiment; default: 300 for tables, 100 for figures, 50 for heat maps."
    ),
]
Sizes = Annotated[str | None, option("Sample sizes: 100,200.")]
Methods = Annotated[str | None, option("Methods: lksd-imq,ours.")]
Cases = Annotated[str | None, option("Settings that the experiment varies: 0.5,1.5.")]
StoreFile = Annotated[Path, option("The file of the study; what it has is not run again.")]
Processes = Annotated[
    int | None,
    option("Trials at a time; default: one for each processor. The digits do not depend on it."),
]
Seed = Annotated[int, option("Another seed gives other trials.")]
Snapshot = Annotated[
    Path | None,
    option("A snapshot of arXiv with one JSON object a line, for the experiments on it."),
]
EngineName = Annotated[
    str | None,
    option(
        "Where trials run: dask (a worker for each processor), or a cluster: tcp://host:8786.",
        "--engine",
    ),
]
Output = Annotated[Path | None, option("The page of report, or the folder for figure and export.")]


def reproduce(
    words: Words,
    trials: Trials = None,
    n: Sizes = None,
    methods: Methods = None,
    cases: Cases = None,
    store: StoreFile = STORE,
    processes: Processes = None,
    seed: Seed = 0,
    data: Snapshot = None,
    engine: EngineName = None,
    output: Output = None,
) -> None:
    """Run the paper's experiments, and show ours beside the published numbers.

    Every trial is stored; a command that was stopped goes on where it ended.

    [bold]Examples[/bold]

    lksd reproduce list

    lksd reproduce table1 --trials 20 --n 100

    lksd reproduce show table1

    lksd reproduce report --output reproduction.html
    """
    from ..reproduce.problems import EXPERIMENTS, experiments_named

    verb, rest = (words[0], words[1:]) if words[0] in WORDS else ("run", words)
    if verb in ("list", "all", "report", "export") and rest:
        raise ValueError(
            f"{verb}: expected no name after it; got {' '.join(rest)!r}. Leave it out."
        )
    chosen = (
        [one for name in rest for one in experiments_named(name)] if rest else list(EXPERIMENTS)
    )
    if verb == "list":
        for one in EXPERIMENTS:
            typer.echo(f"{one.name:<20} {one.title} [{', '.join(one.aliases)}]")
    elif verb in ("run", "all"):
        if verb == "all" and data is None:
            chosen = [one for one in chosen if one.prepare is None]
            say("The experiments on arXiv are left out, since they need --data.")
        wanted: dict[str, Any] = {
            "trials": at_least_one("--trials", trials),
            "sizes": numbers(n),
            "methods": names(methods),
            "cases": names(cases),
        }
        if engine is not None and processes is not None:
            raise ValueError(
                "--processes: expected without --engine, whose workers run the trials; got both. "
                "Leave one out."
            )
        wanted |= {
            "processes": at_least_one("--processes", processes),
            "seed": check_seed(seed),
            "data": data,
        }
        with opened(engine) as place:
            run(chosen, store, wanted | {"engine": None if engine is None else place})
    else:
        show(verb, rest, chosen, store, output)


def run(chosen: list[Any], path: Path, wanted: dict[str, Any]) -> None:
    """Run each, and print it beside the published numbers."""
    from ..reproduce.runner import run_experiment
    from ..reproduce.show import shown
    from ..reproduce.store import Store

    for experiment in chosen:
        for option_name, given, known in (
            ("--methods", wanted["methods"], experiment.all_methods),
            ("--cases", wanted["cases"], experiment.cases),
        ):
            for name in given:
                check_choice(option_name, name, known)
    store = Store(path)
    wanted["processes"] = wanted["processes"] or len(cores())
    for experiment in chosen:
        if sys.stderr.isatty():
            say(f"{experiment.name}: {experiment.title}")
        began = time.perf_counter()
        done = run_experiment(experiment, store, **wanted)
        typer.echo(shown(experiment, store))
        typer.echo(
            f"{done} trials run in {time.perf_counter() - began:.0f} s; kept in "
            f"{visible(str(path))}.\n"
        )


def show(verb: str, rest: list[str], chosen: list[Any], path: Path, output: Path | None) -> None:
    from ..reproduce.figures import save_figure
    from ..reproduce.folder import write_folder, write_study
    from ..reproduce.show import cells, shown
    from ..reproduce.store import Store

    if verb in ("show", "figure") and not rest:
        raise ValueError(
            f"{verb}: expected the name of an experiment after it; got none. See lksd reproduce "
            "list."
        )
    store = Store(path, create=False)
    if verb == "report":
        page = check_path(output or REPORT)
        write_study(chosen, store, page)
        typer.echo(f"Report: {visible(str(page))}")
        return
    folder = output or Path()
    if verb != "show" and not folder.is_dir():
        raise ValueError(
            f"--output: expected a folder that exists; {str(folder)!r} does not. Create it first."
        )
    if verb == "export":
        made = write_folder(chosen, store, folder)
        typer.echo(f"Study: {visible(str(made[0]))} and {len(made) - 1} files beside it")
        return
    for experiment in chosen:
        text = shown(experiment, store)
        if verb == "show":
            typer.echo(f"{text}\n")
            continue
        for picture in save_figure(experiment, cells(experiment, store), folder):
            typer.echo(f"Figure: {visible(str(picture))}")


def names(text: str | None) -> tuple[str, ...]:
    return (
        tuple(dict.fromkeys(part.strip() for part in text.split(","))) if text is not None else ()
    )


def numbers(text: str | None) -> tuple[int, ...]:
    found = names(text)
    if not all(part.isdecimal() and int(part) >= 4 for part in found):
        raise ValueError(
            f"--n: expected sample sizes of at least 4, such as 100,200; got {text!r}. Give whole "
            "numbers."
        )
    return tuple(sorted({int(part) for part in found}))


def at_least_one(name: str, value: int | None) -> int | None:
    if value is not None and value < 1:
        raise ValueError(f"{name}: expected at least 1; got {value}. Give a positive number.")
    return value
