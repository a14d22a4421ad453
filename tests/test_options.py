"""Options: declared once, seen by signatures, type checkers and help, and refused where they do not
fit.
"""

import inspect
from dataclasses import fields
from typing import get_args, get_type_hints

import numpy as np
import pytest

import lksd
from lksd import _keywords, domains
from lksd.options import PAPER, PAPER_CHAINS

RECORDS = _keywords.RECORDS
VERBS = [
    lksd.compare,
    lksd.rank,
    lksd.goodness_of_fit,
    lksd.compare_scores,
    lksd.compare_pointwise,
    lksd.rank_pointwise,
    lksd.rank_scores,
    lksd.goodness_of_fit_scores,
    lksd.estimate_scores,
]
RNG = np.random.default_rng(0)
WEIGHT = RNG.normal(size=(3, 1))
X = RNG.normal(size=(40, 1)) @ WEIGHT.T + RNG.normal(size=(40, 3))
P, Q = lksd.models.PPCA(WEIGHT, 2.0), lksd.models.PPCA(WEIGHT, 1.0)


def keywords_of(verb):
    """What the type of ``**keywords`` says that a verb takes."""
    inner = inspect.unwrap(verb)
    return get_type_hints(get_args(get_type_hints(inner, include_extras=True)["keywords"])[0])


def test_every_keyword_of_a_type_is_an_option_of_a_record_with_the_same_type():
    declared = {one.name: kind for kind in RECORDS for one in fields(kind)}
    for verb in VERBS:
        for name, annotation in keywords_of(verb).items():
            if name in ("decision", "run"):
                assert annotation in RECORDS
            elif name == "chains":
                assert annotation == int | lksd.Chains | None
            else:
                assert annotation == get_type_hints(declared[name])[name], (verb.__name__, name)


def test_compare_takes_every_option():
    known = {one.name for kind in RECORDS for one in fields(kind)}
    assert known < set(keywords_of(lksd.compare))


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.__name__)
def test_signature_and_help_have_every_keyword(verb):
    parameters, text = inspect.signature(verb).parameters, inspect.getdoc(verb)
    defaults = {one.name: one.default for kind in RECORDS for one in fields(kind)} | verb.defaults
    assert not [one for one in parameters.values() if one.kind == one.VAR_KEYWORD]
    for name, annotation in keywords_of(verb).items():
        assert parameters[name].annotation == annotation
        assert parameters[name].default == defaults.get(name)
        assert f"\n{name} : " in text


def test_a_record_and_its_options_one_by_one_are_the_same_call():
    records = lksd.compare(
        X,
        P,
        Q,
        decision=lksd.Decision(alternative="two-sided", alpha=0.1, calibration="normal"),
        chains=lksd.Chains(exact=False, warmup=20, draws=40),
        run=lksd.Run(seed=3),
    )
    single = lksd.compare(
        X,
        P,
        Q,
        alternative="two-sided",
        alpha=0.1,
        calibration="normal",
        exact=False,
        warmup=20,
        draws=40,
        seed=3,
    )
    assert (records.statistic, records.pvalue, records.alpha) == (
        single.statistic,
        single.pvalue,
        0.1,
    )
    assert records.settings == single.settings
    assert records.settings["draws"] == 40


def test_chains_is_a_number_or_a_record():
    number = lksd.estimate_scores(P, X, exact=False, chains=4, warmup=10, draws=40)
    record = lksd.estimate_scores(
        P, X, chains=lksd.Chains(exact=False, chains=4, warmup=10, draws=40)
    )
    np.testing.assert_array_equal(number.score, record.score)
    assert number.batch_means.shape[1] == 4


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: lksd.compare(X, P, Q, alhpa=0.1), "no option 'alhpa'. The nearest is 'alpha'"),
        (lambda: lksd.compare(X, P, Q, kernal=None), "nearest is 'kernel'"),
        (
            lambda: lksd.rank(X, {"p": P, "q": Q}, alternative="greater"),
            "rank: there is no option 'alternative'",
        ),
        (
            lambda: lksd.compare(X, P, Q, decision=lksd.Decision(alpha=0.1), alpha=0.1),
            "alpha: given twice",
        ),
        (lambda: lksd.compare(X, P, Q, chains=lksd.Chains(draws=5), draws=5), "draws: given twice"),
        (
            lambda: lksd.compare(X, P, Q, decision={"alpha": 0.1}),
            "decision: expected a lksd.Decision",
        ),
        (lambda: lksd.compare(X, P, Q, run=0), "run: expected a lksd.Run"),
        (
            lambda: lksd.goodness_of_fit(X, P, decision=lksd.Decision(margin=1.0)),
            "margin: goodness_of_fit does not take",
        ),
        (
            lambda: lksd.compare_scores(
                X, -X, -X, lksd.kernels.IMQ(), run=lksd.Run(checkpoint="f")
            ),
            "checkpoint: compare_scores",
        ),
        (lambda: lksd.Decision(alpah=0.1), "alpah"),
    ],
)
def test_options_that_do_not_fit(call, message):
    with pytest.raises(TypeError, match=message):
        call()


