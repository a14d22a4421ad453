"""From what a command has read to what it shows."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import typer

from .. import ComparisonResult, compare, rank
from .._text import visible
from .._validation import check_choice
from .._vocabulary import holds_words
from ..domains import kind_of
from ..kernels import Kernel
from ..report.page import check_path
from ..scores import ScoreEstimate
from ..stein import SteinOperator
from .data import is_number
from .main import say, sentence
from .models import instance, named_in, named_or_own
from .options import KERNELS, SAMPLERS, SCALED_KERNELS, WORD_KERNELS
from .tables import Frame


class Output(NamedTuple):
    """How the answer is shown."""

    report: Path | None
    json: bool
    names: tuple[str, ...]
    image_shape: str | None = None

    def checked(self) -> Output:
        """Before any work is done."""
        if self.report is not None:
            check_path(self.report)
        if self.image_shape is not None:
            shape(self.image_shape)
        return self


def answer(x: Any, models: list[Any], options: dict[str, Any], command: dict[str, str], output: Output) -> None:
    """Compare, and show the result with the files that the ``command`` named."""
    data = plain(x)
    observations = x if output.image_shape is None else as_images(data, shape(output.image_shape))
    announce("Comparing", data)
    result = compare(x, *models, **options)
    say_notes(x)
    show(replace(result, settings=result.settings | command), observations, output)


def ranking(x: Any, models: list[Any], options: dict[str, Any], command: dict[str, Any], output: Output) -> None:
    """Rank, and show the result."""
    data = plain(x)
    announce(f"Ranking {len(models)} models", data)
    result = rank(x, list(zip(output.names, models, strict=True)), **options)
    say_notes(x)
    result = replace(result, settings=result.settings | command)
    if output.report is not None:
        result.to_html(output.report)
    if output.json:
        typer.echo(result.to_json())
        return
    typer.echo(str(result))
    if output.report is not None:
        typer.echo(f"\nReport: {visible(str(output.report))}")


def plain(x: Any) -> Any:
    """The data as the library takes them."""
    return x.values if isinstance(x, Frame) else x


def say_notes(x: Any) -> None:
    """Beside an answer, what its reader should know of how a file was read."""
    for note in getattr(x, "notes", ()):
        say(f"Note: {sentence(note)}")


def announce(doing: str, data: Any) -> None:
    if sys.stderr.isatty():
        say(f"{doing} on {data.shape[0] if hasattr(data, 'shape') else len(data):,} observations ...")


def show(result: ComparisonResult, observations: Any, output: Output) -> None:
    """The report if one is wanted, and the table or JSON."""
    if output.report is not None:
        name_p, name_q = output.names
        result.to_html(output.report, names=(name_p, name_q), observations=observations)
    if output.json:
        typer.echo(result.to_json())
        return
    roles = [f"{role}: {visible(name)}" for role, name in zip("PQ", output.names, strict=True)]
    typer.echo("\n".join([*roles, "", str(result)]))
    if output.report is not None:
        typer.echo(f"\nReport: {visible(str(output.report))}")


def chosen_operator(names: list[str] | None) -> Any:
    """Nothing, one operator by its name or from the user's file, or a tuple of them."""
    made = [named_or_own("--operator", name, SteinOperator, "operators") for name in names or ()]
    return None if not made else made[0] if len(made) == 1 else tuple(made)


def chosen_sampler(name: str | None) -> Any:
    return None if name is None else SAMPLERS[check_choice("--sampler", name, SAMPLERS)]()


def chosen_kernel(names: list[str] | None, x: Any, models: list[Any], counts: bool | None) -> Any:
    """Kernels by name, with their scales as given or from the data, or from the user's files."""
    made: list[Any] = []
    for name in names or ():
        path, _, variable = name.rpartition(":")
        if path.endswith(".py"):
            found = instance("--kernel", name, named_in("--kernel", Path(path), variable, Kernel, "kernels"))
        else:
            found = kernel_named(name, x, models, counts)
        made += found if isinstance(found, list) else [found]
    return None if not made else made if len(made) > 1 else made[0]


def kernel_named(text: str, x: Any, models: list[Any], counts: bool | None) -> Any:
    """name or name:scale."""
    name, _, given = text.partition(":")
    check_choice("--kernel", name, [*KERNELS, *WORD_KERNELS])
    scale = squared_scale(text, given) if given else None
    if name in WORD_KERNELS:
        if scale is not None and name == "hamming":
            raise ValueError(f"--kernel: hamming has no scale; got {text!r}. Leave the scale out.")
        return WORD_KERNELS[name](1.0 if scale is None else scale, value_count(models, x, counts))
    if scale is None:
        return KERNELS[name](plain(x))
    if name not in SCALED_KERNELS:
        raise ValueError(f"--kernel: {name} takes its scales from the data; got {text!r}. Leave the scale out.")
    return SCALED_KERNELS[name](scale)


def squared_scale(text: str, given: str) -> float:
    if not is_number(given):
        raise ValueError(f"--kernel: expected a number as the squared scale, such as imq:2.5; got {text!r}. Check it.")
    return float(given)


def value_count(models: list[Any], x: Any, counts: bool | None) -> int:
    """How many words or values the models have, those of all vocabularies together where documents are words."""
    for model in models:
        if kind_of(model) in ("reals", "directions"):
            raise ValueError(f"--kernel: expected one for real numbers, such as imq, which {model} describes. Name another.")
    words = {word for model in models if getattr(model, "vocabulary", None) for word in model.vocabulary.words}
    first: Any = models[0].operators[0] if isinstance(models[0], ScoreEstimate) else models[0]
    return len(words) if words and holds_words(x, models, counts) else first.n_values


def shape(text: str) -> tuple[int, ...]:
    """28x28 as (28, 28)."""
    parts = text.lower().split("x")
    if len(parts) not in (2, 3) or not all(part.isdecimal() and int(part) for part in parts) or parts[2:] not in ([], ["3"]):
        raise ValueError(f"--image-shape: expected height x width, such as 28x28, or 28x28x3 in colour; got {text!r}.")
    return tuple(int(part) for part in parts)


def as_images(x: Any, size: tuple[int, ...]) -> np.ndarray:
    wanted = int(np.prod(size))
    if getattr(x, "ndim", 0) != 2 or x.shape[1] != wanted or not isinstance(x, np.ndarray):
        came = f"shape {x.shape}" if hasattr(x, "shape") else "documents"
        raise ValueError(f"--image-shape: expected {wanted} columns, one for each pixel; got {came}. Check the shape.")
    return x.reshape(-1, *size)
