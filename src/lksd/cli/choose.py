"""``lksd choose``: how many factors, components, states or topics?"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import polars
import typer

from .. import choose, save_model
from .._validation import check_choice
from ..criteria import Criterion
from ..fitting.procedures import FAMILIES
from ..report.page import check_path
from . import options as o
from .answer import show
from .data import read_data
from .fit import as_documents, check_out
from .main import say, sentence
from .models import named_or_own
from .tables import Frame
from .texts import read_corpus

Candidates = Annotated[
    str, o.option("Numbers to choose from: 1:10, or 5,10,20,50; the smallest first.")
]
Family = Annotated[str, o.option(f"What to fit: {', '.join(FAMILIES)}.")]
Folds = Annotated[int, o.option("Into how many parts the observations are split.", panel="Test")]
Repeats = Annotated[int, o.option("Random partitions to average.", panel="Test")]
Text = Annotated[
    str | None,
    o.option("The column, or field of JSON lines, that holds texts, for topics.", panel="Data"),
]
Title = Annotated[
    str | None,
    o.option("The column of their titles; title if there is one.", panel="Data"),
]
StopWords = Annotated[str, o.option("Words to leave out of texts: english, or none.", panel="Data")]
MinDocuments = Annotated[int, o.option("In how many texts a word must be to count.", panel="Data")]
SaveModel = Annotated[
    Path | None,
    o.option("Write the chosen model, fitted to all data, as .npz.", "--save", panel="Output"),
]


def choose_command(
    data: o.Source,
    family: Family,
    candidates: Candidates,
    report: o.Report = None,
    json: o.Json = False,
    save: SaveModel = None,
    text: Text = None,
    title: Title = None,
    stop_words: StopWords = "english",
    min_documents: MinDocuments = 5,
    array: o.Array = None,
    columns: o.Columns = None,
    field: o.Field = None,
    header: o.Header = None,
    counts: o.Counts = None,
    drop_empty: o.DropEmpty = False,
    folds: Folds = 5,
    repeats: Repeats = 1,
    criterion: o.Criterion = "auto",
    alpha: o.Alpha = 0.05,
    margin: o.Margin = 0.0,
    seed: o.Seed = 0,
    warmup: o.Warmup = None,
    draws: o.Draws = None,
    chains: o.Chains = None,
    engine: o.EngineName = None,
    checkpoint: o.CheckpointFile = None,
) -> None:
    """How many factors, components, states or topics describe the data best?

    Every candidate is fitted to parts of the data and scored on the rest. The answer is the set of
    candidates that the data do not rule out, and the simplest of them.

    [bold]Examples[/bold]

    lksd choose data.csv --family factors --candidates 1:10 --report report.html

    lksd choose texts.csv --text abstract --family topics --candidates 5,10,20,50 --report
    topics.html

    lksd choose letters/ --family topics --candidates 5,10,20
    """
    check_choice("--family", family, FAMILIES)
    numbers = read_candidates(candidates)
    report = report and check_path(report)
    if save is not None:
        check_out(save, "--save")
    rule = named_or_own("--criterion", criterion, Criterion, "criteria")
    titles, notes = None, []
    if text is not None or data.is_dir():
        if family != "topics":
            raise ValueError(
                f"--family: expected topics for texts; got {family}. Give a table of numbers, or "
                "--family topics."
            )
        x, titles, said = read_corpus(data, text, title, stop_words, min_documents)
        say(sentence(said))
        notes.append(sentence(said))
    else:
        x = read_data(data, array, columns, field, header)
        for note in getattr(x, "notes", ()):
            say(f"Note: {sentence(note)}")
            notes.append(sentence(note))
        x = named_documents(x, counts, drop_empty) if family == "topics" else as_table(x)
    if sys.stderr.isatty():
        size = x.shape[0] if hasattr(x, "shape") else len(x)
        kind = "documents" if family == "topics" else "observations"
        say(f"Fitting {len(numbers)} candidates {folds} times to {size:,} {kind} ...")
    options: dict[str, Any] = {"warmup": warmup, "draws": draws, "chains": chains}
    options |= {"engine": engine, "checkpoint": checkpoint, "seed": seed}
    result = choose(
        x,
        family,
        numbers,
        folds=folds,
        repeats=repeats,
        criterion=rule,
        alpha=alpha,
        margin=margin,
        **options,
    )
    read: dict[str, Any] = {
        "text": text,
        "title": title,
        "columns": columns,
        "array": array,
        "field": field,
    }
    if text is not None or data.is_dir():
        read |= {"stop_words": stop_words, "min_documents": min_documents}
    settings = result.settings | {"data": str(data)} | read
    result = replace(
        result,
        labels=titles or result.labels,
        settings=settings,
        notes=(*notes, *result.notes),
    )
    if save is not None:
        save_model(result.model, save)
    show(result, report, json)
    if save is not None and not json:
        typer.echo(f"Model: {save}")


def as_table(x: Any) -> Any:
    """Numbers with the names of their columns as a data frame, of which rows can be taken."""
    if not isinstance(x, Frame):
        return x
    return polars.DataFrame(x.values, schema=list(x.columns)) if x.columns else x.values


def named_documents(x: Any, counts: bool | None, drop_empty: bool) -> Any:
    """Documents, of words where those are known."""
    documents, words = as_documents(x, counts, drop_empty)
    return documents if words is None else [[words[word] for word in one] for one in documents]


def read_candidates(text: str) -> list[int]:
    """1:10 are all numbers from 1 to 10, 2:10:2 every second; others stand between commas."""
    found: list[int] = []
    for part in text.split(","):
        ends = [one.strip() for one in part.split(":")]
        if not all(one.isdecimal() for one in ends) or len(ends) > 3:
            raise ValueError(
                "--candidates: expected whole numbers such as 1:10, 2:20:2 or 5,10,20; got "
                f"{text!r}. Give such numbers."
            )
        first, *rest = map(int, ends)
        last, step = rest[0] if rest else first, rest[1] if len(rest) > 1 else 1
        if step < 1 or last < first:
            raise ValueError(
                f"--candidates: expected a range that goes up; got {part!r}. Give the smaller "
                "number first."
            )
        found += range(first, last + 1, step)
    return found
