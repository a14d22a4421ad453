"""Where the parts of a computation run: in this process, on all its devices, or on a Dask cluster."""

from .base import Engine, EngineError
from .choice import opened
from .local import Local

__all__ = ["Engine", "EngineError", "Local", "opened"]
