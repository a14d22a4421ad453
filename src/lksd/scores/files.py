"""Scores in files: arrays with a checksum, and operators by the names of their classes."""

from __future__ import annotations

import io
import json
from dataclasses import asdict, fields
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from .._jax import is_ours
from .._storage import NOT_ARRAYS, arrays_checksum, read_arrays, write_whole
from ..stein import SteinOperator
from ..stein.base import REGISTERED
from ..supports import Support
from .lengths import BatchMeans

if TYPE_CHECKING:
    from .result import ScoreEstimate

PARTS = ("score", "mcse", "batch_means")
BY_ROW = (
    "index",
    "rhat",
    "ess",
    "acceptance",
    "divergences",
    "meeting_times",
    "converged",
    "observed",
    "losses",
    "loss_errors",
    "loss_positions",
    "loss_tails",
)
SCHEMA, READABLE = 4, (2, 3, 4)
CHECKED = 4  # the schema from which files hold a checksum
# with a second axis
TABLES = ("meeting_times", "losses", "loss_errors", "loss_positions", "loss_tails")
NEWER = ("criteria", "loss_bases")  # than lists of texts as arrays
TEXTS = ("notes", "columns", "criteria", "loss_bases")
# of arrays; others are real
KINDS = {
    "index": "iu",
    "divergences": "iu",
    "meeting_times": "iu",
    "converged": "b",
    "observed": "u",
}


def write_scores(scores: ScoreEstimate, path: str | Path) -> None:
    given = {
        f.name: getattr(scores, f.name)
        for f in fields(scores)
        if f.name not in (*PARTS, "operator", "support")
    }
    given = {name: value for name, value in given.items() if value is not None}
    for name in PARTS:
        for number, array in enumerate(scores.part(name)):
            given |= as_arrays(f"{name}_{number}", array)
    settings = []
    for number, one in enumerate(scores.operators):
        plain, arrays = operator_record(one)
        settings.append(plain)
        given |= {f"{name}_{number}": array for name, array in arrays.items()}
    given["operators"] = json.dumps(
        {"several": isinstance(scores.operator, tuple), "each": settings}
    )
    if scores.support is not None:
        given["support"] = json.dumps(asdict(scores.support))
    given |= {name: json.dumps(given[name]) for name in TEXTS if name in given}
    every = {name: np.asarray(value) for name, value in (given | {"schema": SCHEMA}).items()}
    file = io.BytesIO()
    np.savez(file, checksum=arrays_checksum(every), **every)  # type: ignore[arg-type]
    write_whole(path, file.getvalue())


