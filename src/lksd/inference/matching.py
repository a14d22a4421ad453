"""Scores and the observations that they belong to."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import equinox as eqx
import numpy as np

from .._validation import column_names, column_order, default_labels, row_labels, to_numpy, warn
from ..domains import Domain, Observations, is_estimate
from ..scores import ScoreEstimate
from ..scores.estimate import with_columns
from ..scores.result import check_observed, row_digests
from ..stein import DiscreteOperator, SteinOperator


def with_one_operator(domain: Domain, model: Any, operator: Any) -> tuple[Any, Any]:
    """A model, or scores of one operator, for a test that takes one; and which that is."""
    operator = domain.linear if operator is None else operator
    if not is_estimate(model):
        return model, operator
    if len(model.operators) == 1:
        return model, None
    found = [number for number, one in enumerate(model.operators) if is_called(one, operator)]
    return (model.only(found[0]) if found else model), operator


def at_data(
    estimates: dict[str, ScoreEstimate], data: Observations, title: str
) -> dict[str, ScoreEstimate]:
    """Scores in the columns of the data; refused where they were made at other observations."""
    return {name: one_at_data(title.format(name), one, data) for name, one in estimates.items()}


def one_at_data(title: str, scores: ScoreEstimate, data: Observations) -> ScoreEstimate:
    """The scores in the order of the data's columns; of documents no longer than the longest of
    them.
    """
    values = data.values
    order = column_order("x", data.columns, scores.columns, f"the columns of the {title}")
    if scores.observed is not None:
        check_observed(title, scores.observed, values if order is None else values[:, order])
    elif len(values) != len(scores.index):
        raise ValueError(
            f"x: expected the {len(scores.index)} observations that the {title} belong to; got "
            f"{len(values)}. Check x."
        )
    if order is not None:
        scores = replace(
            with_columns(scores, np.argsort(order)),
            columns=data.columns,
            observed=row_digests(values),
        )
    width = values.shape[1]
    if (
        np.issubdtype(values.dtype, np.integer)
        and scores.part("score")[0].shape[1] > width
        and scores.observed is not None
    ):
        return scores.changed(lambda name, part: cut(name, part, width))
    return scores


def cut(name: str, part: Any, width: int) -> np.ndarray:
    """Without positions that no document has."""
    return np.asarray(part)[:, :, :, :width] if name == "batch_means" else part[:, :width]


def common_index(estimates: dict[str, ScoreEstimate], index: Any) -> np.ndarray:
    """The ids that all scores have, and those that are asked for where some are."""
    named = {f"scores of {name}": one.index for name, one in estimates.items()}
    named |= {} if index is None else {"index": np.asarray(index)}
    (first, ids), *others = named.items()
    for name, other in others:
        if not np.array_equal(ids, other):
            least = min(len(ids), len(other)) if other.ndim else 0
            apart = ids[:least] != other[:least]
            where = (
                f"at row {np.argmax(apart)} {ids[apart][0]} and {other[apart][0]}"
                if apart.any()
                else "not as many"
            )
            raise ValueError(
                f"index: expected one id for each observation, whichever the model; {first} and "
                f"{name} have others, {where}. Take the scores by the same ids with .at(index)."
            )
    return ids


def untied_notes(estimates: dict[str, ScoreEstimate]) -> tuple[str, ...]:
    """And a warning, where nothing ties scores to their data."""
    untied = [name for name, one in estimates.items() if one.observed is None]
    if not untied:
        return ()
    note = (
        f"scores of {', '.join(untied)} were saved without a digest of their data, so nothing says "
        "that they belong to x."
    )
    warn(f"{note[0].upper()}{note[1:]} Estimate and save them anew.")
    return (note,)


def is_called(operator: SteinOperator, choice: Any) -> bool:
    """Whether a name or an operator means this one."""
    return (
        type(operator).__name__.lower() == choice
        if isinstance(choice, str)
        else same((operator,), (choice,))
    )


def same(a: tuple[Any, ...], b: tuple[Any, ...]) -> bool:
    return len(a) == len(b) and all(
        bool(eqx.tree_equal(one, other)) for one, other in zip(a, b, strict=True)
    )


def listed(operators: tuple) -> str:
    return ", ".join(str(one) for one in operators)


# ------------------------------------------------------------- scores as arrays


class Given(NamedTuple):
    """Arrays of scores, the operator that they belong to, and notes."""

    scores: list[Any]
    operator: Any
    notes: tuple[str, ...]
    x: np.ndarray | None  # as the first operator reads it, where that was needed


def as_given(x: Any, scores: Any, names: Any, operator: Any, mask: Any) -> Given:
    """Scores as arrays in the rows and columns of ``x``: estimates by their digests, data frames by
    their labels.
    """
    estimates = {
        name: one for name, one in zip(names, scores, strict=True) if isinstance(one, ScoreEstimate)
    }
    values = None
    if estimates:
        for name, one in estimates.items():
            if operator is None:
                operator = one.operator
            wanted = tuple(operator) if isinstance(operator, (tuple, list)) else (operator,)
            if len(wanted) != len(one.operators) or not all(map(is_called, one.operators, wanted)):
                raise ValueError(
                    f"operator: expected {listed(one.operators)}, to which {name} belongs; got "
                    f"{listed(wanted)}. Leave it out."
                )
            if not (one.support is None or one.support.is_real):
                raise ValueError(
                    f"{name}: expected scores of all real numbers; these are of {one.support}, "
                    "which has a boundary. Give the estimates to compare, rank or goodness_of_fit, "
                    "which take care of it."
                )
        first = next(iter(estimates.values())).operators[0]
        columns = None if isinstance(first, DiscreteOperator) else column_names(x)
        ids, values = common_index(estimates, None), first.observations(x, mask)
        estimates = at_data(estimates, Observations(values, ids, columns), "scores {!r}")
    labelled = [
        label
        for label in (x, *scores)
        if row_labels(label) is not None or column_names(label) is not None
    ]
    found = []
    for name, one in zip(names, scores, strict=True):
        if name in estimates:
            several = isinstance(operator, (tuple, list))
            found.append(
                estimates[name].part("score") if several else estimates[name].part("score")[0]
            )
        else:
            found.append(as_labelled(x, one, name, labelled[0] if labelled else x))
    return Given(found, operator, untied_notes(estimates), values)


def as_labelled(x: Any, score: Any, name: str, reference: Any) -> Any:
    """A data frame of scores with its rows and columns in the order of ``x``; where only scores are
    labelled, all must be alike.
    """
    order = column_order(name, column_names(score), column_names(reference), "the columns of x")
    rows = row_order(name, row_labels(score), row_labels(reference))
    if order is None and rows is None:
        return score
    if reference is not x:
        raise ValueError(
            f"{name}: expected rows and columns as in the other scores; they have the same labels "
            "in another order, x has none. Put them in the order of x."
        )
    array = to_numpy(name, score)
    array = array if rows is None else array[rows]
    return array if order is None else array[:, order]


def row_order(name: str, given: Any, wanted: Any) -> np.ndarray | None:
    """Where the rows with the wanted labels stand; None where they stand so already, or one side
    only numbers its rows.
    """
    if given is None or wanted is None or given.equals(wanted):
        return None
    numbered = [bool(one.equals(default_labels(one))) for one in (given, wanted)]
    same = (
        len(given) == len(wanted)
        and given.is_unique
        and wanted.is_unique
        and bool(given.isin(wanted).all())
    )
    if any(numbered):
        if same:
            raise ValueError(
                f"{name}: expected rows with the labels of x in their order; the one numbers its "
                "rows and the other has the same numbers in another order. Give both the same "
                "index."
            )
        return None
    if not same:
        raise ValueError(
            f"{name}: expected rows with the labels of x, each once; it has others. Select the "
            "same rows."
        )
    return given.get_indexer(wanted)
