"""Numbers and tables as plain text."""

from __future__ import annotations

from collections.abc import Sequence


def number(value: float) -> str:
    """Four significant digits."""
    return f"{value:.4g}"


def pvalue_text(pvalue: float) -> str:
    return "p < 0.0001" if pvalue < 1e-4 else f"p = {pvalue:.4f}" if pvalue < 0.1 else f"p = {pvalue:.2f}"


def table(header: Sequence[str], rows: Sequence[Sequence[str]], left: Sequence[int] = (0,)) -> list[str]:
    """Lines of a table with a rule under the header; the columns in ``left`` are flush left, numbers flush right."""
    widths = [max(len(row[column]) for row in (header, *rows)) for column in range(len(header))]

    def line(row: Sequence[str]) -> str:
        cells = (cell.ljust(widths[i]) if i in left else cell.rjust(widths[i]) for i, cell in enumerate(row))
        return "  ".join(cells).rstrip()

    lines = [line(row) for row in (header, *rows)]
    return [lines[0], "-" * max(map(len, lines)), *lines[1:]]
