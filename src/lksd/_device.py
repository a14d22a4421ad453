"""The device that JAX computes on."""

from __future__ import annotations

import jax


def on_processor() -> bool:
    """Whether programs run on a processor, not on an accelerator: what is fast on one is often slow on the other."""
    chosen = jax.config.jax_default_device
    return (jax.default_backend() if chosen is None else getattr(chosen, "platform", chosen)) == "cpu"


def device_memory() -> int | None:
    """The bytes of an accelerator that JAX may use; None for a processor, or where the device does not say."""
    stats = None if on_processor() else jax.local_devices()[0].memory_stats()
    return stats.get("bytes_limit") if stats else None
