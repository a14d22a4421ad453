"""Estimated scores with everything needed to judge them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Real, UInt64

from .._text import Table, rhat_text, visible
from ..stein import Langevin, SteinOperator
from ..supports import Support
from .files import BY_ROW, PARTS, read_scores, write_scores

ODD, FIRST, SECOND = (
    np.uint64(number) for number in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
)
WORK = 2**22  # numbers that are mixed at a time


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
        Gibbs. Of real data and a latent of at most three reals the error is an upper bound: that
        of linear control variates, where the estimate has some of higher degree.
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
    loss_bases : tuple of str
        What the losses by each criterion must have in common with others to be compared.
    loss_positions : (n, D) array, optional
        The parts of the conditional score at each position of an observation of integers.
    loss_tails : (n, D) array, optional
        Of these parts by chains: the shape k of the tails of the ratios whose means they are. Above
        0.7 the part is not to be trusted.
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
    loss_positions: np.ndarray | None = None
    loss_tails: np.ndarray | None = None
    loss_bases: tuple[str, ...] = ()
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


def load_scores(path: str | Path) -> ScoreEstimate:
    """Read scores written by ``ScoreEstimate.save``. A file that was cut, changed or damaged since
    is refused.
    """
    return read_scores(path, ScoreEstimate)


# ---------------------------------------- which observations scores belong to: a digest of each


def row_digests(x: Real[np.ndarray, "n D"]) -> UInt64[np.ndarray, " n"]:
    """64 bits of each observation: its numbers, and where they stand. Positions after the end of a
    document do not count.
    """
    found, step = np.empty(len(x), np.uint64), max(1, WORK // max(x.shape[1], 1))
    places = mix(np.asarray(np.arange(1, x.shape[1] + 1, dtype=np.uint64) * ODD))
    for start in range(0, len(x), step):
        part = x[start : start + step]
        whole = np.issubdtype(x.dtype, np.integer)
        # which has one zero, where there are two
        values = part.astype(np.int64) if whole else part.astype(np.float64) + 0.0
        mixed = mix(np.ascontiguousarray(values).view(np.uint64) ^ places)
        own = np.where(part >= 0, mixed, np.uint64(0)) if whole else mixed
        found[start : start + step] = mix(np.asarray(np.sum(own, axis=1, dtype=np.uint64)))
    return found


def mix(bits: np.ndarray) -> np.ndarray:
    """The finaliser of SplitMix64: every bit that comes in changes half of those that go out."""
    bits = (bits ^ (bits >> np.uint64(30))) * FIRST
    bits = (bits ^ (bits >> np.uint64(27))) * SECOND
    return bits ^ (bits >> np.uint64(31))


def check_observed(
    title: str, wanted: UInt64[np.ndarray, " n"], x: Real[np.ndarray, "m D"]
) -> None:
    """Refuse observations that are not those whose digests are ``wanted``, in their order."""
    expected = (
        f"x: expected the {len(wanted)} observations that the {title} belong to, in their order"
    )
    if len(x) != len(wanted):
        raise ValueError(
            f"{expected}; got {len(x)}. Take the scores of these alone by .at(index), or estimate "
            "them anew."
        )
    found = row_digests(x)
    other = found != wanted
    if not other.any():
        return
    first = int(np.argmax(other))
    if np.array_equal(np.sort(found), np.sort(wanted)):
        place = int(np.argmax(wanted == found[first]))
        raise ValueError(
            f"{expected}; got the same in another order: row {first} of x is row {place} of the "
            "scores. Put x in the order of the scores, or the scores in that of x by .at(index)."
        )
    raise ValueError(
        f"{expected}; {int(other.sum())} of the rows of x differ, the first of them row {first}. "
        "Give the data as they were then, or estimate the scores anew."
    )