@pytest.mark.parametrize(
    "make",
    [
        lambda: lksd.Decision(alpha=2.0),
        lambda: lksd.Decision(alternative="less"),
        lambda: lksd.Decision(margin=-1),
        lambda: lksd.Decision(pairs=0),
        lambda: lksd.Chains(draws=0),
        lambda: lksd.Chains(meeting_limit=5),
        lambda: lksd.Run(seed=-1),
        lambda: lksd.Run(batch_size=0),
    ],
)
def test_records_are_checked_when_they_are_made(make):
    with pytest.raises(ValueError, match="expected"):
        make()


def test_records_do_not_change_and_print_what_is_not_the_default():
    decision = lksd.Decision(alpha=0.01)
    with pytest.raises(AttributeError):
        decision.alpha = 0.05
    assert str(decision) == "Decision(alpha=0.01)"
    assert str(lksd.Run()) == "Run()"


def test_a_decision_of_two_sides_ranks_too():
    decision = lksd.Decision(alternative="two-sided", alpha=0.1)
    assert lksd.rank(X, {"p": P, "q": Q}, decision=decision).alpha == 0.1


def test_the_preset_is_a_value_of_the_records():
    preset = lksd.compare(X, P, Q, preset="paper", warmup=20, draws=40)
    given = PAPER_CHAINS.__class__(
        warmup=20,
        draws=40,
        chains=1,
        exact=False,
        control_variates="none",
        sampler=lksd.samplers.NUTS(),
    )
    kernel = lksd.kernels.IMQ.median(X)
    options = {"criterion": "ksd", "decision": PAPER, "chains": given, "kernel": kernel}
    by_hand = lksd.compare(X, P, Q, **options)
    assert (preset.statistic, preset.pvalue) == (by_hand.statistic, by_hand.pvalue)
    assert preset.settings["control_variates"] == "none"


class Counted:
    """A function that counts its calls."""

    def __init__(self, function):
        self.function, self.calls = function, 0

    def __call__(self, *args, **options):
        self.calls += 1
        return self.function(*args, **options)


@pytest.mark.parametrize("exact", [None, False])
@pytest.mark.parametrize("verb", ["compare", "rank", "goodness_of_fit"])
def test_real_data_are_read_once_and_the_operator_is_resolved_once(verb, exact, monkeypatch):
    reals = domains.Reals
    read, resolved = Counted(reals.check), Counted(reals.operators)
    monkeypatch.setattr(reals, "check", staticmethod(read))
    monkeypatch.setattr(reals, "operators", lambda self, *args: resolved(self, *args))
    converted = Counted(lksd._validation.to_numpy)
    for module in (lksd._validation, lksd.stein.base):
        monkeypatch.setattr(
            module,
            "to_numpy",
            lambda name, value: converted(name, value) if name == "x" else np.asarray(value),
        )
    models = {"compare": (P, Q), "rank": ({"p": P, "q": Q, "r": P},), "goodness_of_fit": (P,)}[verb]
    getattr(lksd, verb)(X, *models, exact=exact, warmup=5, draws=10)
    assert (read.calls, resolved.calls, converted.calls) == (1, 1, 1)


def test_documents_are_read_once_and_the_operators_are_resolved_once(monkeypatch):
    topics = RNG.dirichlet(np.ones(20), size=2)
    p, q = (lksd.models.LDA([a, a], topics) for a in (0.2, 2.0))
    documents = [RNG.integers(0, 20, size=5 + i % 3).tolist() for i in range(12)]
    tokens, resolved = Counted(domains.integers.read_documents), Counted(domains.Integers.operators)
    monkeypatch.setattr(domains.integers, "read_documents", tokens)
    monkeypatch.setattr(domains.Integers, "operators", lambda self, *args: resolved(self, *args))
    lksd.compare(documents, p, q)
    assert (tokens.calls, resolved.calls) == (1, 1)


