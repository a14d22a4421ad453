"""What an engine is: somewhere for the parts of a computation to run."""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterable, Iterator
from typing import Any


class EngineError(ConnectionError, ValueError):
    """A cluster that does not answer, does not fit, or lost its workers."""


class Engine(abc.ABC):
    """Runs the parts of a computation; where they run changes the time they take, never the digits."""

    @property
    @abc.abstractmethod
    def workers(self) -> int:
        """Parts that run at the same time."""

    @property
    @abc.abstractmethod
    def backend(self) -> str:
        """The kind of device that parts run on, as JAX names it: "cpu", "gpu", ..."""

    @property
    @abc.abstractmethod
    def memory(self) -> int | None:
        """The bytes of one accelerator that JAX may use there; None for processors, or where the device does not say."""

    @abc.abstractmethod
    def map(self, setup: Callable[[Any], Callable], shared: Any, items: Iterable[Any], at_once: int | None = None) -> Iterator[Any]:
        """What the function ``setup(shared)`` returns for every item, in the order of the items, as they are asked for.

        ``setup`` is called once on every device or worker: it moves there what all parts share, and compiles. Both it and its
        function may run in threads and processes of their own, so they enter ``float64`` themselves. ``shared``, items and results
        can be pickled: arrays in them are NumPy's.

        ``at_once`` is how many items may run at the same time on one device; None leaves that to the engine.
        """
