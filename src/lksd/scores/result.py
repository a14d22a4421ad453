"""Estimated scores with everything needed to judge them."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields, replace
from inspect import signature
from pathlib import Path
from typing import Any

import jax
import numpy as np

from .._jax import is_ours
from .._storage import NOT_ARRAYS, arrays_checksum, read_arrays, write_whole
from .._text import Table, rhat_text, visible
from ..stein import Langevin, SteinOperator
from ..stein.base import REGISTERED
from ..supports import Support
from .lengths import BatchMeans

PARTS = ("score", "mcse", "batch_means")
BY_ROW = (
    "index",
    "rhat",
    "ess",
    "acceptance",
    "divergences",
    "meeting_times",
    "converged",
    "observed",
    "losses",
    "loss_errors",
)
SCHEMA, READABLE = 4, (2, 3, 4)
CHECKED = 4  # the schema from which files hold a checksum
TABLES = ("meeting_times", "losses", "loss_errors")  # with a second axis
TEXTS = ("notes", "columns", "criteria")
# of arrays; others are real
KINDS = {
    "index": "iu",
    "divergences": "iu",
    "meeting_times": "iu",
    "converged": "b",
    "observed": "u",
}


@dataclass(frozen=True, eq=False)
class ScoreEstimate:
    """Scores of one model at n observations.

    Attributes
    ----------
    operator : SteinOperator, or a tuple of them
        What the scores belong to. With several, ``score``, ``mcse`` and ``batch_means`` are tuples
        too.
    score, mcse : arrays
        The estimate and its Monte Carlo standard error: (n, D), (n, D, 2) for Barker, (n, D, L) for
        Gibbs.
    rhat, ess : (n,) arrays
        Rank-normalised split R-hat and bulk effective sample size, the worst over the log density
        and the norm of the score; NaN where there are no chains.
    acceptance, divergences : (n,) arrays
    batch_means : (n, C, B, ...) array
        Means over B consecutive batches of draws of C chains; their spread is the noise that the
        test sees. C = 0 for exact scores. Those of documents of very different lengths are kept in
        groups of like length: ``batch_means[rows]`` and ``numpy.asarray(batch_means)`` are arrays
        with zeros after the end of a document.
    converged : (n,) boolean array, optional
        Whether the chains of an observation count as converged (``lksd.scores.convergence`` says
        when); None where there are none.
    two_starts : bool
        Whether every second chain began elsewhere, so that what is left of the beginning can be
        measured.
    exchangeable : bool
        Whether the model does not mind the order of the coordinates.
    meeting_times : (n, C) array, optional
        Of unbiased scores: the steps that C pairs of coupled chains took to meet.
    graphs : bool
        Whether the observations are graphs.
    support : Support, optional
        Where the model's observations can lie, if it says so.
    index : (n,) array
        The ids of the observations; ``at`` takes scores by them.
    observed : (n,) array of 64 bits, optional
        A digest of each observation: scores are refused with others. None in files that were saved
        without it.
    columns : tuple of str, optional
        The names of the data's columns, where they had names.
    criteria : tuple of str
        The additive criteria whose losses were computed with the scores.
    losses, loss_errors : (n, criteria) arrays, optional
        The loss of each observation by each of them, and its Monte Carlo standard error.
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
    observed: np.ndarray | None = None
    columns: tuple[str, ...] | None = None
    criteria: tuple[str, ...] = ()
    losses: np.ndarray | None = None
    loss_errors: np.ndarray | None = None
    operator: Any = Langevin()  # noqa: RUF009  (immutable)

    vocabulary = None  # words are what models know

    @property
    def operators(self) -> tuple[SteinOperator, ...]:
        return self.operator if isinstance(self.operator, tuple) else (self.operator,)

    @property
    def kind(self) -> str:
        """The kind of data that the model describes."""
        data = self.operators[0].data
        return ("graphs" if self.graphs else "documents") if data == "integers" else data

    def part(self, name: str) -> tuple[np.ndarray, ...]:
        """``score``, ``mcse`` or ``batch_means``, one for each operator."""
        value = getattr(self, name)
        return value if isinstance(value, tuple) else (value,)

    def only(self, number: int) -> ScoreEstimate:
        """The scores that belong to one of several operators."""
        chosen: dict[str, Any] = {name: self.part(name)[number] for name in PARTS}
        return replace(self, operator=self.operators[number], **chosen)

    def loss(self, criterion: str, kind: str = "losses") -> np.ndarray:
        """The losses by one of the criteria, or its ``loss_errors``."""
        if self.losses is None or criterion not in self.criteria:
            known = ", ".join(self.criteria) or "none"
            raise ValueError(
                f"criterion: expected one whose losses were computed with the scores ({known}); "
                f"got {criterion!r}. Give estimate_scores criteria={criterion!r}."
            )
        return getattr(self, kind)[:, self.criteria.index(criterion)]

    def save(self, path: str | Path) -> None:
        """Write to an .npz file that ``lksd.load_scores`` reads."""
        write_scores(self, path)

    def at(self, index: Any) -> ScoreEstimate:
        """The scores of the observations with these ids, in this order: for part of the data, or
        for data in another order.

        Examples
        --------
        >>> import numpy as np, lksd
        >>> x = np.random.default_rng(0).normal(size=(6, 2))
        >>> scores = lksd.estimate_scores(lksd.models.PPCA(np.ones((2, 1)), 1.0), x)
        >>> bool((scores.at([4, 0]).score == scores.score[[4, 0]]).all())
        True
        """
        wanted = np.asarray(index)
        if wanted.ndim != 1 or not np.issubdtype(wanted.dtype, np.integer):
            raise TypeError(
                f"index: expected a list of ids; got {index!r}. Give those of `index` of the "
                "scores."
            )
        order = np.argsort(self.index, kind="stable")
        known = self.index[order]
        if (known[1:] == known[:-1]).any():
            raise ValueError(
                "index: expected scores whose ids all differ; some occur twice. Give "
                "estimate_scores an index without doubles."
            )
        places = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
        if (unknown := wanted[known[places] != wanted]).size:
            raise ValueError(
                f"index: expected ids of the scores; there is no {unknown[0]} ({unknown.size} such "
                "ids). Check them."
            )
        return self.rows(order[places])

    def rows(self, rows: np.ndarray) -> ScoreEstimate:
        """The scores at these positions."""
        each = {name: getattr(self, name) for name in BY_ROW}
        taken = {name: value[rows] for name, value in each.items() if value is not None}
        return self.changed(lambda name, part: part[rows], **taken)

    def changed(self, change: Callable[[str, Any], Any], **others: Any) -> ScoreEstimate:
        """With ``change(name, part)`` in place of every part, and other fields."""
        parts = {name: tuple(change(name, part) for part in self.part(name)) for name in PARTS}
        several = isinstance(self.operator, tuple)
        made: dict[str, Any] = {
            name: part if several else part[0] for name, part in parts.items()
        } | others
        return replace(self, **made)

    def to_arviz(self):
        """ArviZ InferenceData: the batch means of the scores by chain as its draws, the diagnostics
        as its sample statistics.
        """
        try:
            import arviz
        except ImportError as error:
            raise ImportError(
                "to_arviz needs ArviZ, which is not installed. Run: pip install 'lksd[arviz]'"
            ) from error
        means, errors = self.part("batch_means"), self.part("mcse")
        if not means[0].shape[1]:
            raise ValueError(
                "to_arviz: these scores are exact, so there are no chains to show. Estimate them "
                "with exact=False."
            )
        names = (
            ["score"]
            if len(means) == 1
            else [f"score_{type(one).__name__.lower()}" for one in self.operators]
        )
        # (chain, batch, observation, ...)
        draws = {name: np.moveaxis(part, 0, 2) for name, part in zip(names, means, strict=True)}
        mcse = {
            name.replace("score", "mcse"): part for name, part in zip(names, errors, strict=True)
        }
        each = {
            "rhat": self.rhat,
            "ess": self.ess,
            "acceptance": self.acceptance,
            "divergences": self.divergences,
        }
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
        rows = [
            ("observations", f"{n}"),
            ("coordinates", f"{dim}"),
            ("operator", ", ".join(str(one) for one in self.operators)),
        ]
        if np.isfinite(self.rhat).any():
            errors = np.concatenate([part.ravel() for part in self.part("mcse")])
            rows += [
                ("largest R-hat", rhat_text(np.nanmax(self.rhat))),
                ("smallest effective sample size", f"{np.nanmin(self.ess):.0f}"),
                ("median standard error", f"{np.median(errors):.4g}"),
            ]
            if np.isfinite(self.acceptance).all():  # of chains that ran here
                steps = (
                    ("mean acceptance", f"{self.acceptance.mean():.2f}"),
                    ("divergences", f"{int(self.divergences.sum())}"),
                )
                rows[-1:-1] = steps
        return Table(("scores", self.method), rows)

    def _repr_html_(self) -> str:
        from ..report.rendering import scores_fragment

        return scores_fragment(self)

    def __str__(self) -> str:
        n, dim = self.part("score")[0].shape[:2]
        lines = [f"scores of {n} observations in {dim} dimensions: {visible(self.method)}"]
        if np.isfinite(self.rhat).any():
            steps = (
                f"acceptance {self.acceptance.mean():.2f}, {int(self.divergences.sum())} "
                "divergences"
            )
            quality = (
                f"R-hat at most {rhat_text(np.nanmax(self.rhat))}, ESS at least "
                f"{np.nanmin(self.ess):.0f}"
            )
            # of chains that ran here
            lines.append(f"{quality}, {steps}" if np.isfinite(self.acceptance).all() else quality)
        if self.converged is not None and not self.converged.all():
            lines.append(
                f"chains have not converged at {int((~self.converged).sum())} observations"
            )
        return "\n".join([*lines, *(f"Note: {visible(note)}" for note in self.notes)])


