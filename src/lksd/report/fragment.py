"""Results as a part of a page, for notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .rendering import render

if TYPE_CHECKING:
    from ..results.base import TestResult
    from ..scores import ScoreEstimate


def result_fragment(result: TestResult) -> str:
    """The verdict, the table, and below it what the result prints."""
    return render(
        "fragment.html",
        sentence=result.sentence,
        question=result.question,
        summary=result.summary,
        caption=f"n = {result.n}",
        details=str(result),
    )


def scores_fragment(scores: ScoreEstimate) -> str:
    """How the scores were made, and their quality as a table."""
    return render(
        "fragment.html", sentence=str(scores).split("\n")[0], question="", summary=scores.summary, caption="", details=str(scores)
    )
