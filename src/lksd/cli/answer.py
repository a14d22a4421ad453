"""From what a command has read to what it shows."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import typer

from .. import compare, rank
from .._text import visible
from .._validation import check_choice
from .._vocabulary import holds_words
from ..criteria import Criterion
from ..domains import kind_of
from ..kernels import Kernel
from ..report.page import check_path
from ..scores import ScoreEstimate
from ..statistics import Calibration
from ..stein import SteinOperator
from .data import is_number, read_data
from .main import say, sentence
from .models import instance, named_in, named_or_own, read_model
from .options import KERNELS, SAMPLERS, SCALED_KERNELS, WORD_KERNELS
from .tables import Frame

OWN = (  # what the library's calls do not take
    *("data", "array", "columns", "field", "header", "p", "q", "models", "trust_pickle"),
    *("report", "json", "name", "name_p", "name_q", "image_shape"),
)


def answer(given: dict[str, Any]) -> None:
    """Read what a command's parameters name, compare or rank, and show the result with the files
    that were named.
    """
    ranked, options = (
        "models" in given,
        {name: value for name, value in given.items() if name not in OWN},
    )
    files = given["models"] if ranked else (given["p"], given["q"])
    called = given["name"] if ranked else (given["name_p"], given["name_q"])
    if ranked and called and len(called) != len(files):
        raise ValueError(
            f"--name: expected one for each of {len(files)} models; got {len(called)}. Repeat it, "
            "or leave it out."
        )
    report = given["report"] and check_path(given["report"])
    size = given.get("image_shape") and shape(given["image_shape"])
    # before scores that belong to one are read
    options["operator"] = chosen_operator(given["operator"])
    options["calibration"] = named_or_own(
        "--calibration", given["calibration"], Calibration, "calibrations"
    )
    options["criterion"] = named_or_own("--criterion", given["criterion"], Criterion, "criteria")
    options["also"] = chosen_also(given["also"])
    roles = ["models"] * len(files) if ranked else ["--p", "--q"]
    models = [
        read_model(role, file, given["trust_pickle"])
        for role, file in zip(roles, files, strict=True)
    ]
    x = read_data(
        Path(given["data"]), given["array"], given.get("columns"), given["field"], given["header"]
    )
    options["kernel"] = chosen_kernel(given["kernel"], x, models, given["counts"])
    if "sampler" in given:
        options["sampler"] = (
            given["sampler"] and SAMPLERS[check_choice("--sampler", given["sampler"], SAMPLERS)]()
        )
    data = plain(x)
    observations = as_images(data, size) if size else x
    if sys.stderr.isatty():
        doing = f"Ranking {len(models)} models" if ranked else "Comparing"
        say(
            f"{doing} on {data.shape[0] if hasattr(data, 'shape') else len(data):,} observations "
            "..."
        )
    result: Any
    if ranked:
        result = rank(x, list(zip(called or files, models, strict=True)), **options)
        command, above, shown = {"models": list(files)}, [], {}
    else:
        names = (called[0] or "P", called[1] or "Q") if any(called) else None
        result = compare(x, *models, names=names, **options)
        command = dict(zip("pq", files, strict=True))
        above = [
            *(visible(f"{name}: {file}") for name, file in zip(result.names, files, strict=True)),
            "",
        ]
        shown = {"observations": observations, "names": None if names else files}
    for note in getattr(x, "notes", ()):  # what the reader should know of how a file was read
        say(f"Note: {sentence(note)}")
    show(
        replace(result, settings=result.settings | {"data": str(given["data"])} | command),
        report,
        given["json"],
        above,
        **shown,
    )


def show(
    result: Any, report: Path | None, json: bool, above: Sequence[str] = (), **shown: Any
) -> None:
    """The report if one is wanted, with what else is ``shown`` in it, and the table or JSON."""
    if report is not None:
        result.to_html(report, **shown)
    if json:
        typer.echo(result.to_json())
        return
    typer.echo("\n".join([*above, str(result)]))
    if report is not None:
        typer.echo(f"\nReport: {visible(str(report))}")


def plain(x: Any) -> Any:
    """The data as the library takes them."""
    return x.values if isinstance(x, Frame) else x


def chosen_also(given: list[str] | None) -> Any:
    """The criteria beside the one that decides."""
    names = [name.strip() for text in given or ["auto"] for name in text.split(",")]
    if names in (["auto"], ["none"]):
        return names[0]
    return tuple(named_or_own("--also", name, Criterion, "criteria") for name in names)


def chosen_operator(names: list[str] | None) -> Any:
    """Nothing, one operator by its name or from the user's file, or a tuple of them."""
    made = [named_or_own("--operator", name, SteinOperator, "operators") for name in names or ()]
    return None if not made else made[0] if len(made) == 1 else tuple(made)


