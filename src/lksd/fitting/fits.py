"""Finished fits in a checkpoint, so that a run that was killed loses the one that it was at."""

from __future__ import annotations

from functools import partial
from importlib.metadata import version
from types import CodeType, FunctionType
from typing import Any, NamedTuple

import numpy as np

from .._storage import checksum
from .._validation import column_names
from ..models.files import from_bytes, to_bytes
from ..scores.checkpoint import Checkpoint, Stage
from .base import Fit
from .procedures import Procedure


class Fits(NamedTuple):
    """Where finished fits are kept; nowhere without a ``stage``.

    Models of this library's families are kept. Those of other classes are fitted again.
    """

    checkpoint: Checkpoint | None = None
    stage: Stage | None = None

    @classmethod
    def open(
        cls, checkpoint: Checkpoint | None, x: Any, procedure: Procedure, partitions: Any
    ) -> Fits:
        """Those of a call; a file of other data or candidates is refused."""
        if checkpoint is None:
            return cls()
        parts = (partitions.seed, partitions.fold.shape, partitions.folds, procedure.labels)
        wanted = {
            "data": content_digest(x),
            "model": checksum(procedure.said.encode(), repr(told(procedure.fit)).encode()),
            "settings": checksum(repr(parts).encode(), repr(told(procedure.candidates)).encode()),
            "versions": f"lksd {version('lksd')} and jax {version('jax')}",
        }
        return cls(checkpoint, checkpoint.with_label("fits").stage(wanted))

    def finished(self) -> dict[int, Fit]:
        """The fits that are there, by their numbers."""
        if self.stage is None:
            return {}
        return {
            int(number): Fit(from_bytes(content.tobytes()), tuple(notes.tolist()))
            for (number,), (content, notes) in self.stage.finished_parts()
        }

    def write(self, number: int, fit: Fit) -> None:
        content = None if self.stage is None else to_bytes(fit.model)
        if self.stage is not None and content is not None:
            notes = np.array(fit.notes, dtype=str)
            self.stage.write(np.array([number]), [np.frombuffer(content, np.uint8), notes])


def content_digest(x: Any) -> str:
    """Of observations in any form."""
    if hasattr(x, "tocsr"):
        counts = x.tocsr()
        parts = [counts.indptr, counts.indices, counts.data]
        return checksum(str(counts.shape).encode(), *(one.tobytes() for one in parts))
    if isinstance(x, (list, tuple)):
        return checksum(*(repr(list(one)).encode() for one in x))
    values = np.ascontiguousarray(x.to_numpy() if hasattr(x, "to_numpy") else x)
    return checksum(repr((column_names(x), values.dtype, values.shape)).encode(), values.tobytes())


def told(value: Any, seen: tuple[int, ...] = ()) -> Any:
    """What decides an object's behaviour, as plain values: the code of functions with the values
    that they read, the parameters of estimators, the contents of arrays; else the type alone.
    """
    if value is None or isinstance(value, (bool, int, float, str, bytes)):
        return value
    if id(value) in seen:
        return "again"
    seen = (*seen, id(value))
    if isinstance(value, (list, tuple, range)):
        return [told(one, seen) for one in value]
    if isinstance(value, dict):
        return told(list(value.items()), seen)
    if isinstance(value, np.ndarray) or hasattr(value, "tocsr"):
        return content_digest(value)
    if isinstance(value, partial):
        return [told(one, seen) for one in (value.func, value.args, value.keywords)]
    if isinstance(value, CodeType):
        return [value.co_code, value.co_names, told(value.co_consts, seen)]
    if isinstance(value, FunctionType):
        names = [name for code in codes(value.__code__) for name in code.co_names]
        read = {name: value.__globals__[name] for name in names if name in value.__globals__}
        cells = [cell.cell_contents for cell in value.__closure__ or ()]
        inside = (value.__code__, value.__defaults__, value.__kwdefaults__, cells)
        # what packages do is told by their versions
        own = {} if value.__module__.startswith("lksd.") else read
        return [value.__qualname__, *(told(one, seen) for one in (*inside, own))]
    if hasattr(value, "get_params") and not isinstance(value, type):
        return [type(value).__qualname__, told(value.get_params(), seen)]
    named = value if hasattr(value, "__qualname__") else type(value)
    return [getattr(named, "__module__", ""), getattr(named, "__qualname__", str(named))]


def codes(code: CodeType) -> list[CodeType]:
    """The code of a function and of those inside of it."""
    inner = [one for one in code.co_consts if isinstance(one, CodeType)]
    return [code, *(own for one in inner for own in codes(one))]