def operator_record(operator: SteinOperator) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The name of an operator's class with the fields that make it again, and those of them that
    are arrays.
    """
    kind = type(operator)
    if REGISTERED[kind.__name__] is not kind and is_ours(REGISTERED[kind.__name__]):
        raise ValueError(
            f"operator: {kind.__name__} is the name of a class of lksd.stein, as which it would be "
            "read. Rename yours."
        )
    plain: dict[str, Any] = {"kind": kind.__name__}
    arrays: dict[str, np.ndarray] = {}
    for name in constructor(kind):
        value = getattr(operator, name, ...)
        if isinstance(value, (np.generic, np.ndarray, jax.Array)):
            value = np.asarray(value)
        if name not in (*PARTS, "kind") and isinstance(value, np.ndarray) and value.ndim:
            arrays[name] = value
        elif name not in (*PARTS, "kind") and is_plain(
            value := value.item() if isinstance(value, np.ndarray) else value
        ):
            plain[name] = value
        else:
            raise ValueError(
                f"operator: {kind.__name__} cannot be saved; expected a field {name!r} that is a "
                "number, a string, a tuple of them or an array, for the argument of that name. The "
                f"names {', '.join(PARTS)} and kind are taken."
            )
    return plain, arrays


def is_plain(value: Any) -> bool:
    return isinstance(value, (bool, int, float, str, type(None))) or (
        isinstance(value, tuple) and all(map(is_plain, value))
    )


def constructor(kind: type) -> list[str]:
    """The names of the arguments from which a class makes its instances."""
    return list(signature(kind.__init__).parameters)[1:]  # type: ignore[misc]


def read_operator(settings: dict[str, Any], number: int, record: dict[str, Any]) -> SteinOperator:
    """The inverse of ``operator_record``."""
    name = settings.pop("kind")
    if name not in REGISTERED:
        raise ImportError(
            f"the scores belong to the operator {name}, a class that is not known here. Import the "
            "module that has it"
        )
    kind: Any = REGISTERED[name]
    arrays = {
        field: record.pop(f"{field}_{number}")
        for field in constructor(kind)
        if f"{field}_{number}" in record
    }
    return kind(**{field: as_tuples(value) for field, value in settings.items()}, **arrays)


def as_tuples(value: Any) -> Any:
    return tuple(map(as_tuples, value)) if isinstance(value, list) else value


def as_arrays(name: str, values: Any) -> dict[str, np.ndarray]:
    """An array by its name; those of groups of documents one by one, with the rows that
    they have.
    """
    if not isinstance(values, BatchMeans):
        return {name: values}
    each = enumerate(zip(values.rows, values.parts, strict=True))
    return {
        f"{name}_{kind}_{number}": array
        for number, pair in each
        for kind, array in zip(("rows", "part"), pair, strict=True)
    }


def from_arrays(name: str, record: dict[str, Any]) -> Any:
    """The inverse of ``as_arrays``."""
    if name in record:
        return record.pop(name)
    numbers = range(sum(key.startswith(f"{name}_rows_") for key in record))
    rows, parts = (
        tuple(record.pop(f"{name}_{kind}_{number}") for number in numbers)
        for kind in ("rows", "part")
    )
    found = np.sort(np.concatenate(rows))
    if not np.array_equal(found, np.arange(len(found))) or [len(one) for one in rows] != [
        len(part) for part in parts
    ]:
        raise ValueError(f"the groups of {name} do not belong together")
    return BatchMeans(rows, parts)


def read_scores(path: str | Path, kind: type[ScoreEstimate]) -> ScoreEstimate:
    """The inverse of ``write_scores``."""
    try:
        record: dict[str, Any] = read_arrays(Path(path))
    except FileNotFoundError:
        raise
    except NOT_ARRAYS as error:
        raise ValueError(
            f"{path}: expected scores written by ScoreEstimate.save; it is no such file. Check the "
            "path."
        ) from error
    schema, stored = record.get("schema"), record.pop("checksum", None)
    if (
        schema is None
        or schema.shape
        or schema.dtype.kind not in "iu"
        or int(schema) not in READABLE
        or "score_0" not in record
    ):
        raise ValueError(
            f"{path}: expected scores of schema {SCHEMA}; got something else. Estimate them again."
        )
    try:
        if int(schema) >= CHECKED if stored is None else str(stored) != arrays_checksum(record):
            raise ValueError("the content is not what was written")
        scores = kind(**fields_of(record))
        check_whole(scores)
    except (
        AttributeError,
        ImportError,
        IndexError,
        KeyError,
        OverflowError,
        RecursionError,
        TypeError,
        ValueError,
    ) as error:
        # files without a checksum are of our own operators
        if isinstance(error, ImportError) and stored is not None:
            raise ImportError(f"{path}: {error}, and load them again.") from error
        raise ValueError(
            f"{path}: the scores are damaged ({error}). Take a copy of the file, or estimate them "
            "again."
        ) from error
    return scores


def fields_of(record: dict[str, Any]) -> dict[str, Any]:
    """The fields of scores from the arrays of a file."""
    listed = record.pop("schema") >= CHECKED
    saved = json.loads(str(record.pop("operators")))
    operators = [
        read_operator(settings, number, record) for number, settings in enumerate(saved["each"])
    ]
    parts = {
        name: tuple(from_arrays(f"{name}_{number}", record) for number in range(len(operators)))
        for name in PARTS
    }
    several = saved["several"]
    texts = {
        name: json.loads(str(record.pop(name))) if listed or name in NEWER else record.pop(name)
        for name in TEXTS
        if name in record
    }
    plain: dict[str, Any] = {
        name: tuple(str(text) for text in value) for name, value in texts.items()
    }
    support = json.loads(str(record.pop("support", "null")))
    if support is not None:
        plain["support"] = Support(
            tuple(support["lower"]), tuple(support["upper"]), support["simplex"]
        )
    plain |= {"seed": int(record["seed"]), "method": str(record["method"])}
    plain |= {
        name: bool(record.get(name, False)) for name in ("two_starts", "exchangeable", "graphs")
    }
    plain |= {name: part if several else part[0] for name, part in parts.items()}
    return record | plain | {"operator": tuple(operators) if several else operators[0]}


def check_whole(scores: ScoreEstimate) -> None:
    """Arrays of the sizes and kinds that belong together, also in files without a checksum."""
    n = len(scores.index)
    for name in BY_ROW:
        value, kinds = getattr(scores, name), KINDS.get(name, "f")
        if value is not None and (
            value.dtype.kind not in kinds
            or value.shape[:1] != (n,)
            or value.ndim > 1 + (name in TABLES)
        ):
            raise ValueError(f"{name} has type {value.dtype} and shape {value.shape}")
    for name in ("losses", "loss_errors"):
        width = None if getattr(scores, name) is None else getattr(scores, name).shape[1:]
        if width not in ((len(scores.criteria),), None if not scores.criteria else ()):
            raise ValueError(f"{name} are not those of {len(scores.criteria)} criteria")
    if not n or (scores.index < 0).any() or (scores.divergences < 0).any() or scores.seed < 0:
        raise ValueError("an id, a count or the seed is negative, or nothing is there")
    for score, error, means in zip(*(scores.part(name) for name in PARTS), strict=True):
        if (
            score.dtype != np.float64
            or score.ndim < 2
            or score.shape[0] != n
            or error.shape != score.shape
        ):
            raise ValueError(
                f"scores of shape {score.shape} and errors of shape {error.shape} for {n} "
                "observations"
            )
        if not np.isfinite(score).all() or not (error >= 0).all():
            raise ValueError("scores are not finite, or errors not positive")
        if (means.shape[:1], means.shape[3:]) != ((n,), score.shape[1:]):
            raise ValueError(
                f"batch means of shape {means.shape} for scores of shape {score.shape}"
            )
