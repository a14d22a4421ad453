"""Where the parts of a computation run: in this process, on all its devices, or on a Dask cluster."""

from .local import Engine, EngineError, Local, opened

__all__ = ["Engine", "EngineError", "Local", "opened"]
