"""Estimated scores with everything needed to judge them."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from .._text import Table, rhat_text
from ..stein import Barker, Difference, Gibbs, Langevin, Spherical, SteinOperator
from ..supports import Support
from .lengths import BatchMeans

SCHEMA, READABLE = 3, (2, 3)
PARTS = ("score", "mcse", "batch_means")
OPERATORS: dict[str, Any] = {kind.__name__: kind for kind in (Langevin, Spherical, Difference, Barker, Gibbs)}


@dataclass(frozen=True, eq=False)
class ScoreEstimate:
    """Scores of one model at n observations.

    Attributes
    ----------
    operator : SteinOperator, or a tuple of them
        What the scores belong to. With several, ``score``, ``mcse`` and ``batch_means`` are tuples too.
    score, mcse : arrays
        The estimate and its Monte Carlo standard error: (n, D), (n, D, 2) for Barker, (n, D, L) for Gibbs.
    rhat, ess : (n,) arrays
        Rank-normalised split R-hat and bulk effective sample size, the worst over the log density and the
        norm of the score; NaN where there are no chains.
    acceptance, divergences : (n,) arrays
    batch_means : (n, C, B, ...) array
        Means over B consecutive batches of draws of C chains; their spread is the noise that the test sees. C = 0 for
        exact scores. Those of documents of very different lengths are kept in groups of like length: ``batch_means[rows]`` and
        ``numpy.asarray(batch_means)`` are arrays with zeros after the end of a document.
    converged : (n,) boolean array, optional
        Whether the chains of an observation count as converged (``lksd.scores.convergence`` says when); None where there are none.
    two_starts : bool
        Whether every second chain began elsewhere, so that what is left of the beginning can be measured.
    exchangeable : bool
        Whether the model does not mind the order of the coordinates.
    meeting_times : (n, C) array, optional
        Of unbiased scores: the steps that C pairs of coupled chains took to meet.
    graphs : bool
        Whether the observations are graphs.
    support : Support, optional
        Where the model's observations can lie, if it says so.
    method, notes
        How the scores were made.
    """

    score: Any
    mcse: Any
    index: np.ndarray
    seed: int
    method: str
    rhat: np.ndarray
    ess: np.ndarray
    acceptance: np.ndarray
    divergences: np.ndarray
    batch_means: Any
    two_starts: bool = False
    exchangeable: bool = False
    graphs: bool = False
    meeting_times: np.ndarray | None = None
    converged: np.ndarray | None = None
    notes: tuple[str, ...] = ()
    support: Support | None = None
    operator: Any = Langevin()  # noqa: RUF009  (immutable)

    @property
    def operators(self) -> tuple[SteinOperator, ...]:
        return self.operator if isinstance(self.operator, tuple) else (self.operator,)

    def part(self, name: str) -> tuple[np.ndarray, ...]:
        """``score``, ``mcse`` or ``batch_means``, one for each operator."""
        value = getattr(self, name)
        return value if isinstance(value, tuple) else (value,)

    def only(self, number: int) -> ScoreEstimate:
        """The scores that belong to one of several operators."""
        chosen: dict[str, Any] = {name: self.part(name)[number] for name in PARTS}
        return replace(self, operator=self.operators[number], **chosen)

    def save(self, path: str | Path) -> None:
        """Write to an .npz file that ``lksd.load_scores`` reads."""
        given = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in (*PARTS, "operator", "support")}
        given = {name: value for name, value in given.items() if value is not None}
        for name in PARTS:
            for number, array in enumerate(self.part(name)):
                given |= as_arrays(f"{name}_{number}", array)
        settings = []
        for number, one in enumerate(self.operators):
            order = getattr(one, "order", None)
            plain = {f.name: getattr(one, f.name) for f in fields(one) if f.name in ("n_values", "witness", "average")}
            settings.append({"kind": type(one).__name__} | plain)
            if order is not None:
                given[f"order_{number}"] = order
        given["operators"] = json.dumps({"several": isinstance(self.operator, tuple), "each": settings})
        if self.support is not None:
            given["support"] = json.dumps(asdict(self.support))
        with Path(path).open("wb") as file:
            np.savez(file, schema=SCHEMA, **given)

    def to_arviz(self):
        """ArviZ InferenceData: the batch means of the scores by chain as its draws, the diagnostics as its sample statistics."""
        try:
            import arviz
        except ImportError as error:
            raise ImportError("to_arviz needs ArviZ, which is not installed. Run: pip install 'lksd[arviz]'") from error
        means, errors = self.part("batch_means"), self.part("mcse")
        if not means[0].shape[1]:
            raise ValueError("to_arviz: these scores are exact, so there are no chains to show. Estimate them with exact=False.")
        names = ["score"] if len(means) == 1 else [f"score_{type(one).__name__.lower()}" for one in self.operators]
        draws = {name: np.moveaxis(part, 0, 2) for name, part in zip(names, means, strict=True)}  # (chain, batch, observation, ...)
        mcse = {name.replace("score", "mcse"): part for name, part in zip(names, errors, strict=True)}
        each = {"rhat": self.rhat, "ess": self.ess, "acceptance": self.acceptance, "divergences": self.divergences}
        dims = {name: ["observation"] for name in each}
        for name, part in [*zip(names, errors, strict=True), *mcse.items()]:
            dims[name] = ["observation", "coordinate", *(["value"] if part.ndim == 3 else [])]
        return arviz.from_dict(
            posterior=draws,
            constant_data=mcse | each,
            coords={"observation": self.index, "coordinate": np.arange(errors[0].shape[1])},
            dims=dims,
            attrs={"method": self.method, "seed": self.seed},
        )

    @property
    def summary(self) -> Table:
        """The size and the quality of the scores."""
        n, dim = self.part("score")[0].shape[:2]
        rows = [("observations", f"{n}"), ("coordinates", f"{dim}"), ("operator", ", ".join(str(one) for one in self.operators))]
        if np.isfinite(self.rhat).any():
            errors = np.concatenate([part.ravel() for part in self.part("mcse")])
            rows += [
                ("largest R-hat", rhat_text(np.nanmax(self.rhat))),
                ("smallest effective sample size", f"{np.nanmin(self.ess):.0f}"),
                ("median standard error", f"{np.median(errors):.4g}"),
            ]
            if np.isfinite(self.acceptance).all():  # of chains that ran here
                steps = ("mean acceptance", f"{self.acceptance.mean():.2f}"), ("divergences", f"{int(self.divergences.sum())}")
                rows[-1:-1] = steps
        return Table(("scores", self.method), rows)

    def _repr_html_(self) -> str:
        from ..report.fragment import scores_fragment

        return scores_fragment(self)

    def __str__(self) -> str:
        n, dim = self.part("score")[0].shape[:2]
        lines = [f"scores of {n} observations in {dim} dimensions: {self.method}"]
        if np.isfinite(self.rhat).any():
            steps = f"acceptance {self.acceptance.mean():.2f}, {int(self.divergences.sum())} divergences"
            quality = f"R-hat at most {rhat_text(np.nanmax(self.rhat))}, ESS at least {np.nanmin(self.ess):.0f}"
            lines.append(f"{quality}, {steps}" if np.isfinite(self.acceptance).all() else quality)  # of chains that ran here
        if self.converged is not None and not self.converged.all():
            lines.append(f"chains have not converged at {int((~self.converged).sum())} observations")
        return "\n".join([*lines, *(f"Note: {note}" for note in self.notes)])


def as_arrays(name: str, values: Any) -> dict[str, np.ndarray]:
    """An array by its name; those of groups of documents one by one, with the rows that they have."""
    if not isinstance(values, BatchMeans):
        return {name: values}
    each = enumerate(zip(values.rows, values.parts, strict=True))
    return {f"{name}_{kind}_{number}": array for number, pair in each for kind, array in zip(("rows", "part"), pair, strict=True)}


def from_arrays(name: str, record: dict[str, Any]) -> Any:
    """The inverse of ``as_arrays``."""
    if name in record:
        return record.pop(name)
    numbers = range(sum(key.startswith(f"{name}_rows_") for key in record))
    rows, parts = (tuple(record.pop(f"{name}_{kind}_{number}") for number in numbers) for kind in ("rows", "part"))
    return BatchMeans(rows, parts)


def load_scores(path: str | Path) -> ScoreEstimate:
    """Read scores written by ``ScoreEstimate.save``."""
    try:
        with np.load(path, allow_pickle=False) as file:
            record = dict(file)
    except (ValueError, OSError) as error:
        if isinstance(error, FileNotFoundError):
            raise
        raise ValueError(f"{path}: expected scores written by ScoreEstimate.save; it is no such file. Check the path.") from error
    if int(record.pop("schema", 0)) not in READABLE or "score_0" not in record:
        raise ValueError(f"{path}: expected scores of schema {SCHEMA}; got something else. Estimate them again.")
    saved = json.loads(str(record.pop("operators")))
    operators = []
    for number, settings in enumerate(saved["each"]):
        order = {"order": record.pop(f"order_{number}")} if f"order_{number}" in record else {}
        operators.append(OPERATORS[settings.pop("kind")](**settings, **order))
    parts = {name: tuple(from_arrays(f"{name}_{number}", record) for number in range(len(operators))) for name in PARTS}
    several = saved["several"]
    notes = tuple(str(note) for note in record.pop("notes", ()))
    support = json.loads(str(record.pop("support", "null")))
    plain = {"seed": int(record["seed"]), "method": str(record["method"]), "notes": notes}
    if support is not None:
        plain["support"] = Support(tuple(support["lower"]), tuple(support["upper"]), support["simplex"])
    plain |= {name: bool(record.get(name, False)) for name in ("two_starts", "exchangeable", "graphs")}
    plain |= {name: part if several else part[0] for name, part in parts.items()}
    return ScoreEstimate(**(record | plain), operator=tuple(operators) if several else operators[0])
