"""What every criterion of a comparison says, as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._text import Table, number, pvalue_cell

if TYPE_CHECKING:
    from .comparison import ComparisonResult


def criteria_table(result: ComparisonResult) -> Table:
    """To be read, the criterion that decides first."""
    rows = []
    for one in (result, *result.beside):
        low, high = one.confidence_interval()
        better = "withheld" if one.withheld else one.favours or ""
        cells = (number(one.difference), number(one.standard_error))
        interval = f"[{number(low)}, {number(high)}]"
        rows.append((one.criterion, *cells, interval, pvalue_cell(one.smaller_pvalue), better))
    header = ("criterion", result.subtraction, "std. error", "95 % interval", "p", "better")
    return Table(header, rows, left=(0, 5))


def criteria_frame(result: ComparisonResult):
    """As a pandas data frame."""
    try:
        import pandas
    except ImportError as error:
        raise ImportError(
            "table needs pandas, which is not installed. Run: pip install pandas"
        ) from error
    rows = []
    for one in (result, *result.beside):
        low, high = one.confidence_interval()
        share = None if one.diagnostics is None else one.diagnostics.noise_share
        rows.append(
            {
                "criterion": one.criterion,
                "difference": one.difference,
                "standard_error": one.standard_error,
                "lower": low,
                "upper": high,
                "pvalue": one.smaller_pvalue,
                "mcmc_share": 0.0 if share is None else share,
                "favours": one.favours,
            }
        )
    return pandas.DataFrame(rows).set_index("criterion")