def chosen_kernel(names: list[str] | None, x: Any, models: list[Any], counts: bool | None) -> Any:
    """Kernels by name, with their scales as given or from the data, or from the user's files."""
    made: list[Any] = []
    for name in names or ():
        path, _, variable = name.rpartition(":")
        if path.endswith(".py"):
            found = instance(
                "--kernel", name, named_in("--kernel", Path(path), variable, Kernel, "kernels")
            )
        else:
            found = kernel_named(name, x, models, counts)
        made += found if isinstance(found, list) else [found]
    return None if not made else made if len(made) > 1 else made[0]


def kernel_named(text: str, x: Any, models: list[Any], counts: bool | None) -> Any:
    """name or name:scale."""
    name, _, given = text.partition(":")
    check_choice("--kernel", name, [*KERNELS, *WORD_KERNELS])
    if given and not is_number(given):
        raise ValueError(
            f"--kernel: expected a number as the squared scale, such as imq:2.5; got {text!r}. "
            "Check it."
        )
    scale = float(given) if given else None
    if name in WORD_KERNELS:
        if scale is not None and name == "hamming":
            raise ValueError(f"--kernel: hamming has no scale; got {text!r}. Leave the scale out.")
        return WORD_KERNELS[name](1.0 if scale is None else scale, value_count(models, x, counts))
    if scale is None:
        return KERNELS[name](plain(x))
    if name not in SCALED_KERNELS:
        raise ValueError(
            f"--kernel: {name} takes its scales from the data; got {text!r}. Leave the scale out."
        )
    return SCALED_KERNELS[name](scale)


def value_count(models: list[Any], x: Any, counts: bool | None) -> int:
    """How many words or values the models have, those of all vocabularies together where documents
    are words.
    """
    for model in models:
        if kind_of(model) in ("reals", "directions"):
            raise ValueError(
                f"--kernel: expected one for real numbers, such as imq, which {model} describes. "
                "Name another."
            )
    words = {
        word
        for model in models
        if getattr(model, "vocabulary", None)
        for word in model.vocabulary.words
    }
    first: Any = models[0].operators[0] if isinstance(models[0], ScoreEstimate) else models[0]
    return len(words) if words and holds_words(x, models, counts) else first.n_values


def shape(text: str) -> tuple[int, ...]:
    """28x28 as (28, 28)."""
    parts = text.lower().split("x")
    if (
        len(parts) not in (2, 3)
        or not all(part.isdecimal() and int(part) for part in parts)
        or parts[2:] not in ([], ["3"])
    ):
        raise ValueError(
            "--image-shape: expected height x width, such as 28x28, or 28x28x3 in colour; got "
            f"{text!r}."
        )
    return tuple(int(part) for part in parts)


def as_images(x: Any, size: tuple[int, ...]) -> np.ndarray:
    wanted = int(np.prod(size))
    if getattr(x, "ndim", 0) != 2 or x.shape[1] != wanted or not isinstance(x, np.ndarray):
        came = f"shape {x.shape}" if hasattr(x, "shape") else "documents"
        raise ValueError(
            f"--image-shape: expected {wanted} columns, one for each pixel; got {came}. Check the "
            "shape."
        )
    return x.reshape(-1, *size)
