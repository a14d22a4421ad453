"""The templates of this folder; whatever is put into them is escaped."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from typing import TYPE_CHECKING, Any

from .._text import Table, visible

if TYPE_CHECKING:
    from ..results.base import TestResult
    from ..scores import ScoreEstimate

LONGEST = 2_000  # characters of a text of the user's


@cache
def environment():
    from jinja2 import Environment, PackageLoader, StrictUndefined

    def finalize(value: Any) -> Any:
        return value if hasattr(value, "__html__") or not isinstance(value, str) else clip(value)

    return Environment(
        loader=PackageLoader("lksd.report"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=finalize,
    )


def clip(text: str, longest: int = LONGEST) -> str:
    """Text as it may stand in a page: control characters visible, and no longer than
    can be read.
    """
    text = "\n".join(visible(line) for line in str(text).split("\n"))
    return text if len(text) <= longest else f"{text[:longest]}... ({len(text):,} characters)"


def render(template: str, **parts) -> str:
    return environment().get_template(template).render(**parts)


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
        "fragment.html",
        sentence=str(scores).split("\n")[0],
        question="",
        summary=scores.summary,
        caption="",
        details=str(scores),
    )


def render_page(template: str, **parts) -> str:
    """A whole page: with the style sheet, and the script that sorts tables, the only one that its
    policy allows to run.
    """
    script = source("sort.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return render(
        template, style=source("style.css"), script=script, script_hash=f"sha256-{digest}", **parts
    )


def source(name: str):
    """A file of the templates as it is, such as the style sheet."""
    from markupsafe import Markup

    env = environment()
    return Markup(env.loader.get_source(env, name)[0])


def pairs(header: tuple[str, str], values: dict[str, Any]) -> Table:
    """A table of names and values."""
    return Table(header, [(name, str(value)) for name, value in values.items()], left=(0, 1))
