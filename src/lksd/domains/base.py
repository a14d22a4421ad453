"""What every kind of data has."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from .._validation import check_count, joined
from ..kernels import Kernel
from ..models import LatentVariableModel
from ..models.base import kind_of
from ..options import Reading
from ..stein import SteinOperator
from ..supports import Support

DOMAINS: dict[str, type[Domain]] = {}  # by their kinds


class Observations(NamedTuple):
    """The data of a call, read and checked once."""

    values: np.ndarray  # (n, D) reals, or token ids with -1 after the end of an observation
    ids: np.ndarray  # (n,), which decide the randomness of their chains
    columns: tuple[str, ...] | None = None  # names, where the data have some
    labels: tuple[str, ...] | None = None  # of the rows, where the data have some
    rows: np.ndarray | None = None  # where the observations stood, if some were left out
    notes: tuple[str, ...] = ()


class Prepared(NamedTuple):
    """Observations and scores in the units of the test, and the kernel on them."""

    x: np.ndarray
    scores: Sequence[tuple[np.ndarray, ...]]  # of each model, for each operator
    operators: tuple[SteinOperator, ...]
    kernel: Any
    units: np.ndarray  # what the columns were divided by
    notes: tuple[str, ...] = ()


class Domain(ABC):
    """A kind of data: how it is read, in which coordinates it is compared, and its defaults."""

    kind: ClassVar[str]
    describes: ClassVar[str]  # in words, what models of it describe
    discrete: ClassVar[bool] = False
    linear: ClassVar[str | None] = None  # the operator with unbiased scores, if not the default
    coordinates: Any = None  # in which the data are compared, where these are not their own
    weighted: bool = False  # whether the kernel's weight takes care of edges
    notes: tuple[str, ...] = ()

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "kind" in vars(cls):
            DOMAINS[cls.kind] = cls

    @classmethod
    @abstractmethod
    def read(
        cls, x: Any, models: list[Any], reading: Reading
    ) -> tuple[Domain, Observations, list[Any]]:
        """The domain of all models, the observations, and the models as they take these."""

    @abstractmethod
    def operators(self, choice: Any, models: list[Any]) -> tuple[SteinOperator, ...]:
        """A name, an object, a tuple of them, or nothing, as operators for these models."""

    def papers_operators(self, choice: Any) -> Any:
        """The choice with the paper's defaults."""
        return choice

    def supports(
        self, names: Sequence[str], models: Sequence[Any], observations: Observations
    ) -> list[Support | None]:
        """Where the observations of each model can lie, if it says so."""
        return [None] * len(models)

    def located(
        self,
        supports: dict[str, Support | None],
        observations: Observations,
        kernel: Any,
        smooth: Any,
    ) -> Domain:
        """The domain with the coordinates in which all models are compared."""
        return self

    def transform(self, name: str, values: np.ndarray) -> np.ndarray:
        """Observations in the coordinates of the test."""
        return values

    def draws(self, model: Any, y: np.ndarray) -> np.ndarray:
        """What a model has simulated, in the coordinates of the test, without what lies outside."""
        return y

    @abstractmethod
    def prepare(
        self,
        x: np.ndarray,
        estimates: list[Any],
        kernel: Any,
        holdout: np.ndarray | None,
        standardise: bool,
        paper: bool,
    ) -> Prepared:
        """The scores of all models in the units of the test."""

    @abstractmethod
    def mmd_kernel(self, prepared: Prepared) -> Kernel:
        """The kernel by which samples are compared."""


def is_estimate(model: Any) -> bool:
    """Whether scores stand in the place of their model."""
    return not isinstance(model, LatentVariableModel)


def check_index(index: Any, n: int) -> np.ndarray:
    """An id for each observation."""
    if index is None:
        return np.arange(n)
    ids = np.asarray(index)
    integers = np.issubdtype(ids.dtype, np.integer)
    if ids.shape != (n,) or not integers or (ids < 0).any() or len(np.unique(ids)) < n:
        raise ValueError(
            f"index: expected {n} different integers from 0 to 2^64 - 1, one for each observation; "
            f"got {np.array2string(ids, threshold=10)}. Number them."
        )
    return ids


def check_enough(x: Any, least: int) -> None:
    """There are observations to read, before anything else is done with them."""
    shape = getattr(x, "shape", None)
    if shape == ():
        raise ValueError(
            f"x: expected shape (n, D); got one number, {x!r}. Put one observation in each row."
        )
    if shape or hasattr(x, "__len__"):
        check_count("x", shape[0] if shape else len(x), least)


def read_data(
    x: Any, models: dict[str, Any], reading: Reading, least: int
) -> tuple[Domain, Observations, list[Any]]:
    """The domain that all models share, the observations, and the models as they take these."""
    check_enough(x, least)
    domain, given = domain_of(models), list(models.values())
    if reading.smooth is not None and domain.kind != "reals":
        raise ValueError(
            f"smooth: expected models of real vectors; {given[0]} is of another kind. Leave it out."
        )
    found = domain.read(x, given, reading)
    check_enough(found[1].values, least)
    return found


def domain_of(models: dict[str, Any]) -> type[Domain]:
    """The kind of data that all models describe."""
    kinds = set(map(kind_of, models.values()))
    if len(kinds) == 1:
        return DOMAINS[kinds.pop()]
    words = {name: DOMAINS[kind_of(model)].describes for name, model in models.items()}
    if len(set(words.values())) > 1:
        said = " and ".join(f"{name} describes {what}" for name, what in words.items())
        raise ValueError(
            f"{joined(models)}: expected models of the same kind of data; {said}. Compare models "
            "of the same data."
        )
    if "directions" in kinds:
        raise ValueError(
            "p and q: expected models of the same kind of data; one takes unit vectors alone. "
            "Compare like with like."
        )
    return DOMAINS["categories"]
