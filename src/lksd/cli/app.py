"""The commands. Each reads its files, makes one call, and shows the answer."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from .. import __version__, compare
from ..models import FactorAnalysis
from ..report.page import check_path
from . import options as o
from .answer import answer, show
from .choose import choose_command
from .fit import fit
from .main import say
from .reproduce import reproduce

app = typer.Typer(
    help="Which of these latent variable models fits my data better, and how sure am I?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


def print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"lksd {__version__}")
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool,
        typer.Option("--version", callback=print_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """What all commands have."""


@app.command(name="compare")
def compare_command(
    context: typer.Context,
    data: o.Data,
    p: o.Model,
    q: o.Model,
    report: o.Report = None,
    json: o.Json = False,
    name_p: o.Name = None,
    name_q: o.Name = None,
    image_shape: o.ImageShape = None,
    array: o.Array = None,
    columns: o.Columns = None,
    field: o.Field = None,
    header: o.Header = None,
    counts: o.Counts = None,
    drop_empty: o.DropEmpty = False,
    standardise: o.Standardise = False,
    criterion: o.Criterion = "auto",
    also: o.Also = None,
    alternative: o.Alternative = "two-sided",
    alpha: o.Alpha = 0.05,
    margin: o.Margin = 0.0,
    pairs: o.Pairs = None,
    kernel: o.Kernel = None,
    operator: o.Operator = None,
    variance: o.Variance = "auto",
    calibration: o.Calibration = "auto",
    correction: o.Correction = "auto",
    also_mmd: o.AlsoMMD = False,
    preset: o.Preset = None,
    check: o.Check = True,
    seed: o.Seed = 0,
    sampler: o.SamplerName = None,
    warmup: o.Warmup = None,
    draws: o.Draws = None,
    chains: o.Chains = None,
    exact: o.Exact = None,
    engine: o.EngineName = None,
    checkpoint: o.CheckpointFile = None,
    trust_pickle: o.Trust = False,
) -> None:
    """Which of two models fits the data better?

    The data must be independent observations that neither model was fitted on.

    [bold]Examples[/bold]

    lksd compare x.npy --p models.py:p --q models.py:q

    lksd compare x.csv --columns a,b,c --p models.py:small --q models.py:large --report report.html

    lksd compare x.npy --p models.py:p --q models.py:q --no-exact --sampler nuts --draws 1000 --json
    > result.json
    """
    answer(context.params)


@app.command(name="rank")
def rank_command(
    context: typer.Context,
    data: o.Data,
    models: o.Models,
    report: o.Report = None,
    json: o.Json = False,
    name: o.Names = None,
    array: o.Array = None,
    columns: o.Columns = None,
    field: o.Field = None,
    header: o.Header = None,
    counts: o.Counts = None,
    drop_empty: o.DropEmpty = False,
    standardise: o.Standardise = False,
    criterion: o.Criterion = "auto",
    also: o.Also = None,
    alpha: o.Alpha = 0.05,
    margin: o.Margin = 0.0,
    pairs: o.Pairs = None,
    kernel: o.Kernel = None,
    operator: o.Operator = None,
    variance: o.Variance = "auto",
    calibration: o.Calibration = "auto",
    correction: o.Correction = "auto",
    check: o.Check = True,
    seed: o.Seed = 0,
    sampler: o.SamplerName = None,
    warmup: o.Warmup = None,
    draws: o.Draws = None,
    chains: o.Chains = None,
    exact: o.Exact = None,
    engine: o.EngineName = None,
    checkpoint: o.CheckpointFile = None,
    trust_pickle: o.Trust = False,
) -> None:
    """Which of several models fit the data best, and which differences are more than chance?

    The data must be independent observations that no model was fitted on.

    [bold]Examples[/bold]

    lksd rank x.npy models.py:a models.py:b models.py:c

    lksd rank docs.jsonl k10.npz k50.npz k100.npz --name "10 topics" --name "50 topics" --name "100
    topics" --report report.html
    """
    answer(context.params)


@app.command()
def topics(
    context: typer.Context,
    data: o.Data,
    p: o.TopicModel,
    q: o.TopicModel,
    report: o.Report = None,
    json: o.Json = False,
    name_p: o.Name = None,
    name_q: o.Name = None,
    array: o.Array = None,
    field: o.Field = None,
    header: o.Header = None,
    counts: o.Counts = None,
    drop_empty: o.DropEmpty = False,
    criterion: o.Criterion = "auto",
    also: o.Also = None,
    alternative: o.Alternative = "two-sided",
    alpha: o.Alpha = 0.05,
    pairs: o.Pairs = None,
    kernel: o.Kernel = None,
    operator: o.Operator = None,
    calibration: o.Calibration = "auto",
    preset: o.Preset = None,
    seed: o.Seed = 0,
    warmup: o.Warmup = None,
    draws: o.Draws = None,
    chains: o.Chains = None,
    exact: o.Exact = None,
    engine: o.EngineName = None,
    checkpoint: o.CheckpointFile = None,
    trust_pickle: o.Trust = False,
) -> None:
    """Which of two topic models describes the documents better?

    Documents are lines of JSON, each a list of words or of word ids, or an object with one under
    "tokens" or "words"; or word counts or ids as an array.

    [bold]Examples[/bold]

    lksd topics docs.jsonl --p lda_a.model --q lda_b.model --trust-pickle --report report.html

    lksd topics docs.jsonl --p a.npz --q b.npz --name-p "50 topics" --name-q "100 topics"
    """
    answer(context.params)


@app.command()
def demo(report: o.Report = Path("report.html"), json: o.Json = False, seed: o.Seed = 0) -> None:
    """Fit models to handwritten digits and compare them on others: a table, a sentence and a
    report.

    [bold]Example[/bold]

    lksd demo --report digits.html
    """
    report = report and check_path(report)
    x, images, models = digits()
    say(
        f"Is a factor analysis with 10 factors closer to {len(x)} held-out handwritten digits than "
        "one with 2?"
    )
    show(compare(x, models, exact=False, seed=seed), report, json, observations=images)


def digits() -> tuple[np.ndarray, np.ndarray, dict[str, FactorAnalysis]]:
    """One half of scikit-learn's digits, pictures of them, and two factor analyses that are fitted
    on the other half.
    """
    from sklearn import datasets, decomposition

    loaded = datasets.load_digits()
    # those that are nearly always white carry nothing
    pixels = loaded.data[:, loaded.data.std(axis=0) > 2] / 16
    train, test = np.split(np.random.default_rng(0).permutation(len(pixels)), [900])
    fits = {
        f"{factors} factors": decomposition.FactorAnalysis(factors).fit(pixels[train])
        for factors in (2, 10)
    }
    models = {
        name: FactorAnalysis(fit.components_.T, fit.noise_variance_, fit.mean_)
        for name, fit in fits.items()
    }
    return pixels[test], 16 - loaded.images[test], models


app.command(name="choose")(choose_command)
app.command()(fit)
app.command()(reproduce)
