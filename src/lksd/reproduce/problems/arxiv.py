"""Topic models of arXiv articles, from their abstracts (Section 4.3).

The models are trained and every article is scored once, before the trials, and both are kept beside
the store; a trial draws its articles, and samples of the models for the MMD.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from ... import discrete_operators, estimate_scores
from ..._storage import write_whole
from ...adapters import from_gensim
from ...domains import DISCRETE
from ...engines import Engine, track
from ...kernels import IMQ, BagOfWords, Kernel
from ...models import LDA
from ...stein import SteinOperator
from ..experiment import TABLE, Experiment, Outcome, Task
from ..testing import OF_P, OF_Q, Scored, run_tests
from .topics import Lengths, documents

LENGTH, TARGET = 100, "stat.TH"
ALL = 10_000  # documents of a model at most, for the MMD
LENGTHS = {
    "lksd": Lengths(500, 5_000),
    "lksdextra": Lengths(500, 15_000),
    "stable": Lengths(500, 1_000),
    "ours": Lengths(500, 5_000),
}
ROLES = {OF_P: "p", OF_Q: "q"}
OWN_STOP_WORDS = frozenset(
    re.findall(
        r"\w+",
        "however via using study present paper result results also based show use consider "
        "considers considered resp",
    )
)


def gensim() -> Any:
    try:
        import gensim.models
        import gensim.parsing.preprocessing
    except ImportError as error:
        raise ImportError(
            "the arXiv experiments need gensim, which is not installed. Run: pip install "
            "'lksd[topics]'"
        ) from error
    return gensim


def abstracts(path: Path) -> Iterator[tuple[set[str], list[str]]]:
    """The categories and the words of every abstract that was not withdrawn; ``path`` holds one
    JSON object a line.
    """
    dropped = gensim().parsing.preprocessing.STOPWORDS | OWN_STOP_WORDS
    with (
        gzip.open(path, "rt", encoding="utf-8")
        if path.suffix == ".gz"
        else path.open(encoding="utf-8") as lines
    ):
        for number, line in enumerate(lines, 1):
            try:
                record = json.loads(line)
                text, categories = record["abstract"], set(record["categories"].split())
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise ValueError(
                    f"{path}: expected an object with 'abstract' and 'categories' in each line; "
                    f"line {number} is not. Give the arXiv snapshot as Kaggle has it."
                ) from error
            if "withdrawn" not in text.lower():
                yield categories, [word for word in words(text) if word not in dropped]


def words(text: str) -> list[str]:
    """Lower-case words; formulas and numbers each become one word."""
    text = re.sub(r"\$\$?[^$]*\$\$?", " xmathx ", text).lower()
    text = re.sub(r"\b\d+([.,]\d+)*\b", " xnumx ", text)
    return re.findall(r"[a-z]+(?:-[a-z]+)*", text)


def corpus(
    path: Path, categories: tuple[str, ...]
) -> tuple[dict[str, list[list[int]]], dict[int, str]]:
    """The documents of each category as ids into one vocabulary, and that vocabulary."""
    ids: dict[str, int] = {}
    documents: dict[str, list[list[int]]] = {name: [] for name in categories}
    for listed, tokens in abstracts(path):
        for name in sorted(listed & set(categories)):
            documents[name].append([ids.setdefault(token, len(ids)) for token in tokens])
    return documents, {number: token for token, number in ids.items()}


def topic_model(documents: list[list[int]], vocabulary: dict[int, str], topics: int = 100):
    """gensim's LdaModel as the paper trained it."""
    bags = [
        list(zip(*(part.tolist() for part in np.unique(document, return_counts=True)), strict=True))
        for document in documents
    ]
    return gensim().models.LdaModel(
        [bag for bag in bags if bag], topics, vocabulary, passes=5, alpha="auto", random_state=0
    )


def of_length(documents: list[list[int]], length: int, seed: int) -> np.ndarray:
    """Documents of at least ``length`` words, cut to that many of them, drawn without
    replacement.
    """
    rng = np.random.default_rng(seed)
    return np.array(
        [
            rng.choice(document, length, replace=False)
            for document in documents
            if len(document) >= length
        ]
    )


