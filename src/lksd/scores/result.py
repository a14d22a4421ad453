"""Estimated scores with everything needed to judge them."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np

SCHEMA = 1


@dataclass(frozen=True, eq=False)
class ScoreEstimate:
    """Scores of one model at n observations.

    Attributes
    ----------
    score, mcse : (n, D) arrays
        The estimate and its Monte Carlo standard error.
    rhat, ess : (n,) arrays
        Rank-normalised split R-hat and bulk effective sample size, the worst over the log density and the
        norm of the score; NaN where there are no chains.
    acceptance, divergences : (n,) arrays
    batch_means : (n, K, D) array
        Means over consecutive batches of draws; their spread is the noise that the test sees. K = 0 for exact scores.
    method, notes
        How the scores were made.
    """

    score: np.ndarray
    mcse: np.ndarray
    index: np.ndarray
    seed: int
    method: str
    rhat: np.ndarray
    ess: np.ndarray
    acceptance: np.ndarray
    divergences: np.ndarray
    batch_means: np.ndarray
    notes: tuple[str, ...] = ()

    def save(self, path: str | Path) -> None:
        """Write to an .npz file that ``lksd.load_scores`` reads."""
        given = {f.name: getattr(self, f.name) for f in fields(self)}
        with Path(path).open("wb") as file:
            np.savez(file, schema=SCHEMA, **given)

    def __str__(self) -> str:
        n, dim = self.score.shape
        lines = [f"scores of {n} observations in {dim} dimensions: {self.method}"]
        if np.isfinite(self.rhat).any():
            lines.append(
                f"R-hat at most {np.nanmax(self.rhat):.3f}, ESS at least {np.nanmin(self.ess):.0f}, "
                f"acceptance {self.acceptance.mean():.2f}, {int(self.divergences.sum())} divergences"
            )
        return "\n".join([*lines, *(f"Note: {note}" for note in self.notes)])


def load_scores(path: str | Path) -> ScoreEstimate:
    """Read scores written by ``ScoreEstimate.save``."""
    try:
        with np.load(path, allow_pickle=False) as file:
            record = dict(file)
    except (ValueError, OSError) as error:
        if isinstance(error, FileNotFoundError):
            raise
        raise ValueError(f"{path}: expected scores written by ScoreEstimate.save; it is no such file. Check the path.") from error
    if int(record.pop("schema", 0)) != SCHEMA or "score" not in record:
        raise ValueError(f"{path}: expected scores of schema {SCHEMA}; got something else. Estimate them again.")
    notes = tuple(str(note) for note in record.pop("notes", ()))
    return ScoreEstimate(**(record | {"seed": int(record["seed"]), "method": str(record["method"]), "notes": notes}))
