"""A Stein operator, a kernel and a calibration that a user writes go wherever ours go, with no file
of ours changed.
"""

import importlib.util
import subprocess
import sys

import equinox as eqx
import jax.numpy as jnp
import ksd
import numpy as np
import pytest

import lksd
from lksd.inference.kernel_sums import own_sums

OWN = """
from dataclasses import dataclass

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from scipy import stats

import lksd


class Diffusion(lksd.stein.SteinOperator):
    scale: float = 10.0
    name: str = "tails"
    powers: tuple = (1, (0.5, "x"))
    shift: np.ndarray = eqx.field(
        default=0.0, converter=lambda value: np.atleast_1d(np.asarray(value, float))
    )

    def block(self, kernel, x, scores_x, y, scores_y):
        weighted = lksd.kernels.Weighted(
            kernel, lambda z: 1 + jnp.sum((z - self.shift) ** 2) / self.scale
        )
        return lksd.stein.Langevin().block(weighted, x, scores_x, y, scores_y)


class Cosine(lksd.kernels.Kernel):
    width: float = 1.0

    def __call__(self, x, y):
        return jnp.exp((1 + x @ y) / jnp.sqrt((1 + x @ x) * (1 + y @ y)) / self.width)


def cosine(x, y):
    return Cosine()(x, y)


class Metropolis(lksd.stein.DiscreteOperator):
    n_values: int
    witness: str = "shared"
    average: bool = False

    def targets(self, x):
        return np.where(x[..., None] >= 0, np.stack([x + 1, x - 1], -1) % self.n_values, -1)

    def score_of(self, ratios, variances):
        return jnp.minimum(ratios, 1.0)

    def moves(self, x, scores):
        neighbours = jnp.stack([x + 1, x - 1], -1) % self.n_values
        return lksd.stein.Moves(-scores.sum(-1), neighbours, scores)


@dataclass(frozen=True)
class Student(lksd.statistics.NullDistribution):
    freedom: int

    def upper(self, t):
        return float(stats.t.sf(t, self.freedom))

    def lower(self, t):
        return float(stats.t.cdf(t, self.freedom))

    def upper_quantile(self, probability):
        return float(stats.t.isf(probability, self.freedom))

    def lower_quantile(self, probability):
        return float(stats.t.ppf(probability, self.freedom))

    def __str__(self):
        return f"Student's t with {self.freedom} degrees of freedom"


class ByStudent(lksd.statistics.Calibration):
    def null(self, sample):
        return Student(sample.n - 1)


p, q = (lksd.models.PPCA(np.ones((3, 1)), noise) for noise in (2.0, 1.0))
tails = Diffusion(5.0)
number = 3
"""
X = np.random.default_rng(0).normal(size=(40, 3))
KERNEL = lksd.kernels.IMQ(2.0)


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """The user's script as a module."""
    path = tmp_path_factory.mktemp("user") / "own_parts.py"
    path.write_text(OWN)
    spec = importlib.util.spec_from_file_location("own_parts", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def weighted(operator, kernel):
    """What the user's operator is by another way: Langevin with a kernel of which the coefficient
    is a part.
    """
    return lksd.kernels.Weighted(
        kernel, lambda z: 1 + jnp.sum((z - operator.shift) ** 2) / operator.scale
    )


def test_sums_tiles_pairs_and_slopes_agree_with_the_dense_matrix(own):
    operator, scores = own.Diffusion(5.0, shift=[0.1, 0.0, 0.0]), np.stack([-X, -X / 2])
    dense = np.stack([lksd.stein.stein_kernel(operator, KERNEL, X, score) for score in scores])
    same = [
        lksd.stein.stein_kernel(lksd.stein.Langevin(), weighted(operator, KERNEL), X, score)
        for score in scores
    ]
    np.testing.assert_allclose(dense, same, rtol=1e-12)
    sums = lksd.stein.gram_sums(operator, KERNEL, X, scores, [1.0, -1.0], tile=16)
    np.testing.assert_allclose(sums.model_rows, (dense * (1 - np.eye(len(X)))).sum(2), rtol=1e-10)
    np.testing.assert_allclose(
        sums.model_diagonal, np.diagonal(dense, axis1=1, axis2=2), rtol=1e-10
    )
    np.testing.assert_allclose(
        lksd.stein.paired(operator, KERNEL, X, scores, X[::-1], scores[:, ::-1]),
        dense[:, ::-1].diagonal(0, 1, 2),
    )
    slopes = lksd.stein.score_slopes(operator, KERNEL, X, scores, 4)
    same = lksd.stein.score_slopes(lksd.stein.Langevin(), weighted(operator, KERNEL), X, scores, 4)
    np.testing.assert_allclose(slopes, same, rtol=1e-9)


def test_every_verb_takes_them(own, tmp_path):
    operator, kernel = own.tails, own.Cosine(0.5)
    by_scores = lksd.compare_scores(X, -X / 5, -X / 2, kernel, operator=operator)
    assert (by_scores.operator, by_scores.kernel) == ("Diffusion", "Cosine")
    result = ksd.compare(X, own.p, own.q, kernel=kernel, operator=operator)
    same = ksd.compare(X, own.p, own.q, kernel=weighted(operator, kernel), operator="langevin")
    assert result.statistic == pytest.approx(same.statistic)
    (tmp_path / "result.json").write_text(result.to_json())
    assert lksd.load_result(tmp_path / "result.json").statistic == result.statistic
    result.to_html(tmp_path / "report.html")
    assert "Diffusion" in (tmp_path / "report.html").read_text()
    # one number for two observations
    assert ksd.compare(X, own.p, own.q, operator=operator).kernel.startswith("IMQ")
    ranked = ksd.rank(X, {"wide": own.p, "right": own.q}, kernel=own.cosine, operator=operator)
    (tmp_path / "ranking.json").write_text(ranked.to_json())
    assert lksd.load_result(tmp_path / "ranking.json").settings["operator"] == "Diffusion"
    fit = lksd.goodness_of_fit(X, own.q, kernel=kernel, operator=operator)
    assert fit.operator == "Diffusion"
    fit.to_json()


def test_every_verb_takes_a_calibration(own, tmp_path):
    models, options = (
        {"wide": own.p, "right": own.q},
        {"kernel": KERNEL, "calibration": own.ByStudent()},
    )
    for result in (
        ksd.compare(X, models, **options),
        lksd.goodness_of_fit(X, own.q, **options),
    ):
        assert result.null == own.Student(39)
        result.to_json(tmp_path / "result.json")
        assert lksd.load_result(tmp_path / "result.json").null == own.Student(39)
    ranked = ksd.rank(X, models, **options)
    ranked.to_json(tmp_path / "result.json")
    assert (
        "Student's t with 39 degrees of freedom"
        in lksd.load_result(tmp_path / "result.json").calibration
    )


def test_an_operator_on_integers_takes_the_ratios_of_models(own):
    model, other = (lksd.models.BetaBinomial(2, *shapes) for shapes in ((2.0, 3.0), (1.0, 1.0)))
    x, operator = np.random.default_rng(1).integers(0, 3, size=(30, 4)), own.Metropolis(3)
    exact = lksd.estimate_scores(model, x, operator=operator)
    assert isinstance(exact.score, np.ndarray)
    assert exact.score.shape == (30, 4, 2)
    assert (exact.score <= 1).all()
    chains = lksd.estimate_scores(model, x, operator=operator, exact=False, draws=200)
    assert np.abs(chains.score - exact.score).max() < 0.2
    result = ksd.compare(x, model, other, operator=operator)
    assert result.operator == "Metropolis(3 values, shared witness)"
    with pytest.raises(
        ValueError, match=r"unbiased: scores of Metropolis.* are not posterior means"
    ):
        lksd.estimate_scores(model, x, operator=operator, unbiased=True, exact=False)


def test_scores_are_saved_with_the_class_and_its_fields(own, tmp_path):
    operator = own.Diffusion(5.0, "mine", (2, (0.25, "y")), [0.0, 1.0, 2.0])
    scores = lksd.estimate_scores(own.q, X, operator=operator)
    scores.save(tmp_path / "scores.npz")
    assert eqx.tree_equal(lksd.load_scores(tmp_path / "scores.npz").operator, operator)
    assert ksd.compare(X, own.p, scores, kernel=KERNEL).operator == "Diffusion"
    script = f"""
import sys, lksd
try:
    lksd.load_scores({str(tmp_path / "scores.npz")!r})
except ImportError as error:
    print(error)
sys.path.insert(0, {own.__spec__.origin.removesuffix("own_parts.py")!r})
import own_parts
print(lksd.load_scores({str(tmp_path / "scores.npz")!r}).operator.powers)
"""
    said = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert "belong to the operator Diffusion, a class that is not known here. Import" in said[0]
    assert said[1] == "(2, (0.25, 'y'))"


def test_what_cannot_be_saved_is_refused(own, tmp_path):
    class Own(own.Diffusion):
        options: dict = eqx.field(default_factory=dict)

    class Langevin(own.Diffusion):
        pass

    with pytest.raises(ValueError, match="Own cannot be saved; expected a field 'options'"):
        lksd.estimate_scores(own.q, X, operator=Own()).save(tmp_path / "own.npz")
    with pytest.raises(ValueError, match=r"Langevin is the name of a class of lksd\.stein"):
        lksd.estimate_scores(own.q, X, operator=Langevin()).save(tmp_path / "own.npz")


def test_a_block_of_another_shape_is_named(own):
    class Flat(lksd.stein.SteinOperator):
        def block(self, kernel, x, scores_x, y, scores_y):
            return jnp.zeros(len(x))

    with pytest.raises(
        ValueError, match=r"operator: expected one .* Flat fails \(block\(\.\.\.\) has shape"
    ):
        ksd.compare(X, own.p, own.q, kernel=KERNEL, operator=Flat())


def test_kernels_of_words_beside_others(own):
    x, bags = (
        np.random.default_rng(2).integers(0, 5, size=(20, 6)),
        lksd.kernels.BagOfWords(lksd.kernels.IMQ(), 5),
    )
    both = own_sums(
        (lksd.kernels.Hamming(), bags, lksd.kernels.as_kernel(lambda a, b: 1.0 * jnp.sum(a == b))),
        x,
        (20,),
    )
    (alone,) = own_sums((bags,), x, (20,))
    np.testing.assert_array_equal(both[1].sums, alone.sums)
    np.testing.assert_array_equal(both[2].sums[0], (x[:, None] == x).sum((1, 2)) - 6)


@pytest.fixture
def command(own, tmp_path, monkeypatch, capsys):
    from lksd.cli import main

    (tmp_path / "own.py").write_text(OWN)
    np.save(tmp_path / "x.npy", X)
    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        return main(["compare", "x.npy", *arguments]), *capsys.readouterr()

    return call


def test_the_command_line_takes_them(own, command):
    pair = ("--p", "own.py:p", "--q", "own.py:q", "--json")
    code, out, err = command(*pair, "--kernel", "own.py:Cosine", "--operator", "own.py:Diffusion")
    assert (code, err) == (0, "")
    assert '"operator": "Diffusion"' in out
    assert '"kernel": "Cosine"' in out
    code, out, _ = command(
        *pair, "--kernel", "own.py:cosine", "--operator", "own.py:tails", "--operator", "langevin"
    )
    assert code == 2  # of real data one operator alone is taken
    lksd.estimate_scores(own.q, X, operator=own.tails).save("q.npz")
    code, out, err = command(
        "--p", "own.py:p", "--q", "q.npz", "--operator", "own.py:tails", "--kernel", "imq"
    )
    assert (code, "operator Diffusion" in out) == (0, True), err


def test_the_command_line_takes_a_calibration(own, command, tmp_path, capsys):
    from lksd.cli import main

    chosen = ("--kernel", "imq:2", "--calibration", "own.py:ByStudent", "--criterion", "ksd")
    asked = (*chosen, "--alternative", "greater", "--json")
    code, out, err = command("--p", "own.py:p", "--q", "own.py:q", *asked)
    assert (code, err) == (0, "")
    (tmp_path / "result.json").write_text(out)
    loaded = lksd.load_result(tmp_path / "result.json")
    assert str(loaded.null) == "Student's t with 39 degrees of freedom"
    same = ksd.compare(X, own.p, own.q, kernel=KERNEL, calibration=own.ByStudent())
    assert loaded.pvalue == same.pvalue
    assert main(["rank", "x.npy", "own.py:p", "own.py:q", *chosen]) == 0
    assert "p-values: Student's t with 39 degrees of freedom" in capsys.readouterr().out
    code, _, err = command("--p", "own.py:p", "--q", "own.py:q", "--calibration", "own.py:number")
    assert (code, "--calibration: expected one of the calibrations in own.py" in err) == (2, True)
    code, _, err = command("--p", "own.py:p", "--q", "own.py:q", "--calibration", "norml")
    assert (code, "calibration: expected" in err) == (2, True)


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        (
            "own.py:number",
            "--operator: expected one of the operators in own.py; 'number' is of type int",
        ),
        ("own.py:Metropolis", "is a class that needs n_values"),
        ("own.py:none", "Its operators: tails."),
        ("other.py:a", "--operator: expected a Python file; 'other.py' does not exist"),
    ],
)
def test_what_the_command_line_refuses(command, reference, said):
    code, _, err = command("--p", "own.py:p", "--q", "own.py:q", "--operator", reference)
    assert code == 2
    assert said in err