def test_data_beside_estimates_are_read_once(monkeypatch):
    p, q = (lksd.estimate_scores(model, X) for model in (P, Q))
    topics = RNG.dirichlet(np.ones(20), size=2)
    documents = [RNG.integers(0, 20, size=5 + i % 3).tolist() for i in range(12)]
    models = [lksd.models.LDA([a, a], topics) for a in (0.2, 2.0)]
    operators = lksd.discrete_operators(*models)
    scores = [lksd.estimate_scores(one, documents, operator=operators) for one in models]
    reals, tokens = Counted(lksd.stein.base.check_reals), Counted(lksd.stein.discrete.as_tokens)
    monkeypatch.setattr(lksd.stein.base, "check_reals", reals)
    monkeypatch.setattr(lksd.stein.discrete, "as_tokens", tokens)
    lksd.compare_scores(X, p, q, [lksd.kernels.IMQ(), lksd.kernels.Gaussian()])
    lksd.compare_scores(documents, *scores, lksd.kernels.BagOfWords(lksd.kernels.IMQ(), 20))
    assert (reals.calls, tokens.calls) == (1, 1)


# ------------------------------------------------------------- names


def test_models_by_their_names():
    result = lksd.compare(X, {"wide": P, "narrow": Q})
    unnamed, named = lksd.compare(X, P, Q), lksd.compare(X, P, Q, names=("wide", "narrow"))
    assert result.names == named.names == ("wide", "narrow")
    assert str(result) == str(named)
    assert result.favours == "narrow"
    assert unnamed.favours == "Q"
    assert result.sentence == unnamed.sentence.replace(
        "Q fits better than P", "narrow fits better than wide"
    )
    assert lksd.compare_scores(X, -X, -X / 2, lksd.kernels.IMQ(), names=("a", "b")).names == (
        "a",
        "b",
    )


def test_names_reach_warnings_notes_and_nested_tests(tmp_path):
    kernels = [lksd.kernels.IMQ(), lksd.kernels.Gaussian()]
    result = lksd.compare(X, {"wide": P, "narrow": Q}, kernel=kernels, also_mmd=True)
    assert {one.names for one in result.every_test} == {("wide", "narrow")}
    result.to_json(tmp_path / "result.json")
    loaded = lksd.load_result(tmp_path / "result.json")
    assert (loaded.names, loaded.favours) == (result.names, result.favours)
    with pytest.raises(ValueError, match="wide"):
        lksd.compare(X, {"wide": lksd.estimate_scores(P, X[:10]), "narrow": Q})


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: lksd.compare(X, P), "q: expected a second model"),
        (lambda: lksd.compare(X, {"a": P}), "expected two models by their names; got 1"),
        (lambda: lksd.compare(X, {"a": P, "b": Q, "c": P}), "Use lksd.rank for several"),
        (
            lambda: lksd.compare(X, {"a": P, "b": Q}, names=("c", "d")),
            "names: expected with models that have none",
        ),
        (lambda: lksd.compare(X, P, Q, names=("a", "a")), "got 'a' twice"),
        (lambda: lksd.compare(X, P, Q, names=("a",)), "names: expected two"),
    ],
)
def test_bad_names(call, message):
    with pytest.raises((TypeError, ValueError), match=message):
        call()


def test_labels_of_rows_reach_the_result():
    pandas = pytest.importorskip("pandas", reason="row labels are those of pandas")
    frame = pandas.DataFrame(X, index=[f"person {i}" for i in range(len(X))])
    result = lksd.compare(frame, P, Q)
    assert result.labels[:2] == ("person 0", "person 1")
    assert lksd.compare(pandas.DataFrame(X), P, Q).labels is None
    assert lksd.compare_scores(frame, -X, -X / 2, lksd.kernels.IMQ()).labels == result.labels
    assert lksd.goodness_of_fit(frame, P).labels == result.labels


def test_what_is_wrong_with_one_of_several_models_is_said_with_its_name():
    narrow = lksd.models.PPCA(np.ones((2, 1)), 1.0)
    with pytest.raises(ValueError, match=r"^too few columns: "):
        lksd.rank(X, {"right": P, "too few columns": narrow}, exact=False)
    with pytest.raises(ValueError, match=r"^too few columns: "):
        lksd.compare(X, {"right": P, "too few columns": narrow}, exact=False)
