"""Where a command begins and ends: errors as one sentence, exit codes, warnings as lines."""

from __future__ import annotations

import dis
import os
import sys
import threading
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .._stop import stop_at_interrupts
from .._text import PACKAGE, line_of, reason_of, visible

DONE, INTERNAL, BAD_INPUT = 0, 1, 2
STACK = 256 * 2**20  # bytes; compilers recurse deeply, and a thread has less room than a program
LONGEST = 1_000  # characters of an error


def run() -> None:
    """The program ``lksd``: Ctrl-C ends it at once, also in the middle of a compiled program, which
    cannot be interrupted.
    """
    stop_at_interrupts()
    codes: list[int] = []
    threading.stack_size(STACK)
    work = threading.Thread(target=lambda: codes.append(main(sys.argv[1:])), daemon=True)
    work.start()
    while work.is_alive():
        work.join(0.2)
    sys.exit(codes[0] if codes else INTERNAL)


def main(arguments: Sequence[str]) -> int:
    """Run one command; the exit code is 0 (done), 1 (internal error) or 2 (bad input)."""
    if os.environ.get("LKSD_DEBUG"):
        return application(arguments)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = shown_warning
            return application(arguments)
    except BrokenPipeError:
        # what is left to be flushed has no reader
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except Exception as error:
        if hasattr(error, "format_message"):  # of typer: the arguments themselves
            if not error.format_message():  # no arguments at all: the help has been shown
                return DONE
            say(f"Error: {sentence(error.format_message())} See lksd --help.")
            return BAD_INPUT
        if line_of(error) is not None:  # raised in the code of a model or kernel
            say(
                f"Error: {sentence(f'your code fails: {reason_of(error)}')} Set LKSD_DEBUG=1 for "
                "the traceback."
            )
            return BAD_INPUT
        if concerns_input(error):
            say(f"Error: {sentence(str(error))}")
            return BAD_INPUT
        say(
            f"Internal error: {type(error).__name__}: {sentence(str(error))} Set LKSD_DEBUG=1 for "
            "the traceback."
        )
        return INTERNAL


def concerns_input(error: Exception) -> bool:
    """Whether it is about what the user gave: refused by a ``raise`` of this package, or a file."""
    if isinstance(error, OSError) or not isinstance(error, (ValueError, TypeError, ImportError)):
        return isinstance(error, OSError)
    last: Any = error.__traceback__
    while last.tb_next is not None:
        last = last.tb_next
    code = last.tb_frame.f_code
    if Path(code.co_filename).is_relative_to(PACKAGE):
        return code.co_code[last.tb_lasti] == dis.opmap["RAISE_VARARGS"]
    return False


def application(arguments: Sequence[str]) -> int:
    from .app import app

    return app(list(arguments), prog_name="lksd", standalone_mode=False) or DONE


def sentence(text: str) -> str:
    """One line that ends in a full stop and cannot act on the terminal."""
    text = visible(" ".join(text.split()))
    text = text if len(text) <= LONGEST else f"{text[:LONGEST]}..."
    return text if text.endswith((".", "!", "?")) else f"{text}."


def shown_warning(message, category, filename, lineno, file=None, line=None) -> None:
    say(f"Warning: {sentence(str(message))}")


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
