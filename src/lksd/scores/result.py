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
    batch_means : (n, C, B, D) array
        Means over B consecutive batches of draws of C chains; their spread is the noise that the test sees. C = 0 for
        exact scores.
    two_starts : bool
        Whether every second chain began elsewhere, so that what is left of the beginning can be measured.
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
    two_starts: bool = False
    notes: tuple[str, ...] = ()

    def save(self, path: str | Path) -> None:
        """Write to an .npz file that ``lksd.load_scores`` reads."""
        given = {f.name: getattr(self, f.name) for f in fields(self)}
        with Path(path).open("wb") as file:
            np.savez(file, schema=SCHEMA, **given)

    def to_arviz(self):
        """ArviZ InferenceData: the batch means of the scores by chain as its draws, the diagnostics as its sample statistics."""
        try:
            import arviz
        except ImportError as error:
            raise ImportError("to_arviz needs ArviZ, which is not installed. Run: pip install 'lksd[arviz]'") from error
        if not self.batch_means.shape[1]:
            raise ValueError("to_arviz: these scores are exact, so there are no chains to show. Estimate them with exact=False.")
        draws = np.moveaxis(self.batch_means, 0, 2)  # (chain, batch, observation, coordinate)
        each = {"rhat": self.rhat, "ess": self.ess, "acceptance": self.acceptance, "divergences": self.divergences}
        dims = {name: ["observation"] for name in each} | {name: ["observation", "coordinate"] for name in ("score", "mcse")}
        return arviz.from_dict(
            posterior={"score": draws},
            constant_data={"mcse": self.mcse} | each,
            coords={"observation": self.index, "coordinate": np.arange(self.score.shape[1])},
            dims=dims,
            attrs={"method": self.method, "seed": self.seed},
        )

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
    plain = {"seed": int(record["seed"]), "method": str(record["method"]), "two_starts": bool(record["two_starts"]), "notes": notes}
    return ScoreEstimate(**(record | plain))
