"""Power curves and heat maps from the store, with the published points where the paper gives
numbers.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .._storage import write_whole
from ..report.plots import FAINT, INK, new_axes
from .experiment import Experiment
from .show import Cell, method_name

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = ("#0b6e99", "#b45309", "#3f7d20", "#8b3fa0", "#c02942", "#5d6b7a", "#1a936f", "#7a5c00")
KINDS = {
    "mmd": 1,
    "mmdextra": 7,
    "lksd": 0,
    "lksdextra": 6,
    "stable": 3,
    "ksd": 5,
    "calibrated": 2,
    "rb": 2,
    "order": 3,
    "ours": 4,
    "together": 7,
    "fisher": 6,
    "conditional": 6,
    "log": 7,
}
LINES = {"eq": ":", "cov": "--"}
WIDTH, HEIGHT, LEGEND = 4.2, 3.2, 1.8  # inches of a panel, and beside all of them
COLUMNS = 3
# the top of the axis where all rates and their intervals are below it, as under the null hypothesis
LOW = 0.3


def draw(experiment: Experiment, found: list[Cell]) -> Figure:
    """The experiment's figure: heat maps over two perturbations, curves otherwise."""
    from matplotlib.figure import Figure

    grid = is_grid(experiment)
    panels: dict[str, list[Cell]] = {}
    for cell in found:
        panels.setdefault(panel_title(experiment, cell), []).append(cell)
    columns = min(COLUMNS, len(panels))
    rows = -(-len(panels) // columns)
    width = HEIGHT * columns + 0.8 if grid else WIDTH * columns + LEGEND
    figure = Figure(figsize=(width, HEIGHT * rows + 0.6), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for ax in axes[len(panels) :]:
        ax.set_visible(False)
    top = LOW if all(max(cell.high, cell.published or 0.0) < LOW for cell in found) else 1.0
    for ax, (title, cells) in zip(axes, panels.items(), strict=False):
        (plot_heat if grid else plot_curves)(new_axes(ax), experiment, cells)
        if not grid:
            ax.set_ylim(-0.03 * top, 1.03 * top)
        ax.set_title(title, fontsize=9, loc="left")
    entries: dict[str, Any] = {}
    for ax in axes:
        entries |= {
            label: handle for handle, label in zip(*ax.get_legend_handles_labels(), strict=True)
        }
    if grid:
        bar = figure.colorbar(
            axes[0].collections[0], ax=axes.tolist(), label="rejection rate", shrink=0.5, aspect=30
        )
        bar.outline.set_visible(False)
        assert bar.solids is not None
        bar.solids.set_rasterized(False)  # no picture inside the drawing
    if entries:
        figure.legend(
            entries.values(),
            entries.keys(),
            loc="outside right center",
            frameon=False,
            fontsize=7,
            labelcolor=INK,
            handlelength=3,
        )
    figure.suptitle(experiment.title, fontsize=9, x=0.01, ha="left")
    return figure


def save_figure(
    experiment: Experiment, found: list[Cell], folder: Path, kinds: tuple[str, ...] = ("png", "svg")
) -> list[Path]:
    """The figure in a file of each kind."""
    import matplotlib

    figure = draw(experiment, found)
    paths = [folder / f"{experiment.name}.{kind}" for kind in kinds]
    settings: Any = {"svg.hashsalt": experiment.name}
    with matplotlib.rc_context(settings):
        for path in paths:
            content = io.BytesIO()
            metadata = {"Date": None} if path.suffix == ".svg" else None
            figure.savefig(content, format=path.suffix[1:], dpi=150, metadata=metadata)
            write_whole(path, content.getvalue())
    return paths


def is_grid(experiment: Experiment) -> bool:
    """Whether the cases are pairs of perturbations."""
    return experiment.axis.startswith("perturbations")


def is_chain(experiment: Experiment) -> bool:
    """Whether the cases are a warm-up and a number of draws."""
    return experiment.axis.startswith("warm-up")


def panel_title(experiment: Experiment, cell: Cell) -> str:
    """Heat maps by method and n; curves by level where n is the axis, else by n, and by the problem
    where there are two.
    """
    by = f"level {cell.alpha:g}" if experiment.cases == ("",) else f"n = {cell.n}"
    before = method_name(cell.method) if is_grid(experiment) else cell.case.rpartition(":")[0]
    return f"{before}, {by}" if before else by


def curve_of(experiment: Experiment, cell: Cell) -> tuple[str, float]:
    """The curve to which a cell belongs, and where it stands on the horizontal axis."""
    if experiment.cases == ("",):
        return method_name(cell.method), cell.n
    if is_chain(experiment):
        t, m = cell.case.rpartition(":")[2].split("/")
        return f"m = {m}", float(t)
    return method_name(cell.method), float(cell.case)


def style(experiment: Experiment, method: str, number: int) -> tuple[str, str, float]:
    """Colour, line and its width: a colour for each kind of method and a line for each kernel; else
    one colour after another.
    """
    kind, _, kernel = method.partition("-")
    if is_chain(experiment) or not {
        name.partition("-")[0] for name in experiment.all_methods
    } <= set(KINDS):
        return COLOURS[number % len(COLOURS)], "-", 1.2
    return COLOURS[KINDS[kind]], LINES.get(kernel, "-"), 2.2 if kind == "ours" else 1.2


def plot_curves(ax, experiment: Experiment, found: list[Cell]) -> None:
    curves: dict[str, list[tuple[float, Cell]]] = {}
    for cell in found:
        name, where = curve_of(experiment, cell)
        curves.setdefault(name, []).append((where, cell))
    for number, (name, points) in enumerate(curves.items()):
        points.sort(key=lambda point: point[0])
        x, rates = [where for where, _ in points], [cell.rate for _, cell in points]
        colour, line, width = style(experiment, points[0][1].method, number)
        errors = [
            [cell.rate - cell.low for _, cell in points],
            [cell.high - cell.rate for _, cell in points],
        ]
        ax.errorbar(
            x,
            rates,
            errors,
            color=colour,
            linestyle=line,
            marker=".",
            linewidth=width,
            elinewidth=0.6,
            label=name,
        )
        known = [
            (where, cell.published)
            for where, cell in points
            if cell.published is not None and cell.method in experiment.methods
        ]
        if known:
            ax.plot(
                *zip(*known, strict=True),
                color=colour,
                marker="o",
                markersize=7,
                fillstyle="none",
                linestyle="",
            )
    ax.axhline(found[0].alpha, color=FAINT, linewidth=1, linestyle="--", zorder=0)
    if any(cell.published is not None for cell in found):
        ax.plot(
            [],
            [],
            color=INK,
            marker="o",
            markersize=7,
            fillstyle="none",
            linestyle="",
            label="published",
        )
    values = [where for points in curves.values() for where, _ in points]
    if min(values) > 0 and max(values) / min(values) > 50:
        ax.set_xscale("log")
    axis = (
        "n"
        if experiment.cases == ("",)
        else "warm-up t"
        if is_chain(experiment)
        else experiment.axis
    )
    ax.set(xlabel=axis, ylabel="rejection rate")


def plot_heat(ax, experiment: Experiment, found: list[Cell]) -> None:
    grid = list(dict.fromkeys(case.split("/")[0] for case in experiment.cases))
    rates = np.full((len(grid), len(grid)), np.nan)
    for cell in found:
        p, q = cell.case.split("/")
        rates[grid.index(p), grid.index(q)] = cell.rate
    ax.pcolormesh(rates, vmin=0, vmax=1, cmap="viridis")
    middles = np.arange(len(grid)) + 0.5
    ax.set_xticks(middles, grid, fontsize=6, rotation=90)
    ax.set_yticks(middles, grid, fontsize=6)
    ax.set(aspect="equal", xlabel="perturbation of Q", ylabel="perturbation of P")
