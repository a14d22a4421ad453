"""Null distributions that a user writes."""

import subprocess
import sys
from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy import stats

import lksd
from lksd.statistics import Calibration, Evidence, NullDistribution

MODULE = """
from dataclasses import dataclass
import numpy as np
from scipy import stats
from lksd.statistics import Calibration, NullDistribution


@dataclass(frozen=True)
class Student(NullDistribution):
    freedom: int
    shift: tuple[float, ...] = (0.0, 0.0)
    name: str = "t"
    values: np.ndarray | None = None

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


class StudentCalibration(Calibration):
    def null(self, sample):
        return Student(sample.n - 1, (0.0, float("inf")), values=np.sort(sample.influences))
"""
LOADING = """
import lksd, sys
try:
    lksd.load_result({path!r})
except ValueError as error:
    print(error)
import own_nulls
print(lksd.load_result({path!r}).calibration)
"""


def evidence(n=60):
    influences = np.random.default_rng(0).normal(size=n)
    return Evidence(n, 1.7, 0.17, 0.1, influences - influences.mean())


def test_one_of_a_users_own_goes_through_a_file_into_a_new_process(tmp_path, monkeypatch):
    (tmp_path / "own_nulls.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    import own_nulls

    null = own_nulls.StudentCalibration().null(evidence())
    x = np.random.default_rng(0).normal(size=(60, 2))
    result = lksd.compare_scores(x, -(x - 1), -x, lksd.kernels.IMQ(2.0), calibration="normal")
    t = result.statistic
    result = replace(result, null=null, pvalue=null.upper(t), pvalue_reverse=null.lower(t))
    path = tmp_path / "result.json"
    result.to_json(path)
    loaded = lksd.load_result(path)
    assert type(loaded.null) is own_nulls.Student
    assert loaded.null.shift == (0.0, np.inf)
    np.testing.assert_array_equal(loaded.null.values, null.values)
    assert loaded.confidence_interval() == result.confidence_interval()
    assert "Student's t with 59 degrees of freedom" in str(loaded)
    loaded.to_html(tmp_path / "report.html")
    assert "Student&#39;s t with 59 degrees" in (tmp_path / "report.html").read_text()
    program = LOADING.format(path=str(path))
    said = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True
    ).stdout
    assert said.splitlines() == [
        f"{path}: the result holds a Student, a class that is not defined here. Import the module "
        "that defines it, and load the file again.",
        "Student's t with 59 degrees of freedom",
    ]


def defined(name, value=0.0):
    """A class of this name, as a cell of a notebook would define it."""

    @dataclass(frozen=True)
    class Own(NullDistribution):
        at: float = value

        def upper(self, t):
            return float(stats.norm.sf(t - self.at))

        def lower(self, t):
            return float(stats.norm.cdf(t - self.at))

        def upper_quantile(self, probability):
            return float(stats.norm.isf(probability) + self.at)

        def lower_quantile(self, probability):
            return float(stats.norm.ppf(probability) + self.at)

        def __str__(self):
            return "own"

    return type(name, (Own,), {})


def test_a_class_that_is_defined_again_replaces_the_former(tmp_path):
    x = np.random.default_rng(0).normal(size=(30, 2))
    result = lksd.compare_scores(x, -(x - 1), -x, lksd.kernels.IMQ(2.0), calibration="normal")
    first, second = defined("Again"), defined("Again")
    replace(result, null=first()).to_json(tmp_path / "result.json")
    assert type(lksd.load_result(tmp_path / "result.json").null) is second


def test_names_of_ours_are_refused():
    with pytest.raises(
        TypeError, match="Bootstrap: expected a name that no null distribution of lksd has"
    ):
        defined("Bootstrap")


def test_what_no_file_can_hold_is_refused(tmp_path):
    x = np.random.default_rng(0).normal(size=(30, 2))
    result = lksd.compare_scores(x, -(x - 1), -x, lksd.kernels.IMQ(2.0), calibration="normal")
    with pytest.raises(TypeError, match=r"to_json: expected numbers, strings, arrays.*; got set"):
        replace(result, null=defined("Other")({1, 2})).to_json(tmp_path / "result.json")
    assert not (tmp_path / "result.json").exists()


def test_a_calibration_has_one_method():
    with pytest.raises(TypeError, match="abstract"):
        Calibration()
    sample = evidence()
    assert sample.influences.sum() == pytest.approx(0, abs=1e-12)
