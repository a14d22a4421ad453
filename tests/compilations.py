"""How much XLA has compiled in this process."""

import jax

EVENT = "/jax/core/compile/backend_compile_duration"
_seen: list[str] = []
jax.monitoring.register_event_duration_secs_listener(
    lambda name, *_, **__: _seen.append(name) if name == EVENT else None
)


def compilations() -> int:
    return len(_seen)
