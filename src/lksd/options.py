"""The options of a call: each is declared, documented and checked here, and nowhere else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from functools import partial
from inspect import signature
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ._validation import check_choice, check_number, check_probability, check_seed
from .samplers import Sampler, Start
from .statistics import multiplicity
from .statistics.nulls import Calibration, replicate_count

PLAIN = (bool, int, float, str, type(None))
VARIANCES = ("auto", "jackknife", "ustat", "vstat", "regularised")
CALIBRATIONS = ("auto", "bootstrap", "edgeworth", "normal")
CORRECTIONS = ("auto", *multiplicity.CORRECTIONS)
ALTERNATIVES = ("greater", "two-sided")
CONTROL_VARIATES = ("auto", "none")


class Record:
    """Options that belong together; they are checked when the record is made, and do not change."""

    keyword: ClassVar[str]  # by which a verb takes the whole record

    def changed(self) -> dict[str, Any]:
        """The options that are not the defaults."""
        every = {one.name: (getattr(self, one.name), one.default) for one in fields(self)}  # type: ignore[arg-type]
        return {
            name: value
            for name, (value, default) in every.items()
            if value is not default and not (isinstance(value, PLAIN) and value == default)
        }

    def over(self, preset: Any) -> Any:
        """This record, with the values of a preset where it has the defaults."""
        return replace(preset, **self.changed())

    _set = object.__setattr__

    def __str__(self) -> str:
        changed = (f"{name}={value!r}" for name, value in self.changed().items())
        return f"{type(self).__name__}({', '.join(changed)})"


@dataclass(frozen=True, kw_only=True)
class Decision(Record):
    """How the question is put, and how it is decided.

    Parameters
    ----------
    alternative : "two-sided" or "greater"
        H1: one of them fits better; or: Q fits better.
    alpha : float
        The level of the test.
    margin : float
        A difference that is too small to matter, in units of the criterion that decides: H0 is
        that the loss, or squared discrepancy, of P exceeds that of Q by at most the margin.
    variance : "auto", "jackknife", "ustat", "vstat" or "regularised"
        The paper's estimators, and one that is made for (nearly) identical models. "auto" is the
        jackknife, and the regularised one where the U-statistic is nearly degenerate and
        ``calibration`` is "auto"; the result says which was used.
    calibration : "auto", "bootstrap", "edgeworth", "normal" or Calibration
        "normal" is the paper's. "auto" takes the bootstrap up to 1,000 observations and the
        expansion beyond, and never a p-value below the normal one. An object of a subclass of
        ``lksd.statistics.Calibration`` says itself how T is distributed (docs/extending.md).
    correction : "auto", "min-p", "max-t", "holm" or "bonferroni"
        For several kernels, operators or models. Step-down min-p and max-T use how they depend on
        each other, the others do not. "auto" is "min-p" for several kernels or operators, where
        resamples of one with heavy tails would hide the others from max-T, and "max-t" for models.
    pairs : int, optional
        For n too large for all pairs of observations: take at least so many, chosen by ``seed``,
        and count the variance that this adds. The p-value is then normal.
    """

    keyword: ClassVar[str] = "decision"

    alternative: str = "two-sided"
    alpha: float = 0.05
    margin: float = 0.0
    variance: str = "auto"
    calibration: str | Calibration = "auto"
    correction: str = "auto"
    pairs: int | None = None

    def __post_init__(self) -> None:
        check_choice("alternative", self.alternative, ALTERNATIVES)
        check_choice("variance", self.variance, VARIANCES)
        if isinstance(self.calibration, type) and issubclass(self.calibration, Calibration):
            self._set("calibration", self.calibration())
        if not isinstance(self.calibration, Calibration):
            check_choice("calibration", self.calibration, CALIBRATIONS)
        check_choice("correction", self.correction, CORRECTIONS)
        plain = self.variance in ("auto", "jackknife")
        if not plain and self.calibration in ("bootstrap", "edgeworth"):
            raise ValueError(
                f"calibration: expected 'normal' or 'auto' with variance={self.variance!r}; got "
                f"{self.calibration!r}. The bootstrap and the expansion are made for the jackknife "
                "variance."
            )
        alpha = check_probability("alpha", self.alpha)
        if self.calibration == "bootstrap":
            replicate_count(alpha)
        if self.pairs is not None:
            check_pairs(self)
        if check_number("margin", self.margin) < 0:
            raise ValueError(
                f"margin: expected a number of at least 0; got {self.margin}. It is a difference "
                "too small to matter."
            )
        self._set("alpha", alpha)
        self._set("margin", float(self.margin))

    @property
    def two_sided(self) -> bool:
        return self.alternative == "two-sided"

    def settled(self, hypotheses: int) -> Decision:
        """The same with the correction for so many kernels and operators."""
        if self.correction != "auto":
            return self
        return replace(self, correction="min-p" if hypotheses > 1 else "max-t")

    @property
    def guarded(self) -> bool:
        """Whether no p-value may fall below the normal one."""
        return self.calibration == "auto"


def check_pairs(decision: Decision) -> None:
    """Pairs of observations go with their own variance."""
    pairs = decision.pairs
    if isinstance(pairs, bool) or not isinstance(pairs, (int, np.integer)) or pairs < 1:
        raise ValueError(
            "pairs: expected a positive integer, how many pairs of observations to take; got "
            f"{pairs!r}. Give one."
        )
    if decision.variance != "auto" or decision.calibration not in ("auto", "normal"):
        raise ValueError(
            "pairs: expected with variance='auto' and calibration='auto' or 'normal', since a mean "
            f"over some pairs is normal with a variance of its own; got {decision.variance!r} and "
            f"{decision.calibration!r}. Leave them out, or pairs."
        )


@dataclass(frozen=True, kw_only=True)
class Chains(Record):
    """How scores come about: exactly, or by Markov chains for each observation.

    Parameters
    ----------
    sampler : Sampler, optional
        Default: HMC (``AdaptiveHMC`` where the model cannot simulate); the exchange algorithm
        where the likelihood's normaliser is unknown; the model's Gibbs sweep or exact posterior
        draws where the latent is discrete.
    warmup : int, optional
        Steps of each chain that are discarded (default 200).
    draws : int, optional
        Draws kept for each observation over all its chains (default 400).
    chains : int or Chains, optional
        Chains for each observation (default 2, or 1 for fewer than 50 draws of a discrete latent);
        or all options about chains as a record.
    exact : bool, optional
        None uses the model's exact marginal score if it has one; True demands it, False forbids
        it.
    unbiased : bool
        Remove the bias of the chains' starting points: pairs of coupled chains run until they
        meet, and what they differ by until then corrects the plain means, so that no warm-up is
        needed for validity. Of discrete operators for "difference" alone, which is then the
        default; without control variates.
    meeting_limit : int, optional
        Steps after which coupled chains that have not met are an error (default: ten times their
        length, at least 10,000).
    control_variates : "auto" or "none"
        "auto" regresses the conditional scores on grad_z log p(x, z) where that helps, and
        averages ratios over part of a discrete latent (Rao-Blackwell) where the model can. "none"
        gives the paper's estimators: plain means, and for Barker the modified posterior of each
        neighbour (Appendix B.2); nothing is run again.
    initial : Start, optional
        Where chains begin, such as ``lksd.samplers.NormalStart(mean)``. Default: the first at a
        draw from the prior (or the model's ``initial``), every second one elsewhere, so that what
        is left of the starting point shows.
    """

    keyword: ClassVar[str] = "chains"

    sampler: Sampler | None = None
    warmup: int | None = None
    draws: int | None = None
    chains: int | None = None
    exact: bool | None = None
    unbiased: bool = False
    meeting_limit: int | None = None
    control_variates: str = "auto"
    initial: Start | None = None

    def __post_init__(self) -> None:
        check_choice("control_variates", self.control_variates, CONTROL_VARIATES)
        for name, least in (("warmup", 0), ("draws", 1), ("chains", 1), ("meeting_limit", 1)):
            if (value := getattr(self, name)) is not None:
                self._set(name, check_steps(name, value, least))
        if self.meeting_limit is not None and not self.unbiased:
            raise ValueError(
                "meeting_limit: expected with unbiased=True only; got it without. Leave it out, or "
                "say unbiased=True."
            )
        if self.sampler is not None and not isinstance(self.sampler, Sampler):
            raise TypeError(
                f"sampler: expected a sampler such as lksd.samplers.HMC(); got {self.sampler!r}. "
                "Give an instance."
            )
        if self.initial is not None and not isinstance(self.initial, Start):
            raise TypeError(
                "initial: expected a start such as lksd.samplers.NormalStart(mean); got "
                f"{self.initial!r}. Give an instance."
            )


@dataclass(frozen=True, kw_only=True)
class Run(Record):
    """Where and how a call is computed. Apart from the seed nothing here changes the answer.

    Parameters
    ----------
    seed : int
        The same seed reproduces the result exactly.
    engine : "dask", address or dask.distributed.Client, optional
        Where the work is done. Default: this process, on all its devices. "dask" starts a worker
        on each processor, "tcp://host:8786" connects to a cluster (docs/clusters.md).
    checkpoint : path, optional
        A file for what is finished. A run that was killed goes on from there, with the same
        result; a file of other data, another model or other settings is refused.
    batch_size : int, optional
        Observations that run at a time. Changes time and memory, not the answer.
    progress : bool, optional
        Whether to show a progress line; None shows one on a terminal or in a notebook for work of
        more than two seconds.
    """

    keyword: ClassVar[str] = "run"

    seed: int = 0
    engine: Any = None
    checkpoint: Any = None
    batch_size: int | None = None
    progress: bool | None = None

    def __post_init__(self) -> None:
        self._set("seed", check_seed(self.seed))
        if self.batch_size is not None:
            self._set("batch_size", check_steps("batch_size", self.batch_size, 1))
        if self.progress not in (None, True, False):
            raise TypeError(
                f"progress: expected True, False or None; got {self.progress!r}. None shows a line "
                "on a terminal only."
            )


@dataclass(frozen=True, kw_only=True)
class Reading(Record):
    """How the observations are read, and in which units they are compared.

    Parameters
    ----------
    index : (n,) integers, optional
        An id for each observation, which decides its chain's randomness (default 0 .. n-1).
    counts : bool, optional
        Whether a dense ``x`` holds word counts instead of token ids. The columns of a data frame
        are matched to the words of models that know them.
    drop_empty : bool
        Leave out documents without words, or without any that the models know, instead of
        refusing them. A note names them; ``contributions`` has an entry for each that is left,
        ``kept`` the row in which it stood in ``x``, and ``documents()`` and the report number
        them by that row.
    holdout : (m, D) array, optional
        Other observations, from which to take the scales of the default kernel.
    standardise : bool
        Divide the columns of ``x`` by their standard deviations, for columns in different units.
    smooth : "auto", number or sequence of numbers, optional
        Standard deviations of Gaussian noise to add to the data and, in distribution, to the
        models: scores then see the weights of components that lie apart. Each is a hypothesis of
        its own, and all are tested together (max-T). "auto" takes 1/4, 1/2 and 1 standard
        deviations of each column.
    """

    keyword: ClassVar[str] = "reading"

    index: Any = None
    counts: bool | None = None
    drop_empty: bool = False
    holdout: Any = None
    standardise: bool = False
    smooth: Any = None


def check_steps(name: str, value: Any, least: int) -> int:
    """A number of steps or observations."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise ValueError(
            f"{name}: expected an integer of at least {least}; got {value!r}. Give a number of "
            "steps."
        )
    return int(value)


