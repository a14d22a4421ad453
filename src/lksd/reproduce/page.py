"""One HTML page of a whole study."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from .._storage import write_whole
from .._text import Table
from ..report.page import inline_svg
from ..report.rendering import render_page
from .experiment import Experiment
from .figures import draw, is_grid
from .show import cells, side_by_side, summary
from .store import Store

CURVES = "Rates with intervals; open circles are published. Dashed: the level."
HEAT = "Above the diagonal Q is the better model, so that a test should reject; on it and below it should not."


def write_study(experiments: Iterable[Experiment], store: Store, path: Path) -> None:
    """Every experiment of which the store has trials."""
    parts = [part for experiment in experiments if (part := section(experiment, store)) is not None]
    if not parts:
        raise ValueError(f"report: the store {str(store.path)!r} has no trials yet. Run an experiment first.")
    versions = [(name, number) for made in store.versions() for name, number in json.loads(made).items()]
    page = render_page(
        "reproduction.html",
        parts=parts,
        store=store.path.name,
        versions=Table(("package", "version"), list(dict.fromkeys(versions)), left=(0, 1)),
    )
    write_whole(path, page)


def section(experiment: Experiment, store: Store) -> dict[str, Any] | None:
    found = cells(experiment, store)
    if not found:
        return None
    return {
        "name": experiment.name,
        "title": experiment.title,
        "aliases": ", ".join(experiment.aliases),
        "summary": summary(found),
        "picture": inline_svg(lambda: draw(experiment, found), experiment.title),
        "caption": HEAT if is_grid(experiment) else CURVES,
        "table": side_by_side(experiment, found),
    }
