"""How many functions and files of this library a call passes, from its options to its answer."""

import sys
from pathlib import Path

import numpy as np
import pytest

import lksd

PACKAGE = str(Path(lksd.__file__).parent)
KERNEL_TEST = {"criterion": "ksd"}
FEW = {"warmup": 5, "draws": 20}


def entered(call):
    """The code of this library that a call enters in its own thread, when it has all its
    programs.
    """
    found = set()

    def look(frame, event, _):
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            found.add(frame.f_code)

    call()
    before = sys.getprofile()
    sys.setprofile(look)
    try:
        call()
    finally:
        sys.setprofile(before)
    return found


def factors():
    rng = np.random.default_rng(0)
    weight = rng.normal(size=(3, 2))
    x = rng.normal(size=(40, 2)) @ weight.T + rng.normal(size=(40, 3))
    return x, lksd.models.PPCA(weight, 1.0), lksd.models.PPCA(weight, 1.5)


def topics():
    rng = np.random.default_rng(0)
    p, q = (lksd.models.LDA([0.5, 0.5], rng.dirichlet(np.ones(10), size=2)) for _ in range(2))
    return rng.integers(0, 10, size=(20, 5)), p, q


# The first number is of functions that have a name, which does not depend on how Python computes
# comprehensions; the second of everything, the third of files.
@pytest.mark.parametrize(
    ("problem", "options", "most"),
    [
        (factors, KERNEL_TEST, (190, 218, 28)),
        (factors, {}, (222, 268, 33)),
        (topics, KERNEL_TEST, (238, 292, 34)),
        (topics, {}, (279, 361, 41)),
        (topics, KERNEL_TEST | FEW | {"exact": False}, (276, 368, 41)),
    ],
    ids=["exact", "exact-two-criteria", "topics", "topics-two-criteria", "topics-by-chains"],
)
def test_a_call_passes_few_functions(problem, options, most):
    x, p, q = problem()
    found = entered(lambda: lksd.compare(x, p, q, check=False, **options))
    named = [code for code in found if not code.co_name.startswith("<")]
    files = {code.co_filename for code in found}
    counted = len(named), len(found), len(files)
    assert all(a <= b for a, b in zip(counted, most, strict=True)), (counted, most)
