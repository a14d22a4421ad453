"""Objects on their way to other processes, with the classes of a user's script or notebook."""

from __future__ import annotations

import io
from dataclasses import MISSING, Field, field
from functools import partial
from inspect import get_annotations
from typing import Any

import cloudpickle
import equinox as eqx

OPTIONS = ("default", "default_factory", "init", "repr", "hash", "compare", "metadata", "kw_only")
# of a class, from its fields
MADE = ("__dataclass_fields__", "__dataclass_params__", "__match_args__")


def dumps(thing: Any) -> bytes:
    """As bytes that ``pickle.loads`` reads."""
    file = io.BytesIO()
    Pickler(file).dump(thing)
    return file.getvalue()


class Pickler(cloudpickle.Pickler):
    """cloudpickle sends a class as an empty one whose contents follow. An Equinox module must have
    its fields from the first, since JAX is told of them when the class is made. This may go with
    https://github.com/patrick-kidger/equinox/issues/231.
    """

    def reducer_override(self, obj: Any) -> Any:
        reduced = super().reducer_override(obj)
        if not (
            isinstance(reduced, tuple) and isinstance(obj, type) and issubclass(obj, eqx.Module)
        ):
            return reduced
        make, (*first, contents, tracker, extra), (state, slots), *rest = reduced
        names = get_annotations(obj)
        own = {
            name: Declared(one) for name, one in obj.__dataclass_fields__.items() if name in names
        }
        contents = contents | {"__annotations__": names} | own
        state = {name: value for name, value in state.items() if name not in MADE}
        return make, (*first, contents, tracker, extra), (state, slots), *rest


class Declared:
    """A field of a class, which is read as it was declared."""

    def __init__(self, declared: Field):
        self.declared = declared

    def __reduce__(self) -> Any:
        given = {
            name: value
            for name in OPTIONS
            if (value := getattr(self.declared, name)) is not MISSING
        }
        return partial(field, **(given | {"metadata": dict(self.declared.metadata)})), ()
