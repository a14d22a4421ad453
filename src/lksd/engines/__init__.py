"""Where the parts of a computation run: in this process, on all its devices, or on a Dask cluster;
what an engine is; and the line that shows how far the work is.
"""

from __future__ import annotations

import abc
import itertools
import sys
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar, copy_context
from functools import partial
from queue import SimpleQueue
from typing import Any

import jax

from .._jax import cores, device_memory, devices

AHEAD = 2  # items for each thread that are running or finished before they are asked for
OVERLAPPING = 2  # items at a time on an accelerator, so that one computes while the other is read
DELAY = 2.0  # seconds of work after which the line appears
_wanted: ContextVar[bool | None] = ContextVar("progress", default=None)
EXPECTED = (
    'engine: expected None, "dask", the address of a scheduler such as "tcp://host:8786", '
    "or a dask.distributed.Client"
)


class EngineError(ConnectionError, ValueError):
    """A cluster that does not answer, does not fit, or lost its workers."""


class Engine(abc.ABC):
    """Runs the parts of a computation; where they run changes the time they take, never
    the digits.
    """

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
        """The bytes of one accelerator that JAX may use there; None for processors, or where the
        device does not say.
        """

    @abc.abstractmethod
    def map(
        self,
        setup: Callable[[Any], Callable],
        shared: Any,
        items: Iterable[Any],
        at_once: int | None = None,
    ) -> Iterator[Any]:
        """What the function ``setup(shared)`` returns for every item, in the order of the items, as
        they are asked for.

        ``setup`` is called once on every device or worker: it moves there what all parts share, and
        compiles. Both it and its function may run in threads and processes of their own, so they
        enter ``float64`` themselves. ``shared``, items and results can be pickled: arrays in them
        are NumPy's.

        ``at_once`` is how many items may run at the same time on one device; None leaves that to
        the engine.
        """


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

    def map(
        self,
        setup: Callable[[Any], Callable],
        shared: Any,
        items: Iterable[Any],
        at_once: int | None = None,
    ) -> Iterator[Any]:
        each = at_once or (threads_each() if self.backend == "cpu" else OVERLAPPING)
        free: SimpleQueue[Any] = SimpleQueue()
        for device in devices() * each:
            free.put(device)
        threads = free.qsize()
        preparing: dict[Any, Any] = defaultdict(threading.Lock)
        ready: dict[Any, Callable] = {}

        def run(item) -> Any:
            device = free.get()
            try:
                with jax.default_device(device):
                    # by the first item that a device is given, while the others wait
                    with preparing[device]:
                        if device not in ready:
                            ready[device] = setup(shared)
                    return ready[device](item)
            finally:
                free.put(device)

        with ThreadPoolExecutor(threads) as pool:
            yield from in_order(
                lambda item: pool.submit(copy_context().run, run, item),
                items,
                lambda: AHEAD * threads,
            )


def threads_each() -> int:
    """Threads for each of the devices that share the processors."""
    return max(1, len(cores()) // len(devices()))


def in_order(
    submit: Callable[[Any], Future], items: Iterable[Any], limit: Callable[[], int]
) -> Iterator[Any]:
    """The results of submitted items in their order, with no more than ``limit()`` of them
    submitted and not yet asked for.
    """
    waiting: deque[Future] = deque()
    left = iter(items)
    try:
        while True:
            waiting.extend(map(submit, itertools.islice(left, max(limit() - len(waiting), 0))))
            if not waiting:
                return
            yield waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()


@contextmanager
def opened(engine: Any, progress: bool | None = None) -> Iterator[Engine]:
    """The engine for the time of a call; what is started or connected here is closed after it.

    None is this process, "dask" a worker for each of its processors, an address such as
    "tcp://host:8786" or "tls://host:8786" a cluster's scheduler; a ``dask.distributed.Client`` and
    an engine are used as they are and stay open. ``progress`` says whether a line shows how far the
    work is; None means on a terminal and in a notebook.
    """
    with ExitStack() as stack:
        stack.callback(_wanted.reset, _wanted.set(_wanted.get() if progress is None else progress))
        if engine is None or isinstance(engine, Engine):
            yield engine or Local()
            return
        named = isinstance(engine, str)
        if named and engine != "dask" and "://" not in engine:
            raise ValueError(f"{EXPECTED}; got {engine!r}. Check the spelling.")
        if not named and not any(
            kind.__module__.startswith("distributed.") for kind in type(engine).__mro__
        ):
            raise TypeError(f"{EXPECTED}; got {engine!r}. Leave it out to use this process.")
        try:
            from . import cluster
        except ImportError as error:
            raise ImportError(
                "engine: Dask is not installed. Run: pip install 'lksd[dask]'"
            ) from error
        if engine == "dask":
            yield cluster.Dask(lambda: stack.enter_context(cluster.own_cluster()), own=True)
        else:
            client = (
                stack.enter_context(cluster.connected(engine))
                if named
                else cluster.check_client(engine)
            )
            yield cluster.Dask(lambda: client)


# Progress ------------------------------------------------------------------------------------


@contextmanager
def track(label: str, total: int, delay: float | None = None) -> Iterator[Callable[[int], None]]:
    """Gives a function to call with the amount of work done; the line appears after a ``delay`` in
    seconds, by default ``DELAY``.
    """
    wanted, shell = (
        _wanted.get(),
        sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None,
    )
    notebook = hasattr(shell, "kernel")  # of a notebook's kernel
    if not (notebook or sys.stderr.isatty() if wanted is None else wanted):
        yield lambda amount: None
        return
    line = NotebookLine(label, total) if notebook else TerminalLine(label, total)
    timer = threading.Timer(DELAY if delay is None else delay, line.start)
    timer.daemon = True
    timer.start()
    try:
        yield line.advance
    finally:
        timer.cancel()
        timer.join()
        line.stop()


class TerminalLine:
    """A bar with the time left, gone when the work is done."""

    def __init__(self, label: str, total: int):
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )

        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.percentage:3.0f} %"),
            TimeElapsedColumn(),
        )
        console = Console(stderr=True, force_terminal=True)
        self.bar = Progress(
            *columns, TextColumn("left"), TimeRemainingColumn(), console=console, transient=True
        )
        self.start, self.stop = self.bar.start, self.bar.stop
        self.advance = partial(self.bar.advance, self.bar.add_task(label, total=total))


class NotebookLine:
    """The same as an output of the cell that runs."""

    def __init__(self, label: str, total: int):
        self.label, self.total, self.done, self.began = label, total, 0, time.monotonic()
        self.handle: Any = None

    def start(self) -> None:
        from IPython.display import display

        self.handle = display(self.bundle(), raw=True, display_id=True)

    def advance(self, amount: int) -> None:
        self.done = min(self.done + amount, self.total)
        if self.handle is not None:
            self.handle.update(self.bundle(), raw=True)

    def stop(self) -> None:
        if self.handle is not None:
            self.handle.update({"text/plain": "", "text/html": ""}, raw=True)

    def bundle(self) -> dict[str, str]:
        elapsed = time.monotonic() - self.began
        left = f", {elapsed * (self.total - self.done) / self.done:.0f} s left" if self.done else ""
        text = f"{self.label} {self.done / self.total:.0%}, {elapsed:.0f} s{left}"
        return {
            "text/plain": text,
            "text/html": f'<progress max="{self.total}" value="{self.done}"></progress> {text}',
        }
