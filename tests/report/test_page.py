"""The report, opened in a real browser."""

import re
import shutil
from dataclasses import replace
from itertools import pairwise

import jax
import ksd
import numpy as np
import pandas
import pytest

import lksd
from lksd.report.page import report_page

BROWSER = next(
    (
        path
        for path in map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))
        if path
    ),
    None,
)
OFFLINE = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
HOSTILE = (
    "<script>window.sprung = 1</script><img src=x onerror='window.sprung = "
    '1\'>\x1b[31m\u202e" onclick="window.sprung=1'
)
NAMES = (HOSTILE, "'; DROP TABLE models; -- $x_2$ {{ 7 * 7 }}")

needs_browser = pytest.mark.skipif(
    BROWSER is None, reason="no Chromium on this machine; apt-get install chromium"
)


@pytest.fixture(scope="module")
def numbers():
    weight, x = np.ones((4, 1)), np.random.default_rng(0).normal(size=(60, 4))
    models = (lksd.models.PPCA(weight, 2.0), lksd.models.PPCA(weight, 1.0))
    return x, ksd.compare(
        x,
        *models,
        exact=False,
        draws=40,
        warmup=20,
        kernel=[lksd.kernels.IMQ(1.0), lksd.kernels.IMQ(9.0)],
    )


@pytest.fixture(scope="module")
def documents():
    topics = np.random.default_rng(0).dirichlet(np.full(6, 0.3), size=2)
    words = [HOSTILE, "$\\frac{1}$", "统计学", "{{ result }}", "</style></script>", "plain"]
    p, q = (lksd.models.LDA([a, a], topics, words) for a in (3.0, 0.3))
    drawn = [
        np.asarray(q.sample(key, length=10)[1]).tolist()
        for key in jax.random.split(jax.random.key(0), 30)
    ]
    return drawn, ksd.compare(drawn, p, q)


@pytest.fixture(scope="module")
def pages(numbers, documents, tmp_path_factory):
    """A report of each kind of data: pictures, documents, rows of a table with hostile names."""
    folder = tmp_path_factory.mktemp("reports")
    x, result = numbers
    ids, about_words = documents
    result.to_html(folder / "images.html", names=NAMES, observations=x.reshape(-1, 2, 2))
    result.to_html(
        folder / "table.html",
        names=NAMES,
        observations=pandas.DataFrame(x, columns=[HOSTILE, "b", "c", "d"]),
    )
    about_words.to_html(folder / "documents.html", names=NAMES, observations=ids)
    return folder


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=BROWSER, args=OFFLINE)
        yield opened
        opened.close()


def opened(browser, path, **options):
    """The page, and all that it complained about or asked for."""
    page, complaints = browser.new_page(**options), []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on(
        "request",
        lambda request: (
            complaints.append(request.url)
            if not request.url.startswith(("file:", "data:"))
            else None
        ),
    )
    page.goto(path.as_uri())
    return page, complaints


KINDS = ["images.html", "table.html", "documents.html"]


@needs_browser
@pytest.mark.parametrize("kind", KINDS)
def test_it_opens_without_complaint_and_runs_nothing_of_the_users(kind, pages, browser):
    page, complaints = opened(browser, pages / kind)
    assert complaints == []
    assert page.evaluate("window.sprung") is None
    assert page.locator("script").count() == 1
    text = page.inner_text("body")
    assert "<script>window.sprung = 1</script>" in text
    assert "\\x1b[31m\\u202e" in text
    assert "{{ 7 * 7 }}" in text
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", text)
    if kind == "images.html":
        assert page.eval_on_selector_all(
            ".gallery img", "all => all.length > 0 && all.every(one => one.naturalWidth == 2)"
        )
    if kind == "documents.html":
        assert "统计学" in text
    page.close()


