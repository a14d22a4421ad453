"""Numbers, tables and errors as plain text."""

from __future__ import annotations

import sysconfig
import traceback
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

PACKAGE = Path(__file__).parent
INSTALLED = tuple(Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib", "platlib"))
# control characters, marks of direction, line separators
UNSEEN = ("Cc", "Cf", "Co", "Cs", "Zl", "Zp")


def number(value: float) -> str:
    """Four significant digits."""
    return f"{value:.4g}"


def pvalue_cell(pvalue: float) -> str:
    return "<0.0001" if pvalue < 1e-4 else f"{pvalue:.4f}"


def pvalue_text(pvalue: float) -> str:
    return (
        "p < 0.0001"
        if pvalue < 1e-4
        else f"p = {pvalue:.4f}"
        if pvalue < 0.1
        else f"p = {pvalue:.2f}"
    )


def visible(text: str) -> str:
    """The text in one line, with every character that would act instead of being read as its
    escape.
    """
    return "".join(
        char.encode("unicode_escape").decode() if unicodedata.category(char) in UNSEEN else char
        for char in str(text)
    )


class Table(NamedTuple):
    """Cells as text; the columns in ``left`` are flush left, numbers flush right."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    left: Sequence[int] = (0,)

    def lines(self) -> list[str]:
        """The table as text, with a rule under the header."""
        rows = [[visible(cell) for cell in row] for row in (self.header, *self.rows)]
        widths = [max(len(row[column]) for row in rows) for column in range(len(self.header))]

        def line(row: Sequence[str]) -> str:
            cells = (
                cell.ljust(widths[i]) if i in self.left else cell.rjust(widths[i])
                for i, cell in enumerate(row)
            )
            return "  ".join(cells).rstrip()

        lines = [line(row) for row in rows]
        return [lines[0], "-" * max(map(len, lines)), *lines[1:]]


def rhat_text(rhat: float) -> str:
    """Three decimals say it all, and where chains never met a power of ten."""
    return f"{rhat:.3f}" if rhat < 1_000 else f"{rhat:.0e}"


def line_of(error: BaseException) -> str | None:
    """The file and line of the user's code in which an error was raised, or None where it was
    raised in this package.
    """
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
