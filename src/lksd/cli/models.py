"""Models and other objects from files: ``file.py:name``, saved models, scores and topics as .npz,
and pickles where they are trusted.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterable
from functools import lru_cache
from inspect import Parameter, signature
from pathlib import Path
from types import ModuleType
from typing import Any

from .. import load_model, load_scores
from .._validation import check_choice
from ..adapters.recognition import EXPECTED, recognise
from ..models import LDA, LatentVariableModel
from ..models.files import is_model
from ..scores import ScoreEstimate
from .data import read_arrays

STARRED = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
PICKLES = (".model", ".pkl", ".pickle", ".joblib", ".gensim")


def read_model(
    option: str, reference: str, trust_pickle: bool
) -> LatentVariableModel | ScoreEstimate:
    """The model that an option names."""
    file, _, name = reference.rpartition(":")
    if file.endswith(".py"):
        return as_model(option, reference, named_in(option, Path(file), name))
    path = Path(reference)
    if path.suffix == ".py":
        raise ValueError(
            f"{option}: expected file.py:name; got {reference!r}. Say which variable of the file "
            "is the model."
        )
    if not path.is_file():
        raise ValueError(
            f"{option}: expected file.py:name or a file; got {reference!r}, and there is none. "
            "Check the path."
        )
    if path.suffix == ".npz":
        return read_archive(path)
    if path.suffix not in PICKLES:
        raise ValueError(
            f"{option}: expected file.py:name, an .npz file, or a pickle ({', '.join(PICKLES)}); "
            f"got {reference!r}. Name a model in a Python file."
        )
    if not trust_pickle:
        raise ValueError(
            f"{option}: {reference!r} is a pickle, and loading one runs whatever code it holds. "
            "Add --trust-pickle if you made it or trust who did."
        )
    return as_model(option, reference, read_pickle(option, path))


def named_in(
    option: str,
    path: Path,
    name: str,
    kinds: Any = (LatentVariableModel, ScoreEstimate),
    called: str = "models",
) -> Any:
    """The variable of a Python file; where there is none, those of the ``kinds`` that are looked
    for are listed.
    """
    if not path.is_file():
        raise ValueError(
            f"{option}: expected a Python file; {str(path)!r} does not exist. Check the path."
        )
    try:
        module = imported(path.resolve())
    except ValueError as error:
        raise ValueError(f"{option}: {error}") from error.__cause__
    if not hasattr(module, name):
        known = [key for key, value in vars(module).items() if isinstance(value, kinds)]
        raise ValueError(
            f"{option}: expected a variable {name!r} in {path}; there is none. Its {called}: "
            f"{', '.join(known) or 'none at all'}."
        )
    return getattr(module, name)


def named_or_own(
    option: str, text: str, kind: type, called: str, names: Iterable[str] | None = None
) -> Any:
    """A name as it is, one of ``names`` where they are given; or what ``file.py:name`` is: an
    instance of ``kind``.

    A class in the file stands for the instance that it makes without arguments.
    """
    file, _, name = text.rpartition(":")
    if not file.endswith(".py"):
        return text if names is None else check_choice(option, text, names)
    value = instance(option, text, named_in(option, Path(file), name, kind, called))
    if not isinstance(value, kind):
        raise ValueError(
            f"{option}: expected one of the {called} in {file}; {name!r} is of type "
            f"{type(value).__name__}. Give another."
        )
    return value


def instance(option: str, reference: str, value: Any) -> Any:
    """A class as the instance that it makes without arguments; anything else as it is."""
    if not isinstance(value, type):
        return value
    if needed := [
        one.name
        for one in signature(value).parameters.values()
        if one.default is one.empty and one.kind not in STARRED
    ]:
        raise ValueError(
            f"{option}: expected an instance, or a class without required arguments; {reference!r} "
            f"is a class that needs {', '.join(needed)}. Make an instance in the file, and name "
            "that."
        )
    return value()


@lru_cache(maxsize=64)
def imported(path: Path) -> ModuleType:
    """The file as a module, which all options share that name something in it."""
    spec = importlib.util.spec_from_file_location(f"_lksd_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise ValueError(f"{str(path)!r} cannot be imported. Check that it is Python code.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
    # whatever the user's file raises is the user's to read
    except (Exception, SystemExit) as error:
        raise ValueError(
            f"{path.name} fails when it is run: {type(error).__name__}: {error}. Mend the file."
        ) from error
    finally:
        sys.path.remove(str(path.parent))
    # workers of a cluster do not have the file, so its classes are sent to them
    if importlib.util.find_spec("cloudpickle"):
        importlib.import_module("cloudpickle").register_pickle_by_value(module)
    return module


def as_model(option: str, reference: str, value: Any) -> LatentVariableModel | ScoreEstimate:
    """One of ours, or one that an adapter knows."""
    found = value if isinstance(value, ScoreEstimate) else recognise(value)
    if found is not None:
        return found
    what = f"the class {value.__name__}" if isinstance(value, type) else f"a {type(value).__name__}"
    raise ValueError(
        f"{option}: expected {EXPECTED}, or a ScoreEstimate; {reference!r} is {what}. Give an "
        "instance."
    )


def read_archive(path: Path) -> LatentVariableModel | ScoreEstimate:
    """A saved model, saved scores, or an LDA as arrays ``concentration``, ``topics`` and perhaps
    ``vocabulary``.
    """
    arrays = read_arrays(path)
    if is_model(arrays):
        return load_model(path)
    if not {"topics", "concentration"} <= set(arrays):
        return load_scores(path)
    words = arrays["vocabulary"].tolist() if "vocabulary" in arrays else None
    return LDA(arrays["concentration"], arrays["topics"], words)


def read_pickle(option: str, path: Path) -> Any:
    """An object of gensim or joblib; only where the user trusts it."""
    try:
        if path.suffix in (".model", ".gensim"):
            from gensim.models import LdaModel

            return LdaModel.load(str(path))
        import joblib

        return joblib.load(path)
    except ImportError as error:
        raise ImportError(
            f"{option}: {path.name} needs {error.name}, which is not installed. Install it with "
            "pip."
        ) from error
    except Exception as error:  # unpickling may raise anything
        raise ValueError(
            f"{option}: {str(path)!r} cannot be loaded ({type(error).__name__}: {error}). Check "
            "the file."
        ) from error
