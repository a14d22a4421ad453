"""The devices that JAX computes on."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import numpy as np


def chosen_device() -> Any:
    """The device, or the name of the backend, that ``jax.default_device`` names in this thread; None where it names none."""
    config: Any = jax.config
    return config.jax_default_device


def devices() -> list[Any]:
    """Where work may run."""
    chosen = chosen_device()
    return jax.local_devices() if chosen is None else [jax.local_devices(backend=chosen)[0] if isinstance(chosen, str) else chosen]


def on_processor() -> bool:
    """Whether programs run on a processor, not on an accelerator: what is fast on one is often slow on the other."""
    return devices()[0].platform == "cpu"


def device_memory() -> int | None:
    """The bytes of an accelerator that JAX may use; None for a processor, or where the device does not say."""
    stats = None if on_processor() else devices()[0].memory_stats()
    return stats.get("bytes_limit") if stats else None


def on_device(tree: Any) -> Any:
    """NumPy arrays as JAX arrays, so that they are sent once, and all at the same time."""
    arrays, rest = eqx.partition(tree, lambda leaf: isinstance(leaf, np.ndarray))
    return eqx.combine(jax.device_put(arrays), rest)
