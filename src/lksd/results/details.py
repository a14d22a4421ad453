"""What a result tells beside its numbers: the chains behind the scores, and the words that decide."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from .._text import pvalue_text, rhat_text, visible

ROLES = ("P", "Q")  # the models of a comparison, in formulas and where they have no names
NOISY = 0.2  # share of MCMC error in the variance from which it is warned of
SHIFTED = 0.5  # of T, by the chains' starting points


@dataclass(frozen=True)
class Unconverged:
    """Observations at which the chains of a model have not converged, and the answer without all such observations.

    ``observations`` are their ids, of ``n`` observations; ``statistic``, ``pvalue`` and ``reject`` those of the test without them,
    None where too few are left.
    """

    model: str
    observations: tuple[int, ...]
    n: int
    statistic: float | None = None
    pvalue: float | None = None
    reject: bool | None = None

    def places(self, most: int) -> str:
        """The observations in words."""
        ids, more = ", ".join(str(i) for i in self.observations[:most]), len(self.observations) - most
        return f"observation{'s' * (len(self.observations) > 1)} {ids}{f' and {more} more' if more > 0 else ''}"

    def __str__(self) -> str:
        said = f"chains of {visible(self.model)} have not converged at {self.places(10)} ({len(self.observations)} of {self.n})"
        them = "it" if len(self.observations) == 1 else "them"
        if self.statistic is None or self.pvalue is None:
            return f"{said}; without {them} too few are left"
        return f"{said}; without {them} the statistic is {self.statistic:.3f}, {pvalue_text(self.pvalue)}"


@dataclass(frozen=True)
class Diagnostics:
    """How the scores of a comparison were made.

    ``rhat`` is the largest and ``ess`` the smallest over observations and models; ``noise_share`` is the part of
    the test's variance that more draws would remove; ``start_shift`` is what chains that began at different points
    differ by, in units of the statistic. None where no chains were run. ``rhats`` and ``esses`` are the worst of the
    models at each observation. ``unconverged`` names the observations whose chains have not converged, and ``withheld`` is the
    reason for which the verdict is withheld, where it is.
    """

    method_p: str
    method_q: str | None  # None for the test of one model
    rhat: float | None
    ess: float | None
    divergences: int
    noise_share: float | None = None
    start_shift: float | None = None
    rhats: np.ndarray | None = field(default=None, compare=False)
    esses: np.ndarray | None = field(default=None, compare=False)
    unconverged: tuple[Unconverged, ...] = ()
    withheld: str | None = None

    def lines(self, names: tuple[str, str] = ROLES) -> list[str]:
        """The diagnostics in words, for models that are called so."""
        p, q = (f"scores {role}" if name == role else f"scores of {name}:" for role, name in zip(ROLES, names, strict=True))
        lines = [f"{p} {self.method_p}", f"{q} {self.method_q}"] if self.method_q else [f"scores   {self.method_p}"]
        if self.rhat is not None and self.ess is not None:
            lines.append(f"R-hat at most {rhat_text(self.rhat)}, ESS at least {self.ess:.0f}, {self.divergences} divergences")
        if self.noise_share is not None:
            of = "difference" if self.method_q else "statistic"
            shift = "" if self.start_shift is None else f"; the chains' starting points shift T by at most {self.start_shift:.2f}"
            lines.append(f"MCMC error accounts for {self.noise_share:.2%} of the variance of the {of}{shift}.")
        return [visible(line) for line in lines]

    def __str__(self) -> str:
        return "\n".join(self.lines())


@dataclass(frozen=True, eq=False)
class Words:
    """What each word (or value) of the data adds to a difference, the largest first: ``contributions`` sum to it."""

    ids: np.ndarray
    contributions: np.ndarray
    names: tuple[str, ...] = ()  # of the words, where the models know them
    documents: bool = True  # whether the observations are documents, made of words, or anything else, made of values

    @property
    def kinds(self) -> tuple[str, str]:
        """What an observation is called, and what it is made of."""
        return ("document", "word") if self.documents else ("observation", "value")

    def top(self, count: int = 5) -> list[tuple[str, float]]:
        """The words that decide, by name or id, with their contributions."""
        labels = self.names[:count] or [str(word) for word in self.ids[:count]]
        return list(zip(labels, self.contributions[:count].tolist(), strict=False))
