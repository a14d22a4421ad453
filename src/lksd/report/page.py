"""The report: one HTML file that needs nothing else."""

from __future__ import annotations

import io
import os
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._storage import write_whole
from .._text import Table, number, pvalue_cell, rhat_text
from ..results.details import NOISY, SHIFTED, measure_of
from . import plots
from .observations import check_observations, deciding
from .rendering import clip, pairs, render_page

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..results.base import TestResult
    from ..results.comparison import ComparisonResult
    from ..results.ranking import RankResult

LONGEST_NAME = 200
LISTED = 50  # rows of the sortable tables
LARGEST_GRID = 30  # models whose p-values are shown pair by pair
# The plots' own colours become those of the page, so that they follow its dark and print modes.
VARIABLES = {
    plots.INK: "var(--ink)",
    plots.ACCENT: "var(--accent)",
    plots.WARM: "var(--warm)",
    plots.FAINT: "var(--faint)",
    plots.SHADE: "var(--shade)",
}

CAPTIONS = {"ksd": "Squared kernel Stein discrepancies", "log": "Mean log losses"}
MEANINGS = {
    "log": "minus the logarithm of its density there; the difference of the means is that of two "
    "Kullback-Leibler divergences to the data's distribution",
    "fisher": "the squared length of its score plus twice the divergence of the score, which needs "
    "no normalising constant; its mean is smallest for the model whose score is nearest to that of "
    "the data's distribution",
    "conditional": "minus the sum of the logarithms of the probabilities of each of its parts "
    "given all the others, which needs no normalising constant",
    "loss": "as it was given",
}
RANKED = {"ksd": "squared kernel Stein discrepancy"}


def write_report(result: ComparisonResult, path: str | Path, observations) -> None:
    """Write the page; a file that is there already is replaced only once the new one is whole."""
    path = check_path(path)
    write_whole(path, report_page(result, observations))


def write_ranking(result: RankResult, path: str | Path, title: str) -> None:
    """The page of a ranking."""
    path = check_path(path)
    write_whole(path, ranking_page(result, title))


def ranking_page(result: RankResult, title: str) -> str:
    names, columns = result.names[:LARGEST_GRID], ("is worse than", *result.names[:LARGEST_GRID])
    rows = [
        (name, *("" if i == j else pvalue_cell(result.pvalues[i, j]) for j in range(len(names))))
        for i, name in enumerate(names)
    ]
    return render_page(
        "ranking.html",
        result=result,
        title=clip(str(title), LONGEST_NAME),
        measure=RANKED.get(result.criterion, measure_of(result.criterion)),
        measures={one.criterion: RANKED.get(one.criterion, one.criterion) for one in result.beside},
        meaning=MEANINGS.get(result.criterion, "what its criterion says of it"),
        forest=draw(
            plots.plot_ranking,
            result,
            "Forest plot of the differences to the best",
            height=1.2 + 0.26 * len(result.names),
        ),
        pairs=Table(columns, rows),
        left_out=len(result.names) - len(names),
        settings=pairs(("option", "value"), result.settings),
        versions=pairs(("package", "version"), result.versions),
    )


def check_path(path: str | Path) -> Path:
    """A name for a report, in a folder where it can be written."""
    path = Path(path)
    if path.suffix.lower() not in (".html", ".htm"):
        raise ValueError(
            f"report: expected a name that ends in .html; got {str(path)!r}. Name the report so."
        )
    if not path.parent.is_dir():
        raise ValueError(
            f"report: expected a folder that exists; {str(path.parent)!r} does not. Create it "
            "first."
        )
    if path.is_dir() or not os.access(path.parent, os.W_OK):
        raise ValueError(
            f"report: expected a file that can be written; {str(path)!r} cannot. Choose another."
        )
    return path


def report_page(result: ComparisonResult, observations=None) -> str:
    """The report as text."""
    if observations is not None:
        check_observations(observations, result.n, result.kept)
    result = result.with_names([clip(name, LONGEST_NAME) for name in result.names])
    (p, q), two_sided = result.names, result.alternative == "two-sided"
    settled = result.standard_error > 0 and result.required_n(0.8) < float("inf")
    return render_page(
        "report.html",
        result=result,
        question=f"Which of {p} and {q} fits the data better?"
        if two_sided
        else f"Does {q} fit the data better than {p}?",
        hypothesis=f"{result.question}.",
        measure=CAPTIONS.get(result.criterion, result.measure.capitalize()),
        meaning=MEANINGS.get(result.criterion, "what its criterion says of it"),
        pvalue=result.pvalue_line,
        plots={
            "comparison": draw(
                plots.plot_comparison,
                result,
                "Forest plot of both discrepancies and their difference",
            ),
            "null": result.standard_error > 0
            and draw(plots.plot_null, result, "The difference over its null distribution"),
            "contributions": draw(
                plots.plot_contributions, result, "What each observation adds to the difference"
            ),
            "words": result.words is not None
            and draw(plots.plot_words, result, "What adds most to the difference"),
            "diagnostics": result.diagnostics is not None
            and result.diagnostics.rhats is not None
            and draw(plots.plot_diagnostics, result, "Histograms of R-hat and ESS", 2),
            "power": settled and draw(plots.plot_power, result, "Power against the sample size"),
        },
        for_q=deciding(result, observations, 1),
        for_p=deciding(result, observations, -1),
        contributions=contributions_table(result),
        words=words_table(result),
        quality=quality_table(result),
        advice=advice(result),
        settings=pairs(("option", "value"), {"n": result.n} | result.settings),
        versions=pairs(("package", "version"), result.versions),
    )


