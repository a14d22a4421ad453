"""Ctrl-C ends the program ``lksd`` at once and without a traceback, also while it is still being
imported.
"""

from __future__ import annotations

import os
import signal
import sys

STOPPED = 130
SHOW_CURSOR = "\r\x1b[2K\x1b[?25h"  # and clear the progress line
PROGRAM = ("lksd", "lksd.exe", "lksd-script.py")


def is_program() -> bool:
    """Whether this process is the command ``lksd`` or ``python -m lksd``, and not one that imports
    the library.
    """
    first = sys.argv[0] if getattr(sys, "argv", None) else ""
    return os.path.basename(first) in PROGRAM or (
        first == "-m" and ["-m", "lksd"] in [sys.orig_argv[i : i + 2] for i in range(1, 9)]
    )


def stop(*_) -> None:
    """Say what is left, and end: a compiled program cannot be interrupted in any other way."""
    keeps = sys.argv[1:2] == ["reproduce"] or any(
        one.startswith("--checkpoint") for one in sys.argv
    )
    left = (
        "What is done is kept; the same command goes on from there."
        if keeps
        else "Nothing was written."
    )
    os.write(2, f"{SHOW_CURSOR if os.isatty(2) else ''}Stopped. {left}\n".encode())
    os._exit(STOPPED)


def stop_at_interrupts() -> None:
    # and not ignored, as in the background
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, stop)


if is_program():
    stop_at_interrupts()