@needs_browser
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_a_phone_and_can_be_read(kind, scheme, pages, browser, tmp_path):
    page, _ = opened(
        browser, pages / kind, viewport={"width": 400, "height": 800}, color_scheme=scheme
    )
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.eval_on_selector_all("details", "all => all.forEach(one => one.open = true)")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.evaluate(CONTRAST) >= 4.5
    page.screenshot(path=tmp_path / "phone.png", full_page=True)
    assert (tmp_path / "phone.png").stat().st_size > 10_000
    page.close()


# The smallest contrast (WCAG) of any text with its background.
CONTRAST = """() => {
  const channels = (color) => color.match(/[\\d.]+/g).map(Number);
  const light = (color) => channels(color).slice(0, 3).map((c) => c / 255)
    .map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (element) => {
    for (; element; element = element.parentElement) {
      const color = getComputedStyle(element).backgroundColor;
      if (channels(color)[3] !== 0) return color;
    }
    return "rgb(255, 255, 255)";
  };
  let smallest = 21;
  for (const element of document.querySelectorAll("body *")) {
    const texts = [...element.childNodes].filter((node) => node.nodeType === 3);
    const own = texts.some((node) => node.textContent.trim());
    if (!own || ["script", "style"].includes(element.tagName.toLowerCase())) continue;
    const style = getComputedStyle(element);
    const ink = element.closest("svg") ? style.fill : style.color;
    if (ink === "none") continue;
    const [a, b] = [light(ink), light(behind(element))];
    smallest = Math.min(smallest, (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05));
  }
  return smallest;
}"""


@needs_browser
def test_tables_sort_both_ways(pages, browser):
    page, _ = opened(browser, pages / "images.html")
    page.eval_on_selector_all("details", "all => all.forEach(one => one.open = true)")
    table = page.locator("table", has_text="Observations and what they add")
    for direction in (1, -1):
        table.get_by_role("button", name="adds to P - Q").click()
        parts = [float(text) for text in table.locator("tbody td:nth-child(2)").all_inner_texts()]
        assert len(parts) == 50
        assert all(direction * a <= direction * b for a, b in pairwise(parts))
    assert table.locator("th[aria-sort='descending']").count() == 1
    page.close()


@needs_browser
def test_it_can_be_read_without_scripts_and_on_paper(numbers, pages, browser):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto((pages / "images.html").as_uri())
    text = page.inner_text("main")
    _, result = numbers
    assert "for '; DROP TABLE models; -- $x_2$ {{ 7 * 7 }}, " in text
    assert result.pvalue_line in text
    for heading in (
        "The difference",
        "What decides it",
        "The scores behind it",
        "What was tested",
        "Reproduce this result",
    ):
        assert heading in text
    assert page.pdf()[:5] == b"%PDF-"
    context.close()


def test_it_is_one_small_file_with_names_for_those_who_do_not_see(pages):
    for kind in KINDS:
        text = (pages / kind).read_text(encoding="utf-8")
        assert len(text.encode()) < 500_000
        assert not re.search(r"""(src|href)=["'](?!data:|#)""", text)
        assert text.count("<h1>") == 1
        assert '<html lang="en">' in text
        assert all(re.search(r'alt="[^"]+"', tag) for tag in re.findall(r"<img [^>]*>", text))
        assert all('role="img" aria-label="' in tag for tag in re.findall(r"<svg [^>]*>", text))


def test_it_tells_how_to_get_it_again(numbers):
    x, result = numbers
    page = report_page(result)
    for name, value in (result.settings | result.versions).items():
        assert f'<th scope="row">{name}</th>' in page
        assert not isinstance(value, str) or value in page
    assert result.kernel in page
    assert report_page(result, x) == report_page(result, x)