@dataclass(frozen=True)
class Articles:
    """Models of the articles of two categories, tested on those of a third."""

    category_p: str
    category_q: str

    def prepare(
        self, data: Path, cache: Path, methods: tuple[str, ...], engine: Engine | None = None
    ) -> None:
        """Train the models and score the articles, unless that has been done."""
        if not data.is_file():
            raise ValueError(
                f"{data}: expected a snapshot of arXiv; there is no such file. Check the path."
            )
        folder = self.folder(data, cache)
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / "articles.npz").exists():
            self.train(data, folder)
        kinds = {method.partition("-")[0] for method in methods} & set(LENGTHS)
        models, x = load(folder)
        lacking = [
            (kind, role)
            for kind in sorted(kinds)
            for role in ROLES
            if not scored_path(folder, kind, role).exists()
        ]
        with track("scores of all articles", max(len(lacking), 1)) as advance:
            for kind, role in lacking:
                parts = score(
                    kind, models[role], operators(kind, models), x, seed=role, engine=engine
                )
                save(
                    scored_path(folder, kind, role),
                    {f"part{number}": part for number, part in enumerate(parts)},
                )
                advance(1)

    def folder(self, data: Path, cache: Path) -> Path:
        """A folder for this snapshot: its name holds the file's size and the digest of its
        beginning.
        """
        with data.open("rb") as file:
            digest = hashlib.sha256(
                f"{data.stat().st_size}".encode() + file.read(2**20)
            ).hexdigest()[:12]
        return cache / f"{self.category_p}-{self.category_q}-{digest}"

    def train(self, data: Path, folder: Path) -> None:
        categories = (self.category_p, self.category_q, TARGET)
        with track("training topic models", 3) as advance:
            found, vocabulary = corpus(data, categories)
            for name in categories:
                if not found[name]:
                    raise ValueError(
                        f"{data}: expected abstracts of {', '.join(categories)}; none is of "
                        f"{name}. Check the snapshot."
                    )
            x = of_length(found[TARGET], LENGTH, seed=0)
            advance(1)
            arrays: dict[str, np.ndarray] = {"x": x}
            for role, name in ((OF_P, self.category_p), (OF_Q, self.category_q)):
                model = from_gensim(topic_model(found[name], vocabulary))
                arrays |= {
                    f"concentration_{ROLES[role]}": model.concentration,
                    f"topics_{ROLES[role]}": model.topics,
                }
                advance(1)
        save(folder / "articles.npz", arrays)

    def run(self, task: Task) -> Iterator[Outcome]:
        assert task.data is not None
        assert task.cache is not None
        folder = self.folder(task.data, task.cache)
        models, x = load(folder)
        if len(x) < task.largest:
            raise ValueError(
                f"n: expected at most {len(x)}, the articles of {TARGET} with {LENGTH} words; got "
                f"{task.largest}. Lower --n."
            )
        rows = task.rng(0).choice(len(x), len(x), replace=False)[: task.largest]
        size = models[OF_P].n_values

        def scores(kind: str, label: Any, role: int, pair: Any) -> tuple[Scored, float]:
            return Scored(
                tuple(part[rows] for part in scored(folder, kind, role)), operators(kind, models)
            ), 0.0

        return run_tests(
            task,
            x[rows],
            pairs=lambda case: (self.category_p, self.category_q),
            score=scores,
            sample=lambda label, role, count: documents(
                models[role], count, task.seed + role, LENGTH
            ),
            count=lambda kind, n: ALL if kind == "mmdextra" else n + sum(LENGTHS["lksd"]),
            kernel=lambda name: kernel(size),
            default="imq",
        )


def operators(kind: str, models: dict[int, LDA]) -> tuple[SteinOperator, ...]:
    size = models[OF_P].n_values
    if kind == "ours":
        return discrete_operators(models[OF_P], models[OF_Q])
    return (DISCRETE["barker" if kind == "stable" else "difference"](size),)


def score(
    kind: str,
    model: LDA,
    operators: tuple[SteinOperator, ...],
    x: np.ndarray,
    seed: int,
    engine: Engine | None = None,
) -> tuple[np.ndarray, ...]:
    """The paper's plain means, and for the stable test its modified posteriors; ours are
    Rao-Blackwellised.
    """
    options: dict[str, Any] = {} if kind == "ours" else {"control_variates": "none", "chains": 1}
    options |= LENGTHS[kind].sweeps(LENGTH)
    return estimate_scores(
        model, x, operator=operators, exact=False, seed=seed, engine=engine, **options
    ).part("score")


@cache
def load(folder: Path) -> tuple[dict[int, LDA], np.ndarray]:
    with np.load(folder / "articles.npz") as arrays:
        models = {
            role: LDA(arrays[f"concentration_{name}"], arrays[f"topics_{name}"])
            for role, name in ROLES.items()
        }
        return models, arrays["x"]


def scored_path(folder: Path, kind: str, role: int) -> Path:
    return folder / f"{kind}-{ROLES[role]}.npz"


@cache
def scored(folder: Path, kind: str, role: int) -> tuple[np.ndarray, ...]:
    with np.load(scored_path(folder, kind, role)) as arrays:
        return tuple(arrays[f"part{number}"] for number in range(len(arrays.files)))


def save(path: Path, arrays: dict[str, np.ndarray]) -> None:
    """Whole or not at all: another process may do the same."""
    content = io.BytesIO()
    np.savez(content, **arrays)  # type: ignore[arg-type]
    write_whole(path, content.getvalue())


@cache
def kernel(size: int) -> Kernel:
    return BagOfWords(IMQ(), size)


def _experiment(name: str, table: str, category: str, methods: tuple[str, ...]) -> Experiment:
    articles = Articles(category, "stat.ME")
    return Experiment(
        name=name,
        aliases=(table,),
        title=f"arXiv: models of {category} and stat.ME on articles of stat.TH (needs --data)",
        sizes=(100, 200, 300, 400, 500),
        methods=methods,
        ours=("ours",),
        trials=TABLE,
        run=articles.run,
        prepare=articles.prepare,
    )


EXPERIMENTS = (
    _experiment(
        "arxiv-probability",
        "table3",
        "math.PR",
        ("mmd-imq", "mmdextra-imq", "lksd-imq", "lksdextra-imq", "stable-imq"),
    ),
    _experiment("arxiv-learning", "table4", "cs.LG", ("mmd-imq", "lksd-imq", "stable-imq")),
)