def contributions_table(result: ComparisonResult) -> Table:
    """The observations with the largest parts, with their labels where they have some."""
    p, q = result.names
    rows = [
        (
            str(result.row(i)),
            number(result.contributions[i]),
            q if result.contributions[i] > 0 else p,
            result.label(i),
        )
        for i in result.deciding(LISTED)
    ]
    header = ("observation", "adds to P - Q", "favours", "label")
    columns = 3 if result.labels is None else 4
    return Table(header[:columns], [row[:columns] for row in rows], left=(2, 3))


def words_table(result: ComparisonResult) -> Table | None:
    if result.words is None:
        return None
    p, q = result.names
    rows = [(word, number(part), q if part > 0 else p) for word, part in result.words.top(LISTED)]
    return Table((result.words.kinds[1], "adds to P - Q", "favours"), rows, left=(0, 2))


def quality_table(result: ComparisonResult) -> Table | None:
    quality, (p, q) = result.diagnostics, result.names
    if quality is None:
        return None
    rows = {f"scores of {p}": quality.method_p, f"scores of {q}": quality.method_q}
    if quality.rhat is not None and quality.ess is not None:
        rows |= {
            "largest R-hat": rhat_text(quality.rhat),
            "smallest effective sample size": f"{quality.ess:.0f}",
            "divergences": str(quality.divergences),
        }
    if quality.noise_share is not None:
        rows["share of MCMC error in the variance of the difference"] = f"{quality.noise_share:.2%}"
    if quality.start_shift is not None:
        rows["largest shift of T by the chains' starting points"] = f"{quality.start_shift:.2f}"
    return pairs(("", ""), rows)


def advice(result: ComparisonResult) -> str:
    """Whether the chains can be trusted, in words."""
    quality = result.diagnostics
    if quality is None or quality.rhats is None:
        return ""
    if quality.unconverged:
        said = "; ".join(str(one) for one in quality.unconverged)
        return f"{said[0].upper()}{said[1:]}."
    if (quality.start_shift or 0.0) > SHIFTED:
        return (
            "Chains that started at different points differ: T moves by "
            f"{quality.start_shift:.2f}. A longer warm-up would help."
        )
    if (quality.noise_share or 0.0) > NOISY:
        return (
            "MCMC error accounts for much of the variance of the difference: more draws would "
            "sharpen the test."
        )
    return "The chains have mixed well enough for this test."


def draw(
    plot: Callable,
    result: TestResult,
    title: str,
    columns: int = 1,
    height: float = 2.6,
):
    """A plot of a result for the page."""
    from matplotlib.figure import Figure

    def make() -> Figure:
        figure = Figure(figsize=(6.4, height), layout="constrained")
        plot(result, figure.subplots(1, columns))
        return figure

    return inline_svg(make, title)


def inline_svg(make: Callable[[], Figure], title: str):
    """A figure as inline SVG in the colours of the page, with a title for those who do
    not see it.
    """
    import matplotlib
    from markupsafe import Markup, escape

    settings: Any = {
        "svg.fonttype": "none",
        "svg.hashsalt": title,
        "font.family": "sans-serif",
        "text.color": plots.INK,
    }
    settings |= {
        "axes.labelcolor": plots.INK,
        "axes.titlecolor": plots.INK,
        "axes.edgecolor": plots.FAINT,
    }
    file = io.StringIO()
    with matplotlib.rc_context(settings), warnings.catch_warnings():
        # the browser has the fonts that matplotlib lacks
        warnings.filterwarnings("ignore", message="Glyph")
        make().savefig(file, format="svg", transparent=True, metadata={"Date": None})
    text = file.getvalue()
    text = re.sub(r"<metadata>.*?</metadata>", "", text[text.index("<svg") :], flags=re.DOTALL)
    for color, variable in VARIABLES.items():
        text = text.replace(color, variable)
    return Markup(text.replace("<svg", f'<svg role="img" aria-label="{escape(title)}"', 1))
