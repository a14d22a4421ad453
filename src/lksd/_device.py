"""The device that JAX computes on."""

from __future__ import annotations

from typing import Any

import jax


def chosen_device() -> Any:
    """The device, or the name of the backend, that ``jax.default_device`` names in this thread; None where it names none."""
    config: Any = jax.config
    return config.jax_default_device


def on_processor() -> bool:
    """Whether programs run on a processor, not on an accelerator: what is fast on one is often slow on the other."""
    chosen = chosen_device()
    return (jax.default_backend() if chosen is None else getattr(chosen, "platform", chosen)) == "cpu"


def device_memory() -> int | None:
    """The bytes of an accelerator that JAX may use; None for a processor, or where the device does not say."""
    stats = None if on_processor() else jax.local_devices()[0].memory_stats()
    return stats.get("bytes_limit") if stats else None
