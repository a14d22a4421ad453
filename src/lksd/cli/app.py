"""The commands. Each reads its files, makes one call, and shows the answer."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from .. import __version__, compare
from . import options as o
from .answer import Output, answer, chosen_kernel, chosen_operator, chosen_sampler, ranking, show
from .data import read_data
from .main import say
from .models import read_model
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
    version: Annotated[bool, typer.Option("--version", callback=print_version, is_eager=True, help="Print the version.")] = False,
) -> None:
    """What all commands have."""


@app.command(name="compare")
def compare_command(
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
    alternative: o.Alternative = "greater",
    alpha: o.Alpha = 0.05,
    margin: o.Margin = 0.0,
    pairs: o.Pairs = None,
    kernel: o.Kernel = None,
    operator: o.Operator = None,
    variance: o.Variance = "auto",
    calibration: o.Calibration = "auto",
    correction: o.Correction = "max-t",
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
    """Does model Q fit the data better than model P?

    The data must be independent observations that neither model was fitted on.

    [bold]Examples[/bold]

    lksd compare x.npy --p models.py:p --q models.py:q

    lksd compare x.csv --columns a,b,c --p models.py:small --q models.py:large --report report.html

    lksd compare x.npy --p models.py:p --q models.py:q --no-exact --sampler nuts --draws 1000 --json > result.json
    """
    output = Output(report, json, (name_p or p, name_q or q), image_shape).checked()
    operators = chosen_operator(operator)  # before scores that belong to one are read
    models = [read_model("--p", p, trust_pickle), read_model("--q", q, trust_pickle)]
    x = read_data(data, array, columns, field, header)
    options: dict[str, Any] = {"counts": counts, "drop_empty": drop_empty, "standardise": standardise}
    options |= {"kernel": chosen_kernel(kernel, x, models, counts)}
    options |= {"operator": operators, "alternative": alternative, "alpha": alpha, "variance": variance}
    options |= {"calibration": calibration, "preset": preset, "seed": seed, "sampler": chosen_sampler(sampler)}
    options |= {"warmup": warmup, "draws": draws, "chains": chains, "exact": exact, "engine": engine, "checkpoint": checkpoint}
    options |= {"margin": margin, "correction": correction, "also_mmd": also_mmd, "pairs": pairs, "check": check}
    answer(x, models, options, {"data": str(data), "p": p, "q": q}, output)


@app.command(name="rank")
def rank_command(
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
    alpha: o.Alpha = 0.05,
    margin: o.Margin = 0.0,
    pairs: o.Pairs = None,
    kernel: o.Kernel = None,
    operator: o.Operator = None,
    variance: o.Variance = "auto",
    calibration: o.Calibration = "auto",
    correction: o.Correction = "max-t",
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

    lksd rank docs.jsonl k10.npz k50.npz k100.npz --name "10 topics" --name "50 topics" --name "100 topics" --report report.html
    """
    if name is not None and len(name) != len(models):
        raise ValueError(f"--name: expected one for each of {len(models)} models; got {len(name)}. Repeat it, or leave it out.")
    output = Output(report, json, tuple(name or models)).checked()
    operators = chosen_operator(operator)  # before scores that belong to one are read
    loaded = [read_model("models", one, trust_pickle) for one in models]
    x = read_data(data, array, columns, field, header)
    options: dict[str, Any] = {"counts": counts, "drop_empty": drop_empty, "standardise": standardise}
    options |= {"kernel": chosen_kernel(kernel, x, loaded, counts)}
    options |= {"operator": operators, "alpha": alpha, "margin": margin, "variance": variance, "pairs": pairs}
    options |= {"calibration": calibration, "correction": correction, "seed": seed, "sampler": chosen_sampler(sampler)}
    options |= {"warmup": warmup, "draws": draws, "chains": chains, "exact": exact, "engine": engine, "checkpoint": checkpoint}
    options |= {"check": check}
    ranking(x, loaded, options, {"data": str(data), "models": list(models)}, output)


@app.command()
def topics(
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
    alternative: o.Alternative = "greater",
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
    """Does topic model Q describe the documents better than topic model P?

    Documents are lines of JSON, each a list of words or of word ids, or an object with one under "tokens" or "words";
    or word counts or ids as an array.

    [bold]Examples[/bold]

    lksd topics docs.jsonl --p lda_a.model --q lda_b.model --trust-pickle --report report.html

    lksd topics docs.jsonl --p a.npz --q b.npz --name-p "50 topics" --name-q "100 topics"
    """
    output = Output(report, json, (name_p or p, name_q or q)).checked()
    operators = chosen_operator(operator)  # before scores that belong to one are read
    models = [read_model("--p", p, trust_pickle), read_model("--q", q, trust_pickle)]
    x = read_data(data, array, None, field, header)
    options: dict[str, Any] = {"counts": counts, "drop_empty": drop_empty, "alternative": alternative, "alpha": alpha}
    options |= {"kernel": chosen_kernel(kernel, x, models, counts), "operator": operators, "pairs": pairs}
    options |= {"calibration": calibration, "preset": preset, "seed": seed}
    options |= {"warmup": warmup, "draws": draws, "chains": chains, "exact": exact, "engine": engine, "checkpoint": checkpoint}
    answer(x, models, options, {"data": str(data), "p": p, "q": q}, output)


@app.command()
def demo(report: o.Report = Path("report.html"), json: o.Json = False, seed: o.Seed = 0) -> None:
    """Fit models to handwritten digits and compare them on others: a table, a sentence and a report.

    [bold]Example[/bold]

    lksd demo --report digits.html
    """
    from .demo import QUESTION, digits

    output = Output(report, json, ("", "")).checked()
    problem = digits()
    say(QUESTION.format(n=len(problem.x)))
    result = compare(problem.x, problem.p, problem.q, exact=False, seed=seed)
    show(result, problem.images, output._replace(names=problem.names))


app.command()(reproduce)
