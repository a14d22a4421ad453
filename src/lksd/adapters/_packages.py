"""Other people's packages: imported when they are needed, and without a trace in the process."""

from __future__ import annotations

import importlib
import os
from contextlib import contextmanager
from typing import Any

import jax


def needed(caller: str, module: str, extra: str) -> Any:
    """A module of another package; where that is missing, the error has the pip command."""
    try:
        with settings_kept():
            return importlib.import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        if error.name is None or error.name.partition(".")[0] != package:
            raise
        raise ImportError(
            f"{caller} needs {package}, which is not installed. Run: pip install 'lksd[{extra}]'"
        ) from error


@contextmanager
def settings_kept():
    """JAX's configuration and the environment are afterwards what they were: some packages change
    both when imported.
    """
    names = [name for name in dir(jax.config) if name.startswith("jax_")]
    before, environment = {name: getattr(jax.config, name) for name in names}, dict(os.environ)
    try:
        yield
    finally:
        for name, value in before.items():
            if getattr(jax.config, name) != value:
                jax.config.update(name, value)
        for name in os.environ.keys() - environment.keys():
            del os.environ[name]
        os.environ.update(environment)
