"""Published beside ours: rates with 95 % intervals, and whether they agree."""

from __future__ import annotations

from typing import NamedTuple

from scipy import stats

from .._text import Table
from .experiment import Experiment
from .published import TRIALS, published
from .store import Count, Store

CONFIDENCE = 0.95
SURPRISE = 0.01  # how improbable a difference must be to count as one
AGREES, BETTER, WORSE, NOTHING = "agrees", "better", "worse", ""
KINDS = {
    "mmd": "MMD",
    "mmdextra": "MMD-extra",
    "lksd": "LKSD",
    "lksdextra": "LKSD-extra",
    "stable": "LKSD-stable",
    "ksd": "KSD, exact scores",
    "calibrated": "LKSD, calibrated",
    "rb": "LKSD, Rao-Blackwell",
    "order": "the same, words in order",
    "ours": "ours",
    "together": "ours, and the MMD",
    "fisher": "Fisher score",
    "conditional": "conditional score",
    "log": "log score, exact",
    "jackknife": "LKSD, jackknife",
    "ustat": "LKSD, U-statistic variance",
    "vstat": "LKSD, V-statistic variance",
    "regularised": "LKSD, regularised",
}
KERNELS = {"eq": "EQ", "imq": "IMQ", "cov": "IMQ-cov"}


class Cell(NamedTuple):
    """Rejections of a method, beside what the paper has."""

    case: str
    method: str
    n: int
    alpha: float
    tally: Count
    low: float
    high: float
    published: float | None  # of the same method, or for ours the best that the paper has
    source: str
    mark: str

    @property
    def rate(self) -> float:
        return self.tally.rejected / self.tally.trials


def cells(experiment: Experiment, store: Store) -> list[Cell]:
    """Every cell that the store has of an experiment, in the experiment's order."""
    found, known = store.counts(experiment), published(experiment.name)
    made = []
    for (case, method, n, alpha), count in sorted(
        found.items(), key=lambda item: order(experiment, item[0])
    ):
        rate, source = reference(experiment, known, method, n, alpha)
        low, high = interval(count)
        null = experiment.null(case)
        made.append(
            Cell(
                case,
                method,
                n,
                alpha,
                count,
                low,
                high,
                rate,
                source,
                mark(count, rate, alpha, null),
            )
        )
    return made


def order(experiment: Experiment, key: tuple[str, str, int, float]) -> tuple:
    case, method, n, alpha = key
    methods = experiment.all_methods
    place = methods.index(method) if method in methods else len(methods)
    return -alpha, experiment.cases.index(case), place, n


def reference(
    experiment: Experiment, known: dict, method: str, n: int, alpha: float
) -> tuple[float | None, str]:
    """What a cell is compared with: the paper's own number, or for what we add the best that the
    paper has there.
    """
    if (method, n, alpha) in known:
        cell = known[method, n, alpha]
        return cell.rate, cell.source
    beside = [cell for (other, size, level), cell in known.items() if (size, level) == (n, alpha)]
    if method not in experiment.ours or not beside or experiment.null(""):
        return None, ""
    best = max(beside, key=lambda cell: cell.rate)
    return best.rate, f"{best.source}, {method_name(best.method)}"


def interval(count: Count) -> tuple[float, float]:
    """Clopper and Pearson's interval."""
    found = stats.binomtest(count.rejected, count.trials).proportion_ci(CONFIDENCE, method="exact")
    return float(found.low), float(found.high)


def mark(count: Count, rate: float | None, alpha: float, null: bool) -> str:
    """Under the null only a rate above the level is worse; elsewhere more power is better, as far
    as Fisher's test can tell.
    """
    if null:
        above = stats.binomtest(count.rejected, count.trials, alpha, alternative="greater").pvalue
        return WORSE if above < SURPRISE else AGREES
    if rate is None:
        return NOTHING
    theirs = round(rate * TRIALS)
    table = [[count.rejected, count.trials - count.rejected], [theirs, TRIALS - theirs]]
    if stats.fisher_exact(table).pvalue >= SURPRISE:
        return AGREES
    return BETTER if count.rejected / count.trials > rate else WORSE


def method_name(method: str) -> str:
    """A method as the paper would call it."""
    kind, _, kernel = method.partition("-")
    name = KINDS.get(kind, kind)
    return f"{name} ({KERNELS.get(kernel, kernel)})" if kernel else name


def side_by_side(experiment: Experiment, found: list[Cell]) -> Table:
    """A row for each cell."""
    with_cases = experiment.cases != ("",)
    header = (
        *((experiment.axis,) if with_cases else ()),
        "method",
        "level",
        "n",
        "published",
        "ours",
        "95 % interval",
        "trials",
        "",
    )
    rows = [
        (
            *((cell.case,) if with_cases else ()),
            method_name(cell.method),
            f"{cell.alpha:g}",
            str(cell.n),
            "" if cell.published is None else f"{cell.published:.3f}",
            f"{cell.rate:.3f}",
            f"[{cell.low:.3f}, {cell.high:.3f}]",
            str(cell.tally.trials),
            cell.mark,
        )
        for cell in found
    ]
    left = (0, 1, len(header) - 1) if with_cases else (0, len(header) - 1)
    return Table(header, rows, left)


def summary(found: list[Cell]) -> str:
    """One sentence on all cells."""
    counted = {name: sum(cell.mark == name for cell in found) for name in (AGREES, BETTER, WORSE)}
    trials = {cell.tally.trials for cell in found}
    many = f"{min(trials)} trials" if len(trials) == 1 else f"{min(trials)} to {max(trials)} trials"
    unknown = len(found) - sum(counted.values())
    if unknown == len(found):
        return f"{len(found)} cells of {many}, for which the paper has no numbers."
    if unknown:
        counted["not judged"] = unknown
    return (
        f"{len(found)} cells of {many}: "
        f"{', '.join(f'{number} {name}' for name, number in counted.items())}."
    )


def shown(experiment: Experiment, store: Store) -> str:
    """The side-by-side as text."""
    found = cells(experiment, store)
    if not found:
        raise ValueError(
            f"{experiment.name}: the store has no trial of it yet. Run: lksd reproduce "
            f"{experiment.name}"
        )
    notes = (
        ["For what the paper lacks (ours), published is the paper's best in the same cell."]
        if any(cell.method in experiment.ours and cell.published is not None for cell in found)
        else []
    )
    return "\n".join(
        [experiment.title, "", *side_by_side(experiment, found).lines(), "", summary(found), *notes]
    )
