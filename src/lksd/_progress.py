"""One line on a terminal or in a notebook for work that takes longer than two seconds; nothing
elsewhere.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any

DELAY = 2.0  # seconds
_wanted: ContextVar[bool | None] = ContextVar("progress", default=None)


@contextmanager
def progress_wanted(progress: bool | None) -> Iterator[None]:
    """None shows the line on a terminal and in a notebook only; True always, False never."""
    if progress not in (None, True, False):
        raise TypeError(
            f"progress: expected True, False or None; got {progress!r}. None shows a line on a "
            "terminal only."
        )
    token = _wanted.set(_wanted.get() if progress is None else progress)
    try:
        yield
    finally:
        _wanted.reset(token)


@contextmanager
def track(label: str, total: int) -> Iterator[Callable[[int], None]]:
    """Gives a function to call with the amount of work done; the line appears after ``DELAY``
    seconds.
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
    timer = threading.Timer(DELAY, line.start)
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
