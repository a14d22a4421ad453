"""Plots consume results and nothing else."""

from __future__ import annotations

import math
import textwrap
from typing import TYPE_CHECKING

import numpy as np

from .._text import visible
from ..results.details import measure_of
from ..statistics.nulls import Bootstrap, Conservative, NullDistribution, Steadied

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..results.base import DifferenceResult
    from ..results.choice import Choice
    from ..results.comparison import ComparisonResult
    from ..results.ranking import RankResult

INK, ACCENT, WARM, FAINT, SHADE = "#1f2933", "#0b6e99", "#b45309", "#9aa5b1", "#d9e2ec"
LONGEST_NAME = 40  # characters of a model's name
LONGEST_TICK = 28  # of what stands beside an axis
LONGEST_LABEL = 24  # of an observation's
LABELLED = 3  # observations on each side whose labels are shown
POINTS = 400  # of a curve; more are not seen
WORDS = 8
GOOD_RHAT, GOOD_ESS = 1.01, 100.0


def new_figure(columns: int = 1, width: float = 6.4, height: float = 2.6, **options):
    """Axes of a figure of their own."""
    import matplotlib.pyplot as plt

    return plt.subplots(1, columns, figsize=(width, height), layout="constrained", **options)[1]


def new_axes(ax, height: float = 2.6, rows: bool = False) -> Axes:
    """The axes to draw on, without the lines that carry nothing; where the plot is made of
    ``rows``, also that at their left.
    """
    ax = new_figure(height=height) if ax is None else ax
    ax.spines[["top", "right", "left"] if rows else ["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(FAINT)
    ax.tick_params(colors=INK)
    if rows:
        ax.tick_params(axis="y", length=0)
    return ax


def escape_formulas(text: str) -> str:
    """Text that matplotlib does not read as a formula."""
    return visible(text).replace("$", r"\$")


def short_name(name: str, longest: int = LONGEST_NAME) -> str:
    """The name of a model, or a label, at a length that fits a plot."""
    return escape_formulas(name if len(name) <= longest else f"{name[: longest - 3]}...")


def in_lines(text: str, width: int) -> str:
    """The text in lines that fit a plot."""
    return "\n".join(textwrap.wrap(text, width))


def difference_of(result: ComparisonResult) -> str:
    return " - ".join(map(short_name, result.names))


def headline(result: ComparisonResult) -> str:
    """The sentence up to a colon that is not in a name."""
    said = result.with_names([short_name(name) for name in result.names]).sentence
    said = f"{said.removesuffix('.').partition('; ')[0]}." if result.beside else said
    if result.better_role is None:
        said = said.split(": a new sample" if ": a new sample" in said else ":")[0]
    return in_lines(said.removesuffix(".") + ".", max(60, 95 - max(map(len, result.names))))


def plot_comparison(result: ComparisonResult, ax: Axes | None = None) -> Axes:
    """Both squared discrepancies and their difference, each with a 95 % interval; of additive
    criteria, whose level says nothing, the differences by each in their standard errors.
    """
    ax, (p, q) = new_axes(ax, 2.4, rows=True), result.names
    own, others = result.estimates
    if result.criterion == "ksd":
        label = "squared kernel Stein discrepancy (smaller fits better)"
        name = in_lines(difference_of(result), LONGEST_TICK)
        rows = [(name, result.difference, *result.confidence_interval(), ACCENT)]
        for name, ksd, error in ((q, *others), (p, *own)):
            ends = ksd - 1.96 * error, ksd + 1.96 * error
            rows.append((short_name(name, LONGEST_TICK), ksd, *ends, INK))
    else:
        label = f"difference in standard errors (positive where {short_name(q)} fits better)"
        rows = [
            (
                short_name(one.measure, LONGEST_TICK),
                *in_standard_errors(one),
                ACCENT if one is result else INK,
            )
            for one in (*result.beside[::-1], result)
        ]
    ax.axvline(0.0, color=FAINT, linewidth=1, linestyle="--", zorder=0)
    for height, (_, value, start, end, color) in enumerate(rows):
        if math.isfinite(start) and math.isfinite(end):
            ax.plot(
                [start, end], [height, height], color=color, linewidth=2, solid_capstyle="round"
            )
        ax.plot([value], [height], marker="o", color=color, markersize=7)
    ax.set_yticks(range(len(rows)), [name for name, *_ in rows])
    ax.set(
        ylim=(-0.6, len(rows) - 0.4),
        xlabel=label,
    )
    ax.set_title(headline(result), loc="left", fontsize=10)
    return ax


def in_standard_errors(result: DifferenceResult) -> tuple[float, float, float]:
    """A difference and the ends of its interval."""
    error = result.standard_error if result.standard_error > 0 else math.nan
    low, high = result.confidence_interval()
    return result.difference / error, low / error, high / error


def plot_ranking(result: RankResult, ax: Axes | None = None) -> Axes:
    """Each model's difference to the first, with its simultaneous interval; those in the confidence
    set are coloured.
    """
    count, kept = len(result.names), set(result.confidence_set)
    ax = new_axes(ax, 1.2 + 0.26 * count, rows=True)
    ends = [result.interval(name, result.names[0]) for name in result.names]
    finite = [end for pair in ends for end in pair if math.isfinite(end)]
    ax.axvline(result.margin, color=FAINT, linewidth=1, linestyle="--", zorder=0)
    for height, (name, (low, high)) in enumerate(zip(result.names, ends, strict=True)):
        color = ACCENT if name in kept else WARM
        if math.isfinite(low) and math.isfinite(high) and high > low:
            ax.plot([low, high], [height, height], color=color, linewidth=2, solid_capstyle="round")
        ax.plot([result.differences[height, 0]], [height], marker="o", color=color, markersize=6)
    for color, label in (
        (ACCENT, "not shown to be worse than another"),
        (WARM, "worse than another"),
    ):
        ax.plot([], [], marker="o", linestyle="", color=color, label=label)
    ax.set_yticks(
        range(count),
        [escape_formulas(name)[:LONGEST_NAME] for name in result.names],
        fontsize=8 if count > 12 else None,
    )
    pad = 0.05 * (max(finite) - min(finite) or 1.0)
    ax.set(ylim=(count - 0.4, -0.6), xlim=(min(finite) - pad, max(finite) + pad))
    ax.set_xlabel(
        f"{measure_of(result.criterion)} above that of the best, simultaneous "
        f"{1 - result.alpha:.0%} intervals"
    )
    ax.legend(
        frameon=False,
        fontsize=8,
        loc="lower center",
        bbox_to_anchor=(0.5, 1.0),
        ncols=2,
        labelcolor=INK,
    )
    return ax


def plot_choice(result: Choice, ax: Axes | None = None) -> Axes:
    """Each candidate's mean loss above that of the best, with its simultaneous interval; those in
    the confidence set are coloured.
    """
    ax, names = new_axes(ax, 3.0), result.candidates
    ranking, kept = result.ranking, set(result.confidence_set)
    above = [ranking.differences[ranking.position(name), 0] for name in names]
    ax.axhline(0.0, color=FAINT, linewidth=1, linestyle="--", zorder=0)
    ax.plot(range(len(names)), above, color=SHADE, linewidth=1, zorder=0)
    for place, (name, value) in enumerate(zip(names, above, strict=True)):
        color = ACCENT if name in kept else WARM
        low, high = ranking.interval(name, result.best)
        if math.isfinite(low) and math.isfinite(high) and high > low:
            ax.plot([place, place], [low, high], color=color, linewidth=2, solid_capstyle="round")
        ax.plot([place], [value], marker="o", color=color, markersize=8 if name in kept else 6)
    for color, label in ((ACCENT, "not ruled out"), (WARM, "ruled out")):
        ax.plot([], [], marker="o", linestyle="", color=color, label=label)
    crowded = max(map(len, result.short)) * len(names) > 60
    ax.set_xticks(
        range(len(names)),
        [short_name(name, LONGEST_TICK) for name in result.short],
        rotation=45 if crowded else 0,
        ha="right" if crowded else "center",
    )
    ax.set_xlabel(f"number of {result.noun}s" if result.noun else "candidate")
    ax.set_ylabel(f"{measure_of(result.criterion)}\nabove the best")
    ax.legend(
        frameon=False,
        fontsize=8,
        loc="lower right",
        bbox_to_anchor=(1.0, 1.0),
        ncols=2,
        labelcolor=INK,
    )
    return ax


def plot_null(result: ComparisonResult, ax: Axes | None = None) -> Axes:
    """The difference with its interval, over what it would be by chance if both models fitted
    equally well.
    """
    ax, error = new_axes(ax, rows=True), result.standard_error
    if not error > 0:
        raise ValueError(
            "plot_null: the difference has no standard error here, so there is no null "
            "distribution to show."
        )
    edges, heights = null_density(result.null)
    ax.stairs(
        heights / error,
        edges * error,
        fill=True,
        color=SHADE,
        label="by chance, if both fitted equally well",
    )
    observed, peak = result.statistic * error, heights.max() / error
    two_sided = result.alternative == "two-sided"
    tail = result.alpha / 2 if two_sided else result.alpha
    thresholds = [result.null.upper_quantile(tail)]
    if two_sided or not result.margin:  # the distance from a margin is that on the side of Q
        thresholds.append(result.null.lower_quantile(tail))
    for number, t in enumerate(thresholds):
        if math.isfinite(t):
            label = None if number else f"significant beyond (level {result.alpha:g})"
            ax.plot(
                [t * error] * 2, [0, peak], color=WARM, linewidth=1.2, linestyle="--", label=label
            )
    low, high = result.confidence_interval()
    if math.isfinite(low) and math.isfinite(high):
        ax.plot([low, high], [-0.08 * peak] * 2, color=ACCENT, linewidth=2, solid_capstyle="round")
    ax.plot(
        [observed],
        [-0.08 * peak],
        marker="o",
        markersize=7,
        color=ACCENT,
        linestyle="",
        label="observed, 95 % interval",
    )
    measure = "squared discrepancies" if result.criterion == "ksd" else f"the {result.measure}"
    label = in_lines(f"difference of {measure}, {difference_of(result)}", 80)
    ax.set(ylim=(-0.2 * peak, 1.75 * peak), yticks=[], xlabel=label)
    ax.legend(frameon=False, fontsize=8, loc="upper left", labelcolor=INK, handlelength=1.4)
    return ax


def null_density(null: NullDistribution) -> tuple[np.ndarray, np.ndarray]:
    """Edges and heights of the null density of T: its replicates where there are any, else its
    distribution function.
    """
    null = null.null if isinstance(null, Steadied) else null
    shown = null.corrected[0] if isinstance(null, Conservative) else null
    if isinstance(shown, Bootstrap):
        replicates = np.array(shown.replicates)
        heights, edges = np.histogram(replicates[np.abs(replicates) < 6], bins=40, density=True)
        return edges, heights
    edges = np.linspace(-4, 4, 121)
    return edges, np.maximum(np.diff([shown.lower(t) for t in edges]), 0) / np.diff(edges)


def plot_contributions(result: ComparisonResult, ax: Axes | None = None) -> Axes:
    """What each observation adds to the difference, sorted; where models are discrete, the words
    that add most.
    """
    if result.words is not None and ax is None:
        ax, beside = new_figure(2, 7.2, 2.8, width_ratios=(3, 2))
        plot_words(result, beside)
    ax = new_axes(ax)
    ordered = np.sort(result.contributions)
    where = np.unique(np.linspace(0, len(ordered) - 1, min(POINTS, len(ordered))).astype(int))
    for sign, color, name in ((1, ACCENT, result.names[1]), (-1, WARM, result.names[0])):
        side = np.where(sign * ordered[where] > 0, ordered[where], 0.0)
        ax.fill_between(where + 1, side, color=color, linewidth=0, label=f"for {short_name(name)}")
    ax.axhline(0.0, color=FAINT, linewidth=1)
    ax.set(xlabel="observations, sorted", ylabel=in_lines(f"adds to {difference_of(result)}", 36))
    for sign in (1, -1) if result.labels is not None else ():
        name_the_largest(result, ax, sign)
    ax.legend(frameon=False, fontsize=8, loc="upper left", labelcolor=INK)
    return ax


def name_the_largest(result: ComparisonResult, ax: Axes, sign: int) -> None:
    """Write the rows and labels of the observations that add most, or take most, across the axis
    from where they are drawn.
    """
    parts = sign * result.contributions
    order = [i for i in np.argsort(-parts, kind="stable")[:LABELLED] if parts[i] > 0]
    if order:
        text = "\n".join(
            f"{result.row(i)} {short_name(result.label(i), LONGEST_LABEL)}" for i in order
        )
        x, side, end = (result.n, "right", "top") if sign > 0 else (1, "left", "bottom")
        ax.annotate(
            text,
            (x, 0),
            (0, -4 * sign),
            textcoords="offset points",
            ha=side,
            va=end,
            fontsize=7,
            color=INK,
        )


def plot_words(result: ComparisonResult, ax: Axes) -> Axes:
    """The words (or values) that add most to the difference, or take most from it."""
    ax, words = new_axes(ax, rows=True), result.words
    top, kind = ([], "word") if words is None else (words.top(WORDS)[::-1], words.kinds[1])
    values = [value for _, value in top]
    ax.barh(
        range(len(top)),
        values,
        color=[ACCENT if value > 0 else WARM for value in values],
        height=0.7,
    )
    ax.set_yticks(range(len(top)), [escape_formulas(word)[:24] for word, _ in top], fontsize=8)
    ax.axvline(0.0, color=FAINT, linewidth=1)
    ax.locator_params(axis="x", nbins=3)
    ax.set_xlabel(in_lines(f"{kind}s: add to {difference_of(result)}", 80))
    return ax


def plot_diagnostics(result: ComparisonResult, axes=None):
    """How R-hat and the effective sample size are spread over the observations; dashed: what is
    usually asked for.
    """
    quality = result.diagnostics
    if quality is None or quality.rhats is None or quality.esses is None:
        raise ValueError(
            "plot_diagnostics: no chains were run for these scores, so there is nothing to show."
        )
    axes = new_figure(2, height=2.4) if axes is None else axes
    shown = (
        (quality.rhats, GOOD_RHAT, "R-hat", f"best below {GOOD_RHAT:g}"),
        (quality.esses, GOOD_ESS, "effective sample size", f"best above {GOOD_ESS:g}"),
    )
    for ax, (values, wanted, name, hint) in zip(axes, shown, strict=True):
        new_axes(ax)
        ax.hist(values[np.isfinite(values)], bins=30, color=ACCENT)
        ax.axvline(wanted, color=WARM, linestyle="--", linewidth=1.2)
        ax.set_title(hint, loc="right", fontsize=8, color=WARM)
        ax.set_xlabel(name)
        ax.locator_params(axis="x", nbins=5)
    axes[0].set_ylabel("observations")
    return axes


def plot_power(result: ComparisonResult, ax: Axes | None = None, power: float = 0.8) -> Axes:
    """The power of a new sample against its size, if the true difference equals the estimate, or an
    end of its interval.
    """
    wanted = result.required_n(power)
    if not math.isfinite(wanted):
        raise ValueError(
            "plot_power: no sample size rejects if the true difference equals the estimate, which "
            "is not positive; there is no curve to show."
        )
    ax = new_axes(ax)
    sizes = np.unique(
        np.geomspace(max(4, min(wanted, result.n) / 4), 2 * max(wanted, result.n), 120).astype(int)
    )
    ax.plot(sizes, [result.power(int(n)) for n in sizes], color=ACCENT, linewidth=2)
    ax.plot([wanted], [result.power(int(wanted))], marker="o", color=ACCENT, markersize=7)
    ax.annotate(
        f"{wanted:,.0f}",
        (wanted, power),
        xytext=(8, -12),
        textcoords="offset points",
        fontsize=9,
        color=INK,
    )
    ax.axhline(power, color=FAINT, linewidth=1, linestyle="--", zorder=0)
    ax.axvline(
        result.n,
        color=WARM,
        linewidth=1.2,
        linestyle="--",
        zorder=0,
        label=f"this sample, {result.n:,}",
    )
    ax.set(ylim=(0, 1.03), xlabel="new observations", ylabel="power")
    ax.legend(frameon=False, fontsize=8, loc="lower right", labelcolor=INK)
    return ax
