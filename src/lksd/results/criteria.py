"""What every criterion of a comparison says, and every hypothesis of one, as tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._text import Table, number, pvalue_cell
from .mmd import MMDResult

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


def hypotheses_table(result: ComparisonResult) -> Table:
    """The kernels and operators that were tested together, and the MMD beside them."""
    rows = []
    for test in result.every_test:
        role, reverse = test.direction, test.pvalue_reverse
        better = "withheld" if result.withheld else "" if role is None else result.name(role)
        pvalues = pvalue_cell(test.pvalue), "" if reverse is None else pvalue_cell(reverse)
        operator = "MMD" if isinstance(test, MMDResult) else test.operator  # type: ignore[attr-defined]
        rows.append((f"{test.statistic:.3f}", *pvalues, better, operator, test.kernel))
    header = ("T", "adjusted p", "reverse p", "better", "operator", "kernel")
    return Table(header, rows, left=(3, 4, 5))
