"""Array aliases. Axis names: n, m observations; D coordinates; S models; B replicates; M moves."""

from __future__ import annotations

import jax
import numpy as np
from jaxtyping import Bool, Float, Int, Num

Array = jax.Array | np.ndarray

Scalar = Float[Array, ""]
Observation = Num[Array, "D"]
Observations = Num[Array, "n D"]
Reals = Float[Array, "n D"]
Tokens = Int[Array, "n D"]
Mask = Bool[Array, "n D"]
Block = Float[Array, "n m"]
