"""This process: all its devices, with some threads each."""

from __future__ import annotations

import itertools
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from functools import cached_property
from queue import SimpleQueue
from typing import Any

import jax

from .._cores import cores
from .._device import device_memory, devices
from .base import Engine

AHEAD = 2  # items for each thread that are running or finished before they are asked for
OVERLAPPING = 2  # items at a time on an accelerator, so that one computes while the other is read


class Local(Engine):
    """The devices of this process, or the one that ``jax.default_device`` names."""

    @property
    def workers(self) -> int:
        return len(devices()) * (threads_each() if self.backend == "cpu" else 1)

    @property
    def backend(self) -> str:
        return devices()[0].platform

    @property
    def memory(self) -> int | None:
        return device_memory()

    def map(self, setup: Callable[[Any], Callable], shared: Any, items: Iterable[Any], at_once: int | None = None) -> Iterator[Any]:
        each = at_once or (threads_each() if self.backend == "cpu" else OVERLAPPING)
        free: SimpleQueue[Place] = SimpleQueue()
        for place in [Place(device, setup, shared) for device in devices()] * each:
            free.put(place)
        threads = free.qsize()

        def run(item) -> Any:
            place = free.get()
            try:
                return place.run(item)
            finally:
                free.put(place)

        with ThreadPoolExecutor(threads) as pool:
            yield from in_order(lambda item: pool.submit(copy_context().run, run, item), items, lambda: AHEAD * threads)


class Place:
    """A device, made ready by the first item that it is given."""

    def __init__(self, device: Any, setup: Callable[[Any], Callable], shared: Any):
        self.device, self.setup, self.shared = device, setup, shared
        self.preparing = threading.Lock()

    @cached_property
    def function(self) -> Callable:
        return self.setup(self.shared)

    def run(self, item: Any) -> Any:
        with jax.default_device(self.device):
            with self.preparing:  # by one thread, while the others wait
                function = self.function
            return function(item)


def threads_each() -> int:
    """Threads for each of the devices that share the processors."""
    return max(1, len(cores()) // len(devices()))


def in_order(submit: Callable[[Any], Future], items: Iterable[Any], limit: Callable[[], int]) -> Iterator[Any]:
    """The results of submitted items in their order, with no more than ``limit()`` of them submitted and not yet asked for."""
    waiting: deque[Future] = deque()
    left = iter(items)
    try:
        while True:
            waiting.extend(submit(item) for item in itertools.islice(left, max(limit() - len(waiting), 0)))
            if not waiting:
                return
            yield waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()
