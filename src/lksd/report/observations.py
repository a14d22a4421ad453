"""The observations that decide, in a form that can be looked at."""

from __future__ import annotations

import base64
import io
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .._text import number
from ..results.details import Words

if TYPE_CHECKING:
    from ..results.comparison import ComparisonResult

SHOWN = 8  # on each side
LARGEST_IMAGE = 128  # pixels of its longer side
LONGEST_DOCUMENT, WIDEST_ROW = 60, 12  # words, columns


class Shown(NamedTuple):
    """One observation: its number and label, what it adds to the difference, and its
    image or text.
    """

    number: str
    share: str
    image: str = ""
    text: str = ""


def check_observations(observations, n: int, rows: np.ndarray | None) -> None:
    """As many as were tested; all that were given, where some of them were left out."""
    if isinstance(observations, str) or not (
        getattr(observations, "shape", None) or hasattr(observations, "__len__")
    ):
        raise TypeError(
            f"observations: expected the data of the comparison; got {observations!r}. Give the "
            "array."
        )
    count = observations.shape[0] if hasattr(observations, "shape") else len(observations)
    if count != n if rows is None else count <= rows.max():
        wanted = (
            f"the {n} that were tested"
            if rows is None
            else f"all that were given, at least {rows.max() + 1}"
        )
        raise ValueError(
            f"observations: expected {wanted}; got {count}. Give the data of the comparison."
        )


def deciding(result: ComparisonResult, observations, sign: int) -> list[Shown]:
    """The observations with the largest parts of this sign."""
    parts = result.contributions
    order = np.argsort(-sign * parts, kind="stable")[:SHOWN]
    return [
        Shown(
            f"{result.row(i)} {result.label(i)}".strip(),
            f"{parts[i]:+.3g}",
            *picture(observations, result.row(i), result.words),
        )
        for i in order
        if sign * parts[i] > 0
    ]


def picture(observations, index: int, words: Words | None) -> tuple[str, str]:
    """The image, or the text, of one observation."""
    if observations is None:
        return "", ""
    if hasattr(observations, "iloc"):
        row = observations.iloc[index]
        return "", join_first(
            [f"{name} = {value}" for name, value in row.items()], WIDEST_ROW, ", "
        )
    if hasattr(observations, "row"):
        return "", join_first(
            [f"{k} = {v}" for k, v in observations.row(index, named=True).items()], WIDEST_ROW, ", "
        )
    if hasattr(observations, "tocsr"):
        row = observations.tocsr()[[index]]
        names = words_by_id(words)
        counted = [
            f"{names.get(int(i), int(i))} x {int(c)}"
            for i, c in zip(row.indices, row.data, strict=True)
        ]
        return "", join_first(counted, LONGEST_DOCUMENT, ", ")
    one = observations[index]
    if isinstance(one, str):
        return "", join_first(one.split(), LONGEST_DOCUMENT, " ")
    if np.ndim(one) >= 2:
        return as_image(np.asarray(one)), ""
    if words is not None or any(isinstance(entry, str) for entry in one):
        names = words_by_id(words)
        tokens = [
            entry if isinstance(entry, str) else names.get(int(entry), str(entry)) for entry in one
        ]
        return "", join_first([str(token) for token in tokens], LONGEST_DOCUMENT, " ")
    return "", join_first([number(float(value)) for value in np.atleast_1d(one)], WIDEST_ROW, ", ")


def words_by_id(words: Words | None) -> dict[int, str]:
    return (
        {}
        if words is None or words.columns or not words.names
        else dict(zip(words.ids.tolist(), words.names, strict=True))
    )


def join_first(parts: list[str], most: int, between: str) -> str:
    """The first parts, and how many there are more."""
    more = f"{between}... ({len(parts) - most} more)" if len(parts) > most else ""
    return between.join(parts[:most]) + more


def as_image(pixels: np.ndarray) -> str:
    """A PNG as a data address: grey for (height, width), colour for (height, width, 3)."""
    from PIL import Image

    if (
        pixels.ndim not in (2, 3)
        or (pixels.ndim == 3 and pixels.shape[2] != 3)
        or 0 in pixels.shape
    ):
        raise ValueError(
            "observations: expected images of shape (height, width) or (height, width, 3); got "
            f"{pixels.shape}. Reshape them."
        )
    values: Any = pixels.astype(np.float64)
    low, high = values.min(), values.max()
    levels = np.uint8(255 * (values - low) / (high - low if high > low else 1.0))
    image = Image.fromarray(levels)
    image.thumbnail((LARGEST_IMAGE, LARGEST_IMAGE))
    file = io.BytesIO()
    image.save(file, "PNG")
    return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode()
