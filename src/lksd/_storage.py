"""Files that are whole or not there, and what says that they are as they were written."""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import tempfile
import tokenize
import zipfile
import zlib
from pathlib import Path

import numpy as np

# What NumPy, zip and zlib raise at an archive that is cut, changed or something else.
NOT_ARRAYS = (
    AttributeError,
    EOFError,
    IndexError,
    KeyError,
    MemoryError,
    NotImplementedError,
    OSError,
    OverflowError,
    RuntimeError,
    SyntaxError,
    TypeError,
    UnicodeError,
    ValueError,
    tokenize.TokenError,
    zipfile.BadZipFile,
    zlib.error,
)


def write_whole(path: str | Path, content: bytes | str) -> None:
    """Replace the file at once, by one that is whole and on the disk; where that fails, what was
    there stays.

    Links are followed, and permissions of a file that is there are kept. What cannot be replaced,
    such as a pipe, is written to.
    """
    content = content.encode() if isinstance(content, str) else content
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        mode = None
    if mode is not None and not stat.S_ISREG(mode):
        Path(path).write_bytes(content)
        return
    path = Path(os.path.realpath(path))
    handle, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:40]}-", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if mode is None:
            # the permissions of a new file, which only setting the mask tells
            mask = os.umask(0o077)
            os.umask(mask)
        os.chmod(draft, 0o666 & ~mask if mode is None else stat.S_IMODE(mode))
        os.replace(draft, path)
    except BaseException as error:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(draft)
        if isinstance(error, OSError) and error.filename is None:  # as where a disk is full
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """All arrays of an .npz file; raises one of ``NOT_ARRAYS`` where it is none."""
    with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
        return dict(archive)


def checksum(*parts: bytes) -> str:
    """A digest of the parts, each with its length."""
    found = hashlib.blake2b(digest_size=16)
    for part in parts:
        found.update(len(part).to_bytes(8, "little"))
        found.update(part)
    return found.hexdigest()


def arrays_checksum(arrays: dict[str, np.ndarray]) -> str:
    """Of arrays by their names, with their types and shapes."""
    every = sorted((name, np.ascontiguousarray(array)) for name, array in arrays.items())
    return checksum(
        *(
            part
            for name, one in every
            for part in (name.encode(), f"{one.dtype.str}{one.shape}".encode(), one.tobytes())
        )
    )
