"""The options that commands share, with their help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from .. import kernels, samplers

KERNELS: dict[str, Any] = {
    "standardised": kernels.Standardised.median,
    "per-coordinate": kernels.PerCoordinate.median,
    "imq": kernels.IMQ.median,
    "imq-covariance": kernels.IMQ.covariance,
    "gaussian": kernels.Gaussian.median,
    "family": kernels.family,
}
# of real data, by the squared scale
SCALED_KERNELS: dict[str, Any] = {"imq": kernels.IMQ, "gaussian": kernels.Gaussian}
WORD_KERNELS: dict[str, Any] = {  # by the squared scale and the number of words or values
    "bag-of-words": lambda scale, size: kernels.BagOfWords(kernels.IMQ(scale), size),
    "bag-of-words-gaussian": lambda scale, size: kernels.BagOfWords(kernels.Gaussian(scale), size),
    "one-hot": lambda scale, size: kernels.OneHot(kernels.IMQ(scale), size),
    "hamming": lambda scale, size: kernels.Hamming(),
}
SAMPLERS: dict[str, Any] = {
    "nuts": samplers.NUTS,
    "hmc": samplers.HMC,
    "mala": samplers.MALA,
    "random-walk": samplers.RandomWalk,
    "exchange": samplers.Exchange,
    "gibbs": samplers.Gibbs,
    "exact": samplers.Exact,
}
CODE = "A Python file is code: it is run. Name only files that you trust."
TOPICS = (
    "A saved model or an .npz with concentration, topics and vocabulary, a gensim model (with "
    "--trust-pickle), or file.py:name."
)


def option(text: str, *names: str, panel: str | None = None) -> Any:
    return typer.Option(*names, help=text, rich_help_panel=panel, show_default=not names)


Data = Annotated[
    Path,
    typer.Argument(
        help="The observations: .npy, .npz, .parquet, or .csv, .tsv, .jsonl, also with .gz."
    ),
]
Source = Annotated[
    Path,
    typer.Argument(
        help="The observations: .npy, .npz, .parquet, or .csv, .tsv, .jsonl, also with .gz; or a "
        "folder of .txt files."
    ),
]
Model = Annotated[
    str, option(f"A model as file.py:name, or a model or scores saved as .npz. {CODE}")
]
Models = Annotated[
    list[str],
    typer.Argument(
        help="The models, each as file.py:name, or saved as .npz, or scores saved so, or as for "
        f"topics. {CODE}"
    ),
]
Names = Annotated[
    list[str] | None,
    option(
        "What to call the models, in their order; repeated, once for each.",
        "--name",
        panel="Output",
    ),
]
TopicModel = Annotated[str, option(f"{TOPICS} {CODE}")]
Trust = Annotated[
    bool, option("Load model files that are pickles, which may run any code.", "--trust-pickle")
]

Report = Annotated[
    Path | None, option("Write a report: one HTML file that needs nothing else.", panel="Output")
]
Json = Annotated[
    bool, option("Print the result as JSON instead of as a table.", "--json", panel="Output")
]
Name = Annotated[
    str | None, option("What to call the model in the answer; P or Q if not given.", panel="Output")
]
ImageShape = Annotated[
    str | None,
    option("Show observations as images in the report: 28x28, or 32x32x3.", panel="Output"),
]

Array = Annotated[str | None, option("Which array of an .npz file.", panel="Data")]
Columns = Annotated[str | None, option("Columns of a table to use, by name: a,b,c.", panel="Data")]
Field = Annotated[
    str | None,
    option("Where a line of JSON is an object: the name of its list of words.", panel="Data"),
]
Header = Annotated[
    bool | None,
    option(
        "Whether the first line of a table has the columns' names; by default it has if it is "
        "words.",
        "--header/--no-header",
        panel="Data",
    ),
]
Counts = Annotated[
    bool | None,
    option("An array holds word counts, or word ids.", "--counts/--no-counts", panel="Data"),
]
DropEmpty = Annotated[
    bool,
    option(
        "Leave out documents without words, or without any that the models know.",
        "--drop-empty",
        panel="Data",
    ),
]
Standardise = Annotated[
    bool, option("Divide the columns by their standard deviations.", "--standardise", panel="Data")
]

Criterion = Annotated[
    str,
    option(
        "What decides: auto, log, fisher, conditional, ksd (the kernel Stein discrepancy), or a "
        "criterion of your own as file.py:name.",
        panel="Test",
    ),
]
Also = Annotated[
    list[str] | None,
    option(
        "Criteria that stand beside it, with commas or repeated; ksd if not given, none for none.",
        panel="Test",
    ),
]
Alternative = Annotated[str, option("two-sided, or greater (Q fits better).", panel="Test")]
Alpha = Annotated[float, option("The level of the test.", panel="Test")]
Kernel = Annotated[
    list[str] | None,
    option(
        f"{', '.join(KERNELS)} for real data; {', '.join(WORD_KERNELS)} for words and other "
        "integers; a squared scale may follow, imq:2.5; or file.py:name. May be repeated.",
        panel="Test",
    ),
]
Operator = Annotated[
    list[str] | None,
    option(
        "langevin, spherical, difference, barker or gibbs; or file.py:name. May be repeated.",
        panel="Test",
    ),
]
Margin = Annotated[
    float,
    option("A difference, by the criterion that decides, too small to matter.", panel="Test"),
]
Variance = Annotated[str, option("auto, jackknife, ustat, vstat or regularised.", panel="Test")]
Correction = Annotated[
    str,
    option(
        "auto, min-p, max-t, holm or bonferroni, where several hypotheses are tested.",
        panel="Test",
    ),
]
AlsoMMD = Annotated[
    bool, option("Also compare samples of the models, by the MMD.", "--also-mmd", panel="Test")
]
Calibration = Annotated[
    str,
    option("auto, bootstrap, edgeworth or normal (the paper's); or file.py:name.", panel="Test"),
]
Preset = Annotated[str | None, option("paper: everything as in the paper.", panel="Test")]
Check = Annotated[
    bool,
    option(
        "Whether to test that each model's densities fit what it simulates.",
        "--check/--no-check",
        panel="Test",
    ),
]
Seed = Annotated[int, option("The same seed gives the same digits.", panel="Test")]

SamplerName = Annotated[
    str | None, option(f"{', '.join(SAMPLERS)}; default: chosen from the model.", panel="Scores")
]
Warmup = Annotated[int | None, option("Steps of each chain that are discarded.", panel="Scores")]
Draws = Annotated[int | None, option("Draws kept for each observation.", panel="Scores")]
Chains = Annotated[int | None, option("Chains for each observation.", panel="Scores")]
Exact = Annotated[
    bool | None,
    option("Demand exact scores, or forbid them.", "--exact/--no-exact", panel="Scores"),
]
Pairs = Annotated[
    int | None,
    option(
        "Take so many pairs of observations instead of all, where there are too many.",
        "--pairs",
        panel="Test",
    ),
]
EngineName = Annotated[
    str | None,
    option(
        "Where to compute: dask (a worker for each processor), or a cluster: tcp://host:8786.",
        "--engine",
        panel="Scores",
    ),
]
CheckpointFile = Annotated[
    Path | None,
    option(
        "A file for finished scores, from which a run that was stopped goes on.",
        "--checkpoint",
        panel="Scores",
    ),
]
