"""From what a caller asks for to criteria of the data and all models of a call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .._validation import check_choice
from ..models.base import LatentVariableModel
from .base import CRITERIA, Additive, Criterion
from .conditional import Conditional
from .fisher import Fisher
from .kernels import KSD, MMD
from .log import LogScore


def read_criterion(choice: Any, name: str = "criterion") -> Criterion:
    """A criterion from an object, a class or a name."""
    if isinstance(choice, type) and issubclass(choice, Criterion):
        choice = choice()
    if isinstance(choice, Criterion):
        if not choice.name or not isinstance(choice, (Additive, KSD, MMD)):
            raise ValueError(
                f"{name}: expected a subclass of lksd.criteria.Additive with a name; got "
                f"{type(choice).__name__}. Give it a base and a name."
            )
        return choice
    if not isinstance(choice, str):
        raise TypeError(
            f"{name}: expected a criterion of lksd.criteria or one of {', '.join(CRITERIA)}; got "
            f"{choice!r}. Give a name or an object."
        )
    check_choice(name, choice, list(CRITERIA))
    return CRITERIA[choice]()


class Choice(NamedTuple):
    """Which criterion decides, and which stand beside it."""

    primary: Criterion
    beside: tuple[Criterion, ...]

    @property
    def additive(self) -> tuple[Additive, ...]:
        """Those that add up, the primary first if it does."""
        return tuple(one for one in (self.primary, *self.beside) if isinstance(one, Additive))

    def without(self, name: str) -> Choice:
        """The choice without a criterion that is not to be had; the kernel Stein discrepancy takes
        the place of a primary.
        """
        beside = tuple(one for one in self.beside if one.name != name)
        if self.primary.name != name:
            return self._replace(beside=beside)
        ksd = self.of("ksd") or KSD()
        return Choice(ksd, tuple(one for one in beside if one.name != "ksd"))

    def of(self, *names: str) -> Any:
        """The first criterion that has one of these names; None where there is none."""
        for one in (self.primary, *self.beside):
            if one.name in names:
                return one
        return None


def choose_criteria(
    criterion: Any, also: Any, models: Sequence[Any], exact: bool | None, by_kernel: str | None
) -> Choice:
    """The criteria of a call; by default decided from the types of all its models alone.

    ``by_kernel`` names an option that only the kernel Stein discrepancy has.
    """
    if isinstance(criterion, str) and criterion == "auto":
        kinds: tuple[type[Additive], ...] = () if by_kernel else (LogScore, Fisher, Conditional)
        each = (kind() for kind in kinds)
        primary: Criterion = next((one for one in each if has_all(one, models, exact)), KSD())
    else:
        primary = read_criterion(criterion)
    if isinstance(primary, MMD):
        raise ValueError(
            'criterion: expected one that decides; "mmd" stands beside another. Use also="mmd", or '
            "lksd.relative_mmd for it alone."
        )
    if by_kernel and isinstance(primary, Additive):
        raise ValueError(
            f'{by_kernel}: expected with criterion="ksd" alone; got {primary}. Leave one of them '
            "out."
        )
    if isinstance(also, (set, frozenset)):
        also = tuple(sorted(also, key=str))
    if isinstance(also, str) and also == "none":
        also = ()
    if isinstance(also, str) and also == "auto":
        beside: tuple[Criterion, ...] = (KSD(),) if isinstance(primary, Additive) else ()
    else:
        every = also if isinstance(also, (tuple, list)) else () if also is None else (also,)
        found = {one.name: one for one in (read_criterion(one, "also") for one in every)}
        beside = tuple(one for name, one in found.items() if name != primary.name)
    return Choice(primary, beside)


def has_all(criterion: Additive, models: Sequence[Any], exact: bool | None) -> bool:
    """Whether every model, or what is known of its scores, has the losses of the criterion."""
    return all(obstacle_of(criterion, one, exact) is None for one in models)


def obstacle_of(criterion: Additive, model: Any, exact: bool | None) -> str | None:
    """Why a model, or its scores, has no losses of the criterion, in words; None where it has."""
    if isinstance(model, LatentVariableModel):
        obstacle = criterion.obstacle(model, exact)
        return None if obstacle is None else f"{model} {obstacle}"
    if criterion.name in model.criteria:
        return None
    name = criterion.name
    return f"the scores given were estimated without it; give estimate_scores criteria={name!r}"


def read_criteria(choice: Any) -> tuple[Additive, ...]:
    """Additive criteria, each once."""
    every = choice if isinstance(choice, (tuple, list)) else (choice,)
    found = [read_criterion(one, "criteria") for one in every]
    for one in found:
        if not isinstance(one, Additive):
            raise ValueError(
                f"criteria: expected criteria that add up over the observations; got {one}. The "
                "scores themselves are what it takes: leave it out."
            )
    names = [one.name for one in found]
    if len(set(names)) < len(names):
        raise ValueError(f"criteria: expected each once; got {', '.join(names)}. Leave one out.")
    return tuple(one for one in found if isinstance(one, Additive))


def locate_criteria(
    criteria: Sequence[Additive],
    domain: Any,
    supports: dict[str, Any],
    observations: Any,
    models: Sequence[Any],
    exact: bool | None,
    holdout: np.ndarray | None = None,
) -> tuple[Additive, ...]:
    """The criteria with what they take from the data; one that a model does not have is refused."""
    if not criteria:
        return ()
    for one in criteria:
        for model in models:
            if (obstacle := obstacle_of(one, model, exact)) is not None:
                raise ValueError(f"criterion: the models have no {one} score, since {obstacle}.")
    if domain.coordinates is None and supports:
        domain = domain.located(supports, observations, None, None)
    x = domain.transform("x", observations.values)
    return tuple(
        one.locate(domain, x, models, x if holdout is None else holdout) for one in criteria
    )
