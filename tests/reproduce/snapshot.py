"""A small file in the format of the arXiv snapshot."""

import gzip
import json

import numpy as np

CATEGORIES = {
    "math.PR": "math.PR",
    "cs.LG": "cs.LG stat.ML",
    "stat.ME": "stat.ME",
    "stat.TH": "math.ST stat.TH",
}


def write_snapshot(path, each=16, length=150):
    """Abstracts whose words come from a vocabulary of their category and from a common one."""
    rng = np.random.default_rng(0)
    letters = np.array(list("bcdfghklmnprtvz"))
    own = {name: ["".join(rng.choice(letters, 7)) for _ in range(60)] for name in CATEGORIES}
    common = ["".join(rng.choice(letters, 7)) for _ in range(60)]
    with gzip.open(path, "wt", encoding="utf-8") as file:
        for name, listed in CATEGORIES.items():
            for number in range(each):
                text = " ".join(rng.choice(own[name] + common, length))
                record = {
                    "id": f"{name}/{number}",
                    "categories": listed,
                    "abstract": f"However, we show $x^2$ in 3.5 cases: {text}.",
                }
                file.write(json.dumps(record) + "\n")
        file.write(
            json.dumps(
                {"id": "w", "categories": "stat.TH", "abstract": "This paper has been withdrawn."}
            )
            + "\n"
        )
    return path
