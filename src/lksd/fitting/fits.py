"""Finished fits in a checkpoint, so that a run that was killed loses the one that it was at."""

from __future__ import annotations

from importlib.metadata import version
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
        told = (procedure.said, procedure.labels, partitions.fold.shape, partitions.folds)
        wanted = {
            "data": content_digest(x),
            "model": checksum(repr(told).encode(), *code_of(procedure)),
            "settings": checksum(str(partitions.seed).encode()),
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


def code_of(procedure: Procedure) -> list[bytes]:
    """What a function of the caller's does, as far as its own code says."""
    given = getattr(procedure.fit, "args", ())
    code = getattr(given[0], "__code__", None) if given else None
    return [] if code is None else [code.co_code, repr(code.co_consts).encode()]
