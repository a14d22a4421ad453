"""Files as users have them: models, data and documents in one folder."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

MODELS = """
import numpy as np
import lksd

weight = np.array([[1.0], [0.5], [-0.5]])
p, q = lksd.models.PPCA(weight, 2.0), lksd.models.PPCA(weight, 1.0)
number = 3
kernel = lksd.kernels.IMQ(2.0)
Model = lksd.models.PPCA
"""


def numbers() -> np.ndarray:
    rng = np.random.default_rng(0)
    return rng.normal(size=(60, 1)) @ np.array([[1.0, 0.5, -0.5]]) + rng.normal(size=(60, 3))


def topic_models() -> dict[str, dict[str, np.ndarray]]:
    topics = np.random.default_rng(1).dirichlet(np.full(12, 0.3), size=2)
    words = np.array([f"word{i}" for i in range(12)])
    return {
        name: {"concentration": np.full(2, a), "topics": topics, "vocabulary": words}
        for name, a in (("a", 3.0), ("b", 0.3))
    }


def documents(count: int = 30) -> list[list[str]]:
    rng, model = np.random.default_rng(2), topic_models()["b"]
    drawn = []
    for i in range(count):
        shares = rng.dirichlet(model["concentration"]) @ model["topics"]
        drawn.append(
            [
                str(model["vocabulary"][j])
                for j in rng.choice(12, 8 + i % 5, p=shares / shares.sum())
            ]
        )
    return drawn


def write_files(folder: Path) -> None:
    (folder / "models.py").write_text(MODELS)
    np.save(folder / "x.npy", numbers())
    np.savez(folder / "two.npz", x=numbers(), y=numbers()[:10])
    for name, model in topic_models().items():
        np.savez(folder / f"{name}.npz", **model)
    with (folder / "docs.jsonl").open("w") as file:
        for words in documents():
            file.write(json.dumps(words) + "\n")
