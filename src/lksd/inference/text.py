"""Numbers and tables as plain text."""

from __future__ import annotations

from collections.abc import Sequence


def number(value: float) -> str:
    """Four significant digits."""
    return f"{value:.4g}"


def pvalue_text(pvalue: float) -> str:
    return "p < 0.0001" if pvalue < 1e-4 else f"p = {pvalue:.4f}" if pvalue < 0.1 else f"p = {pvalue:.2f}"


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a table, the first column to the left, the others to the right, a rule under the header."""
    widths = [max(len(row[column]) for row in (header, *rows)) for column in range(len(header))]

    def line(row: Sequence[str]) -> str:
        first, *rest = (cell.ljust(width) if not column else cell.rjust(width) for column, (cell, width) in enumerate(zip(row, widths, strict=True)))
        return "  ".join((first, *rest)).rstrip()

    return [line(header), "-" * len(line(header)), *(line(row) for row in rows)]
