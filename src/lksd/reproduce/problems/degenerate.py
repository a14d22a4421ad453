"""Close and identical models, where the U-statistic degenerates, with all variance estimators
(Appendices C.4 and C.5).

All methods share the paper's chains.
"""

from __future__ import annotations

from ..experiment import Experiment
from .ppca import Perturbed
from .topics import Documents, prior

ESTIMATORS = ("jackknife", "ustat", "vstat")
OURS = ("regularised", "calibrated")


def judged(kind: str) -> tuple[str, str]:
    """A kind is a variance estimator, with the normal threshold; or the jackknife with the
    calibration that is our default.
    """
    return ("jackknife", "auto") if kind == "calibrated" else (kind, "normal")


def _experiment(
    name: str, figure: str, title: str, run, cases: tuple[str, ...] = ("",)
) -> Experiment:
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
        Perturbed({gap: (1.0, 1.0 + float(gap)) for gap in GAPS}, 50, chains="lksd", judged=judged),
        GAPS,
    ),
    _experiment(
        "lda-close",
        "figure15",
        "Close LDA models under the null, by the variance estimator",
        Documents(
            {gap: prior(1.0, 1.0 + float(gap)) for gap in TOPIC_GAPS},
            words=100,
            chains="lksd",
            judged=judged,
        ),
        TOPIC_GAPS,
    ),
    _experiment(
        "ppca-identical",
        "figure16a",
        "Identical PPCA models, by the variance estimator",
        Perturbed({"": (1.0, 1.0)}, chains="lksd", judged=judged),
    ),
    _experiment(
        "lda-identical",
        "figure16b",
        "Identical LDA models, by the variance estimator",
        Documents({"": prior(1.0, 1.0)}, chains="lksd", judged=judged),
    ),
)
