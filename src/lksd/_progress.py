"""One line on a terminal for work that takes longer than two seconds; nothing elsewhere."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

DELAY = 2.0  # seconds
_wanted: ContextVar[bool | None] = ContextVar("progress", default=None)


@contextmanager
def progress_wanted(progress: bool | None) -> Iterator[None]:
    """None shows the line on a terminal only; True always, False never."""
    if progress not in (None, True, False):
        raise TypeError(f"progress: expected True, False or None; got {progress!r}. None shows a line on a terminal only.")
    token = _wanted.set(_wanted.get() if progress is None else progress)
    try:
        yield
    finally:
        _wanted.reset(token)


@contextmanager
def track(label: str, total: int) -> Iterator[Callable[[int], None]]:
    """Gives a function to call with the amount of work done; the line appears after ``DELAY`` seconds."""
    wanted = _wanted.get()
    if not (sys.stderr.isatty() if wanted is None else wanted):
        yield lambda amount: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    console = Console(stderr=True, force_terminal=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:3.0f} %"), TimeElapsedColumn())
    line = Progress(*columns, TextColumn("left"), TimeRemainingColumn(), console=console, transient=True)
    task = line.add_task(label, total=total)
    timer = threading.Timer(DELAY, line.start)
    timer.daemon = True
    timer.start()
    try:
        yield lambda amount: line.advance(task, amount)
    finally:
        timer.cancel()
        timer.join()
        line.stop()
