"""``lksd fit``: one candidate of a family, fitted to data and written to a file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import jax
import jax.numpy as jnp
import numpy as np
import typer
from scipy.sparse import csr_array

from .. import fitting, save_model
from .._documents import is_ragged, is_sparse, pad
from .._jax import float64_values
from .._text import visible
from .._validation import check_choice, column_names
from ..models import HasMarginal, LatentVariableModel
from ..models.base import float64_leaves
from . import options as o
from .data import read_data
from .main import say, sentence

FAMILIES: dict[str, tuple[str, str]] = {  # what is fitted, and of what it has several
    "factors": ("factor analysis", "factor"),
    "mixture": ("mixture of Gaussians", "component"),
    "states": ("hidden Markov model", "state"),
    "topics": ("topic model", "topic"),
}
AT_ONCE = 1000  # observations whose densities are computed together

Family = Annotated[str, o.option(f"What to fit: {', '.join(FAMILIES)}.", "--family")]
Count = Annotated[
    int, o.option("How many factors, components, states or topics.", "--count", "-k")
]
Out = Annotated[Path, o.option("The file for the model, as .npz.", "--out", panel="Output")]
Covariance = Annotated[
    str | None,
    o.option("Of a mixture: full (the default), tied, diag or spherical.", "--covariance"),
]


def fit(
    data: o.Data,
    family: Family,
    count: Count,
    out: Out,
    covariance: Covariance = None,
    array: o.Array = None,
    columns: o.Columns = None,
    field: o.Field = None,
    header: o.Header = None,
    counts: o.Counts = None,
    drop_empty: o.DropEmpty = False,
    seed: o.Seed = 0,
) -> None:
    """Fit one model to the data, and write it to a file that compare, rank and topics take.

    Models must be compared on other observations than those to which they were fitted.

    [bold]Examples[/bold]

    lksd fit train.csv --family factors --count 3 --out three.npz

    lksd fit train.jsonl --family topics --count 50 --out topics50.npz

    lksd compare test.csv --p two.npz --q three.npz
    """
    check_choice("--family", family, FAMILIES)
    check_out(out)
    if covariance is not None and family != "mixture":
        raise ValueError(
            f"--covariance: expected with --family mixture; got {family}. Leave it out."
        )
    x = read_data(Path(data), array, columns, field, header)
    for note in getattr(x, "notes", ()):
        say(f"Note: {sentence(note)}")
    found, n = fitted(x, family, count, seed, covariance or "full", counts, drop_empty)
    save_model(found.model, out)
    for note in found.notes:
        say(f"Note: {sentence(note)}")
    what, part = FAMILIES[family]
    kind = "documents" if family == "topics" else "observations"
    by = f" by {fitting.topic_trainer()}" if family == "topics" else ""
    ...
