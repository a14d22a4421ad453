"""Plots consume results and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..inference.results import ComparisonResult

INK, ACCENT, FAINT = "#1f2933", "#0b6e99", "#9aa5b1"


def plot_comparison(result: ComparisonResult, ax: Axes | None = None) -> Axes:
    """Both squared discrepancies and their difference, each with a 95 % interval."""
    import matplotlib.pyplot as plt

    if ax is None:
        _, ax = plt.subplots(figsize=(6.4, 2.4), layout="constrained")
    low, high = result.confidence_interval()
    rows = [
        ("P - Q", result.difference, low, high, ACCENT),
        ("Q", result.ksd_q, result.ksd_q - 1.96 * result.ksd_q_error, result.ksd_q + 1.96 * result.ksd_q_error, INK),
        ("P", result.ksd_p, result.ksd_p - 1.96 * result.ksd_p_error, result.ksd_p + 1.96 * result.ksd_p_error, INK),
    ]
    ax.axvline(0.0, color=FAINT, linewidth=1, linestyle="--", zorder=0)
    for height, (_, value, start, end, color) in enumerate(rows):
        ax.plot([start, end], [height, height], color=color, linewidth=2, solid_capstyle="round")
        ax.plot([value], [height], marker="o", color=color, markersize=7)
    ax.set_yticks(range(len(rows)), [name for name, *_ in rows])
    ax.set_ylim(-0.6, len(rows) - 0.4)
    ax.set_xlabel("squared kernel Stein discrepancy (smaller fits better)")
    ax.set_title(result.sentence, loc="left", fontsize=10)
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)
    ax.tick_params(axis="y", length=0)
    return ax
