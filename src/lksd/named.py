"""The models of a call and what they are called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from .results import ComparisonResult


class Named(NamedTuple):
    """The models of a call, by the names that are used in its answer."""

    names: tuple[str, ...]
    models: tuple[Any, ...]
    roles: tuple[str, ...]  # in checkpoints
    arguments: tuple[str, ...]  # as the caller gave them

    @classmethod
    def pair(cls, p: Any, q: Any, names: Sequence[str] | None) -> Named:
        """Two models, each an argument of its own, or both in one dict."""
        if isinstance(p, Mapping) and q is None:
            if names is not None:
                raise TypeError(
                    "names: expected with models that have none; p is a dict of named models. "
                    "Leave it out."
                )
            if len(p) != 2:
                raise ValueError(
                    f"p: expected two models by their names; got {len(p)}. Use lksd.rank for "
                    "several."
                )
            found = check_names("p", p)
            return cls(tuple(found), tuple(found.values()), ("P", "Q"), tuple(found))
        if q is None:
            raise TypeError(
                "q: expected a second model; got none. Give compare(x, p, q), or a dict of two "
                "named models."
            )
        if names is None:
            return cls(("P", "Q"), (p, q), ("P", "Q"), ("p", "q"))
        if isinstance(names, str) or len(names) != 2:
            raise ValueError(f"names: expected two, of P and of Q; got {names!r}. Name both.")
        return cls(
            tuple(check_names("names", list(zip(names, (p, q), strict=True)))),
            (p, q),
            ("P", "Q"),
            ("p", "q"),
        )

    @classmethod
    def several(cls, models: Any) -> Named:
        """Any number of models in a dict, or a list of pairs."""
        found = check_names("models", models)
        return cls(tuple(found), tuple(found.values()), tuple(found), tuple(found))

    @classmethod
    def single(cls, model: Any) -> Named:
        return cls(("the model",), (model,), ("",), ("model",))

    def name(self, result: ComparisonResult) -> ComparisonResult:
        """The result with the names of its models."""
        return result.with_names(self.names) if self.has_names else result

    @property
    def has_names(self) -> bool:
        """Whether the caller has named the models."""
        return self.names not in (("P", "Q"), ("the model",))

    def by(self, names: tuple[str, ...]) -> dict[str, Any]:
        """The models by their names, roles or arguments."""
        return dict(zip(names, self.models, strict=True))


def check_names(role: str, models: Any) -> dict[str, Any]:
    """At least two models, each with a name of its own."""
    pairs = isinstance(models, (list, tuple)) and all(
        isinstance(one, (list, tuple)) and len(one) == 2 for one in models
    )
    if not isinstance(models, Mapping) and not pairs:
        raise TypeError(
            f"{role}: expected a dict of models by their names, or a list of (name, model); got "
            f"{type(models).__name__}. Name the models."
        )
    entries = list(models.items() if isinstance(models, Mapping) else models)
    for name, _ in entries:
        if not isinstance(name, str) or not name.strip():
            raise TypeError(
                f"{role}: expected names that are text; got {name!r}. Use strings as names."
            )
    names = [name for name, _ in entries]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(
            f"{role}: expected a different name for every model; got {twice[0]!r} twice. Rename "
            "one."
        )
    if len(names) < 2:
        raise ValueError(
            f"{role}: expected at least two models to rank; got {len(names)}. Test one alone with "
            "goodness_of_fit."
        )
    return dict(entries)
