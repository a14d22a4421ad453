"""Programs serve many sizes, and only so many are kept."""

import jax.numpy as jnp
import ksd
import numpy as np
from compilations import compilations

import lksd
from lksd import _jax
from lksd._jax import room

X = np.random.default_rng(0).normal(size=(400, 3))
P, Q = (lksd.models.PPCA(np.ones((3, 1)), noise) for noise in (1.0, 2.0))


def test_new_sizes_compile_next_to_nothing():
    ksd.compare(X[:100], P, Q)
    before = compilations()
    for n in range(101, 401, 15):  # 20 sizes, of which each compiled four programs
        ksd.compare(X[:n], P, Q)
    assert compilations() - before < 15


def test_scores_do_not_depend_on_how_many_there_are():
    whole = lksd.estimate_scores(P, X).score
    for n in (1, 63, 64, 65, 300):
        np.testing.assert_allclose(lksd.estimate_scores(P, X[:n]).score, whole[:n], rtol=1e-13)


def test_rooms_are_few_and_close():
    found = [room(n, 16) for n in range(1, 2_000)]
    assert all(n <= one <= max(16, 1.5 * n + 16) for n, one in enumerate(found, 1))
    assert len(set(found)) < 16


def test_programs_are_bounded_and_can_be_forgotten(monkeypatch):
    monkeypatch.setattr(_jax.programs, "size", 4)
    for scale in range(1, 6):
        lksd.compare_scores(
            X[:20],
            -X[:20],
            -X[:20] / 2,
            kernel=lambda a, b, s=scale: jnp.exp(-jnp.sum((a - b) ** 2) / s),
        )
        assert 0 < len(_jax.programs) <= 4
    lksd.clear_caches()
    assert len(_jax.programs) == 0
    assert lksd.estimate_scores(P, X[:20]).score.shape == (20, 3)


def test_a_compilation_gives_back_what_it_has_freed(monkeypatch):
    given_back = []
    monkeypatch.setattr(_jax, "trimmer", lambda: given_back.append)
    lksd.clear_caches()
    lksd.estimate_scores(P, X[:20])
    assert 0 < len(given_back) <= len(_jax.programs)
    before = len(given_back)
    lksd.estimate_scores(P, X[:20])  # nothing is compiled
    assert len(given_back) == before
