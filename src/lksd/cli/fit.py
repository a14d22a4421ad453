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
from .._documents import is_sparse
from .._jax import float64_values
from .._text import visible
from .._validation import check_choice, check_integers, check_reals, column_names
from ..fitting.markov import padded
from ..fitting.topics import listed
from ..models import Discrete, HasMarginal
from ..models.base import float64_leaves
from . import options as o
from .data import read_data
from .main import say, sentence

FAMILIES = {  # what is fitted, what it has several of, and to what
    "factors": ("a factor analysis", "factors", "observations"),
    "mixture": ("a mixture of Gaussians", "components", "observations"),
    "states": ("a hidden Markov model", "states", "sequences"),
    "topics": ("a topic model", "topics", "documents"),
}
AT_ONCE = 1000  # observations whose densities are computed together

Family = Annotated[str, o.option(f"What to fit: {', '.join(FAMILIES)}.", "--family")]
Count = Annotated[int, o.option("How many factors, components, states or topics.", "--count")]
Out = Annotated[Path, o.option("The file for the model, an .npz.", "--out")]
Covariance = Annotated[
    str | None, o.option("Of a mixture: full, which is the default, tied, diag or spherical.")
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
    """Fit one model to the data, and write it to a file that the other commands take as a model.

    Compare models on other observations than those to which they are fitted.

    [bold]Examples[/bold]

    lksd fit train.csv --family factors --count 3 --out three.npz

    lksd fit train.jsonl --family topics --count 50 --out topics.npz
    """
    what, several, units = FAMILIES[check_choice("--family", family, FAMILIES)]
    if covariance is not None and family != "mixture":
        raise ValueError(
            f"--covariance: expected with --family mixture; got it with {family}. Leave it out."
        )
    check_out(out)
    x = read_data(Path(data), array, columns, field, header)
    for note in getattr(x, "notes", ()):
        say(f"Note: {sentence(note)}")
    if family == "topics":
        x, vocabulary = as_documents(x, counts, drop_empty)
        what = f"{what} by {fitting.topic_trainer()}"
        found = fitting.fit_topics(x, count, seed, vocabulary)
    elif family == "mixture":
        found = fitting.fit_mixture(x, count, seed, covariance or "full")
    else:
        found = (fitting.fit_factors if family == "factors" else fitting.fit_states)(x, count, seed)
    for note in found.notes:
        say(f"Note: {sentence(note)}")
    save_model(found.model, out)
    n = x.shape[0] if hasattr(x, "shape") else len(x)
    said = f"Fitted {what} to {n:,} {units}, with {count} {several if count > 1 else several[:-1]}"
    if isinstance(found.model, HasMarginal):
        said += f": log likelihood {mean_log_likelihood(found.model, x):.6g} for each on average"
    typer.echo(f"{said}.\nModel: {visible(str(out))}")


def check_out(path: Path, option: str = "--out") -> None:
    """A name for a model, in a folder where it can be written."""
    if path.suffix != ".npz":
        raise ValueError(
            f"{option}: expected a name that ends in .npz; got {str(path)!r}. Name the file so."
        )
    if not path.parent.is_dir() or path.is_dir() or not os.access(path.parent, os.W_OK):
        raise ValueError(
            f"{option}: expected a file that can be written; {str(path)!r} cannot. Choose another, "
            "in a folder that exists."
        )


def as_documents(
    x: Any, counts: bool | None, drop_empty: bool
) -> tuple[list[Any], tuple[str, ...] | None]:
    """Documents as lists of words or ids, and the words where the columns of counts name them."""
    if counts and not is_sparse(x) and hasattr(x, "shape"):
        vocabulary, x = column_names(x), csr_array(check_integers("counts", x))
    else:
        vocabulary = None
    if is_sparse(x):
        x = listed(x)
    elif hasattr(x, "shape"):
        x = [row[row >= 0] for row in check_integers("train", x)]
    kept = [one for one in x if len(one)] if drop_empty else x
    if len(kept) < len(x):
        say(f"Note: {len(x) - len(kept):,} of {len(x):,} documents are empty and left out.")
    return kept, vocabulary


@float64_values
def mean_log_likelihood(model: Any, x: Any) -> float:
    """The mean of log p(x) over the observations."""
    if isinstance(model, Discrete):
        values = padded(x)
        x = np.where(np.isnan(values), -1, values).astype(np.int32)
    else:
        x = check_reals("x", x)
    found = jax.lax.map(float64_leaves(model).log_marginal, jnp.asarray(x), batch_size=AT_ONCE)
    return float(found.mean())
