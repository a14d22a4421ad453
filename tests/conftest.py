"""Shapes and types are checked while the tests run, by jaxtyping and beartype."""

import sys
from pathlib import Path

from jaxtyping import install_import_hook

TESTS = Path(__file__).parent
sys.path[:0] = [str(TESTS), str(TESTS / "inference")]
install_import_hook("lksd", "beartype.beartype")
