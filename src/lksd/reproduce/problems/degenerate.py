"""Close and identical models, where the U-statistic degenerates, with all variance estimators (Appendices C.4 and C.5)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ..experiment import Experiment, Outcome, Task, timed
from ..testing import Scored, run_tests
from . import ppca, topics

ESTIMATORS = ("jackknife", "ustat", "vstat")
OURS = ("regularised", "calibrated")


def judged(kind: str) -> tuple[str, str]:
    """A kind is a variance estimator, with the normal threshold; or the jackknife with the calibration that is our default."""
    return ("jackknife", "auto") if kind == "calibrated" else (kind, "normal")


@dataclass(frozen=True)
class ClosePPCA:
    """P and Q = P but for what is added to one entry of the weights; all methods share the paper's chains."""

    deltas: Mapping[str, tuple[float, float]]
    dim: int

    def __call__(self, task: Task) -> Iterator[Outcome]:
        x = ppca.draws(ppca.weight(self.dim), task.largest, task, ppca.DATA)

        @timed
        def score(delta: float, role: int) -> Scored:
            return ppca.scores("lksd", ppca.perturbed(delta, self.dim), x, task.seed + role)

        return run_tests(
            task,
            x,
            pairs=self.deltas.__getitem__,
            score=lambda kind, delta, role, pair: score(delta, role),
            kernel=lambda name: ppca.kernel(name, self.dim),
            judged=judged,
        )


@dataclass(frozen=True)
class CloseLDA:
    """The same with what is added to the prior of the topics."""

    documents: topics.Documents

    def __call__(self, task: Task) -> Iterator[Outcome]:
        given = self.documents
        x = topics.documents(given.model((0.0, 0.0)), task.largest, task.seed)

        @timed
        def score(label: topics.Label, role: int) -> Scored:
            model = given.model(label)
            return topics.scores("lksd", model, [model, model], x, task.seed + role, given.lengths)

        return run_tests(
            task,
            x,
            pairs=given.labels.__getitem__,
            score=lambda kind, label, role, pair: score(label, role),
            kernel=lambda name: topics.kernel(name, given.words),
            judged=judged,
        )


def _experiment(name: str, figure: str, title: str, run, cases: tuple[str, ...] = ("",)) -> Experiment:
    return Experiment(
        name=name,
        aliases=(figure, *({"figure16"} if figure.startswith("figure16") else ())),
        title=title,
        sizes=(100, 200, 300),
        methods=tuple(f"{one}-imq" for one in ESTIMATORS),
        ours=tuple(f"{one}-imq" for one in OURS),
        cases=cases,
        axis="distance of Q from P" if cases != ("",) else "",
        null=lambda case: True,
        run=run,
    )


GAPS = tuple(f"1e-{power}" for power in range(2, 10))
TOPIC_GAPS = tuple(f"1e-{power}" for power in range(2, 11, 2))
EXPERIMENTS = (
    _experiment(
        "ppca-close",
        "figure14",
        "Close PPCA models under the null, by the variance estimator",
        ClosePPCA({gap: (1.0, 1.0 + float(gap)) for gap in GAPS}, dim=50),
        GAPS,
    ),
    _experiment(
        "lda-close",
        "figure15",
        "Close LDA models under the null, by the variance estimator",
        CloseLDA(topics.Documents({gap: topics.prior(1.0, 1.0 + float(gap)) for gap in TOPIC_GAPS}, words=100)),
        TOPIC_GAPS,
    ),
    _experiment(
        "ppca-identical", "figure16a", "Identical PPCA models, by the variance estimator", ClosePPCA({"": (1.0, 1.0)}, dim=100)
    ),
    _experiment(
        "lda-identical",
        "figure16b",
        "Identical LDA models, by the variance estimator",
        CloseLDA(topics.Documents({"": topics.prior(1.0, 1.0)})),
    ),
)
