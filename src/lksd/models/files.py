"""Models in files: arrays and names with a checksum, by the names of their classes. Nothing in them
is ever run.
"""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import equinox as eqx
import numpy as np

from .._storage import NOT_ARRAYS, arrays_checksum, write_whole
from .base import LatentVariableModel
from .beta_binomial import BetaBinomial
from .blocks import StochasticBlockModel
from .dirichlet import DirichletProcessMixture
from .gaussian import PPCA, FactorAnalysis
from .markov import HiddenMarkov
from .mixture import GaussianMixture, VonMisesFisherMixture
from .topics import LDA
from .truncated import TruncatedPPCA

VERSION = 1
# by the arguments that make them, which models keep under the same names
FAMILIES: dict[type, tuple[str, ...]] = {
    PPCA: ("weight", "noise_scale", "mean"),
    FactorAnalysis: ("loadings", "noise_variance", "mean"),
    GaussianMixture: ("weights", "means", "covariances"),
    VonMisesFisherMixture: ("weights", "means", "concentrations"),
    TruncatedPPCA: ("weight", "noise_scale", "radius", "flat_radius"),
    DirichletProcessMixture: (
        *("base_mean", "base_variance", "likelihood_variance", "concentration"),
        "train",
    ),
    LDA: ("concentration", "topics", "unknown"),
    StochasticBlockModel: ("weights", "probabilities", "nodes"),
    HiddenMarkov: ("initial", "transition", "emission"),
    BetaBinomial: ("trials", "alpha", "beta"),
}
KINDS = {kind.__name__: kind for kind in FAMILIES}
INTEGERS = ("unknown", "nodes", "trials")
GAUSSIANS = ("means", "covariances")  # in the place of a hidden Markov model's emission
NAMES = {"columns": (PPCA, FactorAnalysis, GaussianMixture), "vocabulary": (LDA,)}
OWN = ("model", "version", "checksum")


def save_model(model: LatentVariableModel, path: str | Path) -> None:
    """Write a model of one of this library's families to an .npz file of plain arrays, which
    ``load_model`` and the command line read.

    Parameters
    ----------
    model : LatentVariableModel
        Of a family whose parameters are numbers and arrays, with its columns or vocabulary.
    path : path-like
        A file that is there is replaced at once.

    Examples
    --------
    >>> import os, tempfile, lksd
    >>> path = os.path.join(tempfile.mkdtemp(), "model.npz")
    >>> lksd.save_model(lksd.models.PPCA([[1.0], [0.5]], 2.0, columns=["a", "b"]), path)
    >>> lksd.load_model(path).columns
    ('a', 'b')
    """
    content = to_bytes(model)
    if content is None:
        raise TypeError(
            f"model: expected a {', '.join(KINDS)}, which have plain arrays; got "
            f"{type(model).__name__}. Keep the code that makes it: a file holds no code."
        )
    write_whole(path, content)


def load_model(path: str | Path) -> LatentVariableModel:
    """The model that ``save_model`` wrote.

    Raises
    ------
    ValueError
        Where the file is damaged, or something else.
    """
    try:
        content = Path(path).read_bytes()
    except FileNotFoundError:
        raise
    except OSError as error:
        raise no_model(str(path)) from error
    return from_bytes(content, str(path))


def to_bytes(model: LatentVariableModel) -> bytes | None:
    """The content of the file of a model, the same for the same model; None where it cannot be
    saved.
    """
    kind = type(model)
    if kind not in FAMILIES:
        return None
    given = {name: np.asarray(value) for name, value in parts(model).items()}
    for name, kinds in NAMES.items():
        if kind in kinds and (listed := getattr(model, name)) is not None:
            given[name] = np.asarray(json.dumps(getattr(listed, "words", listed)))
    given |= {"model": np.asarray(kind.__name__), "version": np.asarray(VERSION)}
    file = io.BytesIO()
    np.savez(file, checksum=arrays_checksum(given), **given)  # type: ignore[arg-type]
    return file.getvalue()


def parts(model: Any) -> dict[str, Any]:
    """The arrays from which a model is made."""
    if not isinstance(model, HiddenMarkov):
        return {name: getattr(model, name) for name in FAMILIES[type(model)]}
    chain = {"initial": model.first, "transition": model.transition}
    if model.is_gaussian:
        return chain | dict(zip(GAUSSIANS, model.emission, strict=True))
    return chain | {"emission": model.emission}


def from_bytes(content: bytes, where: str = "the model") -> LatentVariableModel:
    """The inverse of ``to_bytes``; errors name the file ``where`` it stood."""
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            arrays = dict(archive)
    except NOT_ARRAYS as error:
        raise no_model(where) from error
    if not is_model(arrays):
        raise no_model(where)
    version = arrays["version"]
    if version.shape or version.dtype.kind not in "iu" or version != VERSION:
        raise ValueError(
            f"{where}: expected a model of version {VERSION}; got {version}. Read it with a newer "
            "version of lksd."
        )
    try:
        if str(arrays.pop("checksum")) != arrays_checksum(arrays):
            raise ValueError("the content is not what was written")
        del arrays["version"]
        return made(arrays)
    except (
        ArithmeticError,
        AttributeError,
        IndexError,
        KeyError,
        RecursionError,
        TypeError,
        ValueError,
    ) as error:
        raise ValueError(
            f"{where}: the model is damaged ({error}). Take a copy of the file, or fit and save it "
            "again."
        ) from error


def is_model(arrays: dict[str, np.ndarray]) -> bool:
    """Whether the arrays of a file are those of ``save_model``."""
    return set(OWN) <= set(arrays)


def no_model(where: str) -> ValueError:
    return ValueError(
        f"{where}: expected a model written by lksd.save_model; it is no such file. Check the path."
    )


def made(arrays: dict[str, np.ndarray]) -> LatentVariableModel:
    """The model from its arrays, digit for digit."""
    kind: Any = KINDS[str(arrays.pop("model"))]
    names = {
        name: json.loads(str(arrays.pop(name)))
        for name, kinds in NAMES.items()
        if kind in kinds and name in arrays
    }
    for name, array in arrays.items():
        wanted = "iu" if name in INTEGERS else "f"
        if array.dtype.kind not in wanted or (wanted == "f" and array.dtype != np.float64):
            raise TypeError(f"{name} has type {array.dtype}")
    given: dict[str, Any] = arrays | {
        name: int(arrays[name]) for name in ("nodes", "trials") if name in arrays
    }
    if kind is HiddenMarkov and set(GAUSSIANS) <= set(given):
        given["emission"] = tuple(given.pop(name) for name in GAUSSIANS)
    if set(given) != set(FAMILIES[kind]):
        raise ValueError(f"a {kind.__name__} is not made of {', '.join(sorted(given))}")
    model = kind(**given, **names)
    if kind is VonMisesFisherMixture:  # which divides by lengths that are 1 but for rounding
        model = eqx.tree_at(lambda one: one.means, model, arrays["means"])
    return model
