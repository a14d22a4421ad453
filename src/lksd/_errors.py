"""Errors that the user's own code raises while it is traced or run."""

from __future__ import annotations

import sysconfig
import traceback
from pathlib import Path

PACKAGE = Path(__file__).parent
INSTALLED = tuple(Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib", "platlib"))


def line_of(error: BaseException) -> str | None:
    """The file and line of the user's code in which an error was raised, or None where it was raised in this package."""
    found = None
    for frame in traceback.extract_tb(error.__traceback__):
        path = Path(frame.filename)
        if path.is_relative_to(PACKAGE):
            found = None
        elif path.is_absolute() and not any(path.is_relative_to(place) for place in INSTALLED):
            found = f"{path.name}:{frame.lineno}"
    return found


def reason_of(error: BaseException) -> str:
    """The first line of what an error says, its kind, and the user's line where there is one."""
    lines, where = str(error).splitlines(), line_of(error)
    kind = type(error).__name__ + (f" at {where}" if where else "")
    return f"{lines[0]}; {kind}" if lines and lines[0] else kind
