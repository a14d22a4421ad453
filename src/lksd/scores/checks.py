"""A model is checked on the data before any chain runs, and scores against the data that they are
of; every message names the observation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jaxtyping import Real, UInt64

from .._documents import numbered
from .._text import reason_of
from ..models import LDA, LatentVariableModel
from ..models.base import Simulates, SimulatesLikelihood, Starts
from ..models.simulation import of_length
from ..samplers.base import split_latent
from .chains import own_start

ODD, FIRST, SECOND = (
    np.uint64(number) for number in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
)
WORK = 2**22  # numbers that are mixed at a time


def check_model(model: Any) -> None:
    if isinstance(model, type) or not isinstance(model, LatentVariableModel):
        raise TypeError(
            f"model: expected an instance of a lksd.models.LatentVariableModel; got {model!r}. "
            "Subclass it, and create one."
        )
    if not isinstance(model, (Simulates, Starts)):
        raise TypeError(
            f"model: {model} has neither sample(key) nor initial(key, x), so the shape of z is "
            "unknown. Add one of them."
        )
    if not model.normalised and not isinstance(model, SimulatesLikelihood):
        raise ValueError(
            f"model: {model} declares a likelihood whose normaliser depends on z, and "
            "sample_likelihood(key, z) is missing. Add it, so that the exchange algorithm can be "
            "used, or normalise the likelihood."
        )


def latent_shapes(model: LatentVariableModel, x):
    """The unconstrained latent of one observation as shapes and types."""
    if isinstance(model, Simulates):
        pair = jax.eval_shape(of_length(model, x.shape[1]).sample, jax.random.key(0))
        if (
            not isinstance(pair, (tuple, list))
            or len(pair) != 2
            or getattr(pair[1], "shape", None) != x.shape[1:]
        ):
            raise ValueError(
                f"model: expected sample(key) of {model} to return (z, x) with x of shape "
                f"{x.shape[1:]}, as the data; got shapes "
                f"{[getattr(part, 'shape', None) for part in pair]}. Check the order and the "
                "number of columns."
            )
    return jax.eval_shape(lambda key, one: own_start(model, key, one), jax.random.key(0), x[0])


def checked_latent(model: LatentVariableModel, x):
    """The latent's shapes, once both log densities are known to return one number there."""
    z = latent_shapes(model, x)
    check_shapes(model, x, z)
    return z


def check_possible(model, x: np.ndarray, ids: np.ndarray) -> None:
    """Every word of every document, or value of every observation, can come from the model, where
    it can say so.
    """
    where = np.argwhere(model.impossible(x))
    if len(where):
        document, position = (int(i) for i in where[0])
        word, vocabulary = int(x[document, position]), model.vocabulary
        name = "" if vocabulary is None else f" ({vocabulary.words[word]!r})"
        whole, part = (
            ("document", "word")
            if isinstance(model, LDA) or model.vocabulary is not None
            else ("observation", "value")
        )
        named = (
            numbered(document, whole)
            if ids[document] == document
            else f"the {whole} with index {ids[document]}"
        )
        raise ValueError(
            f"x: {part} {word}{name} in {named} has probability zero under {model}, and so has the "
            f"{whole} ({len(set(where[:, 0].tolist()))} such {whole}s). Smooth the model's "
            f"probabilities, or remove the {part}."
        )


def kinds(z) -> set[str]:
    """What the latent holds: "real", on which gradients exist, "integer", or both."""
    return {
        name
        for name, part in zip(("real", "integer"), split_latent(z), strict=True)
        if jax.tree.leaves(part)
    }


def check_shapes(model: LatentVariableModel, x, start) -> None:
    """Both log densities return one number at an observation and its unconstrained latent
    ``start``.
    """
    densities = {
        "log_prior": lambda one, u: model.log_prior(model.constrain(u)),
        "log_likelihood": lambda one, u: model.log_likelihood(one, model.constrain(u)),
    }
    for name, function in densities.items():
        if (shape := shape_of(f"{name} of {model}", function, x[0], start)) != ():
            raise ValueError(
                f"model: expected {name} of {model} to return one number; got shape {shape}. Sum "
                "over its terms."
            )


def shape_of(name: str, function: Callable, one, *rest) -> tuple[int, ...]:
    """The shape of what a model's function returns at one observation; whatever the user's code
    raises is named.
    """
    try:
        return jax.eval_shape(function, one, *rest).shape
    except Exception as error:
        raise ValueError(
            f"model: {name} fails on observations of {len(one)} columns ({reason_of(error)}). "
            "Check its shapes against the data."
        ) from error


# -------------------------------------------------- which observations scores belong to: a digest
# of each


def row_digests(x: Real[np.ndarray, "n D"]) -> UInt64[np.ndarray, " n"]:
    """64 bits of each observation: its numbers, and where they stand. Positions after the end of a
    document do not count.
    """
    found, step = np.empty(len(x), np.uint64), max(1, WORK // max(x.shape[1], 1))
    places = mix(np.asarray(np.arange(1, x.shape[1] + 1, dtype=np.uint64) * ODD))
    for start in range(0, len(x), step):
        part = x[start : start + step]
        whole = np.issubdtype(x.dtype, np.integer)
        # which has one zero, where there are two
        values = part.astype(np.int64) if whole else part.astype(np.float64) + 0.0
        mixed = mix(np.ascontiguousarray(values).view(np.uint64) ^ places)
        own = np.where(part >= 0, mixed, np.uint64(0)) if whole else mixed
        found[start : start + step] = mix(np.asarray(np.sum(own, axis=1, dtype=np.uint64)))
    return found


def mix(bits: np.ndarray) -> np.ndarray:
    """The finaliser of SplitMix64: every bit that comes in changes half of those that go out."""
    bits = (bits ^ (bits >> np.uint64(30))) * FIRST
    bits = (bits ^ (bits >> np.uint64(27))) * SECOND
    return bits ^ (bits >> np.uint64(31))


def check_observed(
    title: str, wanted: UInt64[np.ndarray, " n"], x: Real[np.ndarray, "m D"]
) -> None:
    """Refuse observations that are not those whose digests are ``wanted``, in their order."""
    expected = (
        f"x: expected the {len(wanted)} observations that the {title} belong to, in their order"
    )
    if len(x) != len(wanted):
        raise ValueError(
            f"{expected}; got {len(x)}. Take the scores of these alone by .at(index), or estimate "
            "them anew."
        )
    found = row_digests(x)
    other = found != wanted
    if not other.any():
        return
    first = int(np.argmax(other))
    if np.array_equal(np.sort(found), np.sort(wanted)):
        place = int(np.argmax(wanted == found[first]))
        raise ValueError(
            f"{expected}; got the same in another order: row {first} of x is row {place} of the "
            "scores. Put x in the order of the scores, or the scores in that of x by .at(index)."
        )
    raise ValueError(
        f"{expected}; {int(other.sum())} of the rows of x differ, the first of them row {first}. "
        "Give the data as they were then, or estimate the scores anew."
    )
