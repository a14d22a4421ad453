"""The order of an alphabet, which decides whose neighbour a value is in the cyclic operators.

Any order is valid. The variance of the scores depends on it: p(x with x_d -> its successor) / p(x) stays near one where
neighbours have similar probabilities.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int

from .._validation import check_finite


def vocabulary_order(probabilities) -> Int[np.ndarray, " L"]:
    """The better of two orders for values with these (mean) probabilities: ascending, or up and down again.

    Take the probabilities from the models, never from the test data.

    Examples
    --------
    >>> import lksd
    >>> lksd.stein.vocabulary_order([0.4, 0.1, 0.2, 0.3])
    array([1, 2, 3, 0])
    """
    values = check_finite("probabilities", np.asarray(probabilities, dtype=np.float64))
    if values.ndim != 1 or len(values) < 2 or (values < 0).any():
        raise ValueError(
            f"probabilities: expected at least two numbers, none negative; got shape {values.shape}. Give one for each value."
        )
    ascending = np.argsort(values, kind="stable")
    up_and_down = np.concatenate([ascending[0::2], ascending[1::2][::-1]])  # no jump where the cycle closes
    return min((up_and_down, ascending), key=lambda order: squared_score(values, order))


def squared_score(probabilities: Float[np.ndarray, " L"], order: Int[np.ndarray, " L"]) -> float:
    """E (p(successor)/p(value) - 1)^2 over values that can occur."""
    own = probabilities[order]
    change = np.roll(own, -1) - own
    return float(np.sum(change[own > 0] ** 2 / own[own > 0]))
