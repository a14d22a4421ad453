"""Global parameters of other people's models: values, or draws along leading axes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import jax
import numpy as np


def sorted_params(params: dict[str, Any], wanted: dict[str, Any], known: Iterable[str], model: str) -> tuple[dict, dict]:
    """Values of the sites ``wanted`` and draws of them; names that are ``known`` but not wanted are passed over."""
    known = list(known)
    values: dict[str, Any] = {}
    draws: dict[str, np.ndarray] = {}
    for name, given in params.items():
        if name not in known:
            raise ValueError(f"params: expected names of sites of {model}; got {name!r}. Its sites: {', '.join(known)}.")
        if name not in wanted:
            continue
        structure: Any = jax.tree.structure(given)
        if structure != jax.tree.structure(wanted[name]):
            raise ValueError(f"params: expected {name!r} in the form that {model} gives it; got another. Give the fitted value.")
        arrays = jax.tree.map(np.asarray, given)
        arrays = jax.tree.map(lambda a: a.astype(np.float64) if a.dtype.kind == "f" else a, arrays)
        shape, came = (jax.tree.map(np.shape, tree) for tree in (wanted[name], arrays))
        if came == shape:
            values[name] = arrays
        elif isinstance(arrays, np.ndarray) and arrays.shape[arrays.ndim - len(shape) :] == shape and arrays.ndim > len(shape):
            draws[name] = arrays.reshape(-1, *shape)
        else:
            raise ValueError(
                f"params: expected shape {shape} for {name!r}, or draws of that along leading axes; got {came}. Check the "
                "parameter."
            )
    counts = {name: len(array) for name, array in draws.items()}
    if len(set(counts.values())) > 1:
        raise ValueError(f"params: expected the same number of draws for all parameters; got {counts}. Take them from one fit.")
    return values, draws