# ------------------------------------------------------------- files


def write_scores(scores: ScoreEstimate, path: str | Path) -> None:
    given = {
        f.name: getattr(scores, f.name)
        for f in fields(scores)
        if f.name not in (*PARTS, "operator", "support")
    }
    given = {name: value for name, value in given.items() if value is not None}
    for name in PARTS:
        for number, array in enumerate(scores.part(name)):
            given |= as_arrays(f"{name}_{number}", array)
    settings = []
    for number, one in enumerate(scores.operators):
        plain, arrays = operator_record(one)
        settings.append(plain)
        given |= {f"{name}_{number}": array for name, array in arrays.items()}
    given["operators"] = json.dumps(
        {"several": isinstance(scores.operator, tuple), "each": settings}
    )
    if scores.support is not None:
        given["support"] = json.dumps(asdict(scores.support))
    given |= {name: json.dumps(given[name]) for name in TEXTS if name in given}
    every = {name: np.asarray(value) for name, value in (given | {"schema": SCHEMA}).items()}
    file = io.BytesIO()
    np.savez(file, checksum=arrays_checksum(every), **every)  # type: ignore[arg-type]
    write_whole(path, file.getvalue())


def operator_record(operator: SteinOperator) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The name of an operator's class with the fields that make it again, and those of them that
    are arrays.
    """
    kind = type(operator)
    if REGISTERED[kind.__name__] is not kind and is_ours(REGISTERED[kind.__name__]):
        raise ValueError(
            f"operator: {kind.__name__} is the name of a class of lksd.stein, as which it would be "
            "read. Rename yours."
        )
    plain: dict[str, Any] = {"kind": kind.__name__}
    arrays: dict[str, np.ndarray] = {}
    for name in constructor(kind):
        value = getattr(operator, name, ...)
        if isinstance(value, (np.generic, np.ndarray, jax.Array)):
            value = np.asarray(value)
        if name not in (*PARTS, "kind") and isinstance(value, np.ndarray) and value.ndim:
            arrays[name] = value
        elif name not in (*PARTS, "kind") and is_plain(
            value := value.item() if isinstance(value, np.ndarray) else value
        ):
            plain[name] = value
        else:
            raise ValueError(
                f"operator: {kind.__name__} cannot be saved; expected a field {name!r} that is a "
                "number, a string, a tuple of them or an array, for the argument of that name. The "
                f"names {', '.join(PARTS)} and kind are taken."
            )
    return plain, arrays


def is_plain(value: Any) -> bool:
    return isinstance(value, (bool, int, float, str, type(None))) or (
        isinstance(value, tuple) and all(map(is_plain, value))
    )


def constructor(kind: type) -> list[str]:
    """The names of the arguments from which a class makes its instances."""
    return list(signature(kind.__init__).parameters)[1:]  # type: ignore[misc]


def read_operator(settings: dict[str, Any], number: int, record: dict[str, Any]) -> SteinOperator:
    """The inverse of ``operator_record``."""
    name = settings.pop("kind")
    if name not in REGISTERED:
        raise ImportError(
            f"the scores belong to the operator {name}, a class that is not known here. Import the "
            "module that has it"
        )
    kind: Any = REGISTERED[name]
    arrays = {
        field: record.pop(f"{field}_{number}")
        for field in constructor(kind)
        if f"{field}_{number}" in record
    }
    return kind(**{field: as_tuples(value) for field, value in settings.items()}, **arrays)


def as_tuples(value: Any) -> Any:
    return tuple(map(as_tuples, value)) if isinstance(value, list) else value


def as_arrays(name: str, values: Any) -> dict[str, np.ndarray]:
    """An array by its name; those of groups of documents one by one, with the rows that
    they have.
    """
    if not isinstance(values, BatchMeans):
        return {name: values}
    each = enumerate(zip(values.rows, values.parts, strict=True))
    return {
        f"{name}_{kind}_{number}": array
        for number, pair in each
        for kind, array in zip(("rows", "part"), pair, strict=True)
    }


def from_arrays(name: str, record: dict[str, Any]) -> Any:
    """The inverse of ``as_arrays``."""
    if name in record:
        return record.pop(name)
    numbers = range(sum(key.startswith(f"{name}_rows_") for key in record))
    rows, parts = (
        tuple(record.pop(f"{name}_{kind}_{number}") for number in numbers)
        for kind in ("rows", "part")
    )
    found = np.sort(np.concatenate(rows))
    if not np.array_equal(found, np.arange(len(found))) or [len(one) for one in rows] != [
        len(part) for part in parts
    ]:
        raise ValueError(f"the groups of {name} do not belong together")
    return BatchMeans(rows, parts)


def load_scores(path: str | Path) -> ScoreEstimate:
    """Read scores written by ``ScoreEstimate.save``. A file that was cut, changed or damaged since
    is refused.
    """
    try:
        record: dict[str, Any] = read_arrays(Path(path))
    except FileNotFoundError:
        raise
    except NOT_ARRAYS as error:
        raise ValueError(
            f"{path}: expected scores written by ScoreEstimate.save; it is no such file. Check the "
            "path."
        ) from error
    schema, stored = record.get("schema"), record.pop("checksum", None)
    if (
        schema is None
        or schema.shape
        or schema.dtype.kind not in "iu"
        or int(schema) not in READABLE
        or "score_0" not in record
    ):
        raise ValueError(
            f"{path}: expected scores of schema {SCHEMA}; got something else. Estimate them again."
        )
    try:
        if int(schema) >= CHECKED if stored is None else str(stored) != arrays_checksum(record):
            raise ValueError("the content is not what was written")
        scores = from_record(record)
        check_whole(scores)
    except (
        AttributeError,
        ImportError,
        IndexError,
        KeyError,
        OverflowError,
        RecursionError,
        TypeError,
        ValueError,
    ) as error:
        # files without a checksum are of our own operators
        if isinstance(error, ImportError) and stored is not None:
            raise ImportError(f"{path}: {error}, and load them again.") from error
        raise ValueError(
            f"{path}: the scores are damaged ({error}). Take a copy of the file, or estimate them "
            "again."
        ) from error
    return scores


def from_record(record: dict[str, Any]) -> ScoreEstimate:
    """Scores from the arrays of a file."""
    listed = record.pop("schema") >= CHECKED
    saved = json.loads(str(record.pop("operators")))
    operators = [
        read_operator(settings, number, record) for number, settings in enumerate(saved["each"])
    ]
    parts = {
        name: tuple(from_arrays(f"{name}_{number}", record) for number in range(len(operators)))
        for name in PARTS
    }
    several = saved["several"]
    texts = {
        name: json.loads(str(record.pop(name))) if listed else record.pop(name)
        for name in TEXTS
        if name in record
    }
    plain: dict[str, Any] = {
        name: tuple(str(text) for text in value) for name, value in texts.items()
    }
    support = json.loads(str(record.pop("support", "null")))
    if support is not None:
        plain["support"] = Support(
            tuple(support["lower"]), tuple(support["upper"]), support["simplex"]
        )
    plain |= {"seed": int(record["seed"]), "method": str(record["method"])}
    plain |= {
        name: bool(record.get(name, False)) for name in ("two_starts", "exchangeable", "graphs")
    }
    plain |= {name: part if several else part[0] for name, part in parts.items()}
    return ScoreEstimate(**(record | plain), operator=tuple(operators) if several else operators[0])


def check_whole(scores: ScoreEstimate) -> None:
    """Arrays of the sizes and kinds that belong together, also in files without a checksum."""
    n = len(scores.index)
    for name in BY_ROW:
        value, kinds = getattr(scores, name), KINDS.get(name, "f")
        if value is not None and (
            value.dtype.kind not in kinds
            or value.shape[:1] != (n,)
            or value.ndim > 1 + (name in TABLES)
        ):
            raise ValueError(f"{name} has type {value.dtype} and shape {value.shape}")
    for name in ("losses", "loss_errors"):
        width = None if getattr(scores, name) is None else getattr(scores, name).shape[1:]
        if width not in ((len(scores.criteria),), None if not scores.criteria else ()):
            raise ValueError(f"{name} are not those of {len(scores.criteria)} criteria")
    if not n or (scores.index < 0).any() or (scores.divergences < 0).any() or scores.seed < 0:
        raise ValueError("an id, a count or the seed is negative, or nothing is there")
    for score, error, means in zip(*(scores.part(name) for name in PARTS), strict=True):
        if (
            score.dtype != np.float64
            or score.ndim < 2
            or score.shape[0] != n
            or error.shape != score.shape
        ):
            raise ValueError(
                f"scores of shape {score.shape} and errors of shape {error.shape} for {n} "
                "observations"
            )
        if not np.isfinite(score).all() or not (error >= 0).all():
            raise ValueError("scores are not finite, or errors not positive")
        if (means.shape[:1], means.shape[3:]) != ((n,), score.shape[1:]):
            raise ValueError(
                f"batch means of shape {means.shape} for scores of shape {score.shape}"
            )