def test_large_results_stay_small():
    x = np.random.default_rng(0).normal(size=(3_000, 2))
    result = lksd.compare_scores(x, -(x - 1), -x, lksd.kernels.IMQ(2.0), calibration="normal")
    page = report_page(
        result.with_names(("P" * 10**6, "Q")), np.random.default_rng(0).random((3_000, 200, 150, 3))
    )
    assert len(page) < 2_000_000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"path": "report.txt"}, r"report: expected a name that ends in \.html"),
        ({"path": "nowhere/report.html"}, "report: expected a folder that exists"),
        ({"names": "PQ"}, "names: expected two"),
        ({"names": ("a",)}, "names: expected two"),
        (
            {"observations": np.zeros((3, 2))},
            "observations: expected the 60 that were tested; got 3",
        ),
        ({"observations": np.zeros((60, 2, 2, 7))}, "observations: expected images of shape"),
        ({"observations": 5}, "observations: expected"),
    ],
)
def test_bad_input_leaves_no_file(arguments, message, numbers, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    options = {"path": "report.html"} | arguments
    with pytest.raises((ValueError, TypeError), match=message):
        numbers[1].to_html(options.pop("path"), **options)
    assert list(tmp_path.iterdir()) == []


def test_undecided_and_identical_models_have_reports(numbers, tmp_path):
    x, _ = numbers
    for shift in (0.0, -0.5):
        result = lksd.compare_scores(x, -x, -(x - shift), lksd.kernels.IMQ(2.0))
        result.to_html(tmp_path / "report.html")
        assert result.sentence in (tmp_path / "report.html").read_text().replace("&lt;", "<")


def test_the_verdict_stands_out_where_there_is_one():
    x = np.random.default_rng(0).normal(size=(60, 2))
    reverse = lksd.compare_scores(x, -x, -(x - 1.0), lksd.kernels.IMQ(2.0))
    page = report_page(reverse)
    assert (
        f'<p class="verdict">P fits better than Q (p = {reverse.pvalue_reverse:.4f}).</p>' in page
    )
    assert f"(reverse: p = {reverse.pvalue_reverse:.4f})" in page
    withheld = replace(reverse, withheld="the chains have not converged.")
    assert '<p class="verdict open">Withheld: the chains have not converged.</p>' in report_page(
        withheld
    )
    one, other = (
        replace(reverse, statistic=t, pvalue=p, pvalue_reverse=1 - p, operator=o)
        for t, p, o in ((3, 0.01, "A"), (-3, 0.99, "B"))
    )
    disputed = report_page(replace(reverse, tests=(one, other), pvalue=0.01))
    assert (
        '<p class="verdict open">The tests disagree: A says that Q fits better (p = 0.0100), B '
        "that P does" in disputed
    )


def test_names_and_labels_stand_wherever_models_and_observations_do(numbers, documents):
    x, result = numbers
    result = replace(
        result.with_names(("two factors", "ten")),
        labels=tuple(f"patient {i}" for i in range(len(x))),
    )
    page = report_page(result, x)
    assert "<h1>Does ten fit the data better than two factors?</h1>" in page
    assert "<dt>P</dt><dd>two factors</dd><dt>Q</dt><dd>ten</dd>" in page  # for the formulas
    text = re.sub(r"<svg.*?</svg>", "", page.partition("<h2>What was tested")[0], flags=re.DOTALL)
    assert not re.search(r"\b[PQ]\b", re.sub("<dt>[PQ]</dt>|P - Q", "", text))
    for said in ("scores of two factors", "for ten", "two factors - ten"):
        assert said in page
    row, _ = result.documents(1)[0]
    assert f"observation {row} patient {row}" in page
    assert f"<td>patient {row}</td>" in page
    assert "two factors" in documents[1].with_names(("two factors", "ten"))._repr_html_()


def test_notebooks_show_results_and_scores(numbers, documents):
    for shown in (
        numbers[1],
        documents[1],
        lksd.goodness_of_fit_scores(numbers[0], -numbers[0], lksd.kernels.IMQ(1.0)),
    ):
        page = shown._repr_html_()
        assert shown.sentence in page.replace("&lt;", "<").replace("&#39;", "'")
        assert "<script" not in page
    scores = lksd.estimate_scores(
        lksd.models.PPCA(np.ones((4, 1)), 1.0), numbers[0], exact=False, draws=40, warmup=20
    )
    page = scores._repr_html_()
    assert "largest R-hat" in page
    assert "<table" in page