RECORDS: tuple[type[Any], ...] = (Decision, Chains, Reading, Run)


class Options(NamedTuple):
    """All options of a call."""

    decision: Decision
    chains: Chains
    reading: Reading
    run: Run

    @classmethod
    def read(cls, verb: Callable, keywords: Any) -> Options:
        """From the keywords of a call: records, single options, or both for different ones."""
        allowed = signature(verb).parameters
        for name in keywords:
            if name not in allowed:
                near = get_close_matches(name, allowed, 1, 0)[0]
                raise TypeError(
                    f"{verb.__name__}: there is no option {name!r}. The nearest is {near!r}; "
                    f"help(lksd.{verb.__name__}) lists them all."
                )
        if "decision" not in keywords:
            keywords = getattr(verb, "defaults", {}) | keywords
        return cls(*map(partial(read_record, verb.__name__, allowed, keywords), RECORDS))

    def two_sided(self) -> Options:
        """The same for questions that have two sides by themselves."""
        return self._replace(decision=replace(self.decision, alternative="two-sided"))

    def of(self, verb: Callable) -> dict[str, Any]:
        """The options of a verb by their names, apart from those that never change an answer."""
        allowed = signature(verb).parameters.keys() - {"engine", "checkpoint", "progress"}
        return {
            one.name: getattr(record, one.name)
            for record in self
            for one in fields(record)
            if one.name in allowed
        }


def read_record(verb: str, allowed: Any, keywords: dict[str, Any], kind: type[Any]) -> Any:
    """One record of a call: as it is given, or of the options that are given one by one."""
    whole = keywords.get(kind.keyword)
    given = {one.name: keywords[one.name] for one in fields(kind) if one.name in keywords}
    if not isinstance(whole, kind):
        if whole is not None and kind.keyword not in given:
            raise TypeError(
                f"{kind.keyword}: expected a lksd.{kind.__name__}; got {whole!r}. Give a record, "
                "or single options."
            )
        return kind(**given)
    for name in given:
        if name != kind.keyword:
            raise TypeError(
                f"{name}: given twice, in {kind.keyword}= and by itself. Leave one of them out."
            )
    for name in whole.changed():
        if name not in allowed and name != "alternative":
            raise TypeError(f"{name}: {verb} does not take this option. Leave it out of {whole}.")
    return whole


# The paper's settings: of all tests, and of the chains for real data and for sweeps over documents.
PAPER = Decision(alternative="greater", variance="jackknife", calibration="normal")
PAPER_CHAINS = Chains(warmup=200, draws=500, chains=1, exact=False, control_variates="none")
PAPER_SWEEPS = replace(PAPER_CHAINS, warmup=80, draws=20)
