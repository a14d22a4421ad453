"""Every page runs as it stands, is in the navigation, and the reference names everything public."""

import re
from inspect import ismodule
from pathlib import Path

import griffe
import pytest
import yaml
from pages import agree, run_page

import lksd

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
WITH_CODE = [page for page in PAGES if "```python\n" in page.read_text(encoding="utf-8")]
# whose ground other tests cover
SLOW = {"clusters", "decoders", "extending", "graphs", "own-model", "pymc", "truncated"}
MODULES = (lksd, *(part for name in lksd.__all__ if ismodule(part := getattr(lksd, name))))


class Loader(yaml.SafeLoader):
    """mkdocs.yml names Python objects, which matter to mkdocs alone."""


Loader.add_multi_constructor("tag:yaml.org,2002:python/", lambda loader, suffix, node: suffix)


def as_case(page: Path):
    marks = [pytest.mark.slow] if page.stem in SLOW else []
    return pytest.param(page, id=str(page.relative_to(DOCS)), marks=marks)


@pytest.mark.parametrize("page", [as_case(page) for page in WITH_CODE])
def test_the_pages_code(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run_page(page)[1]


def entries(nav) -> list[str]:
    if isinstance(nav, str):
        return [nav]
    return [
        path for part in (nav.values() if isinstance(nav, dict) else nav) for path in entries(part)
    ]


def test_every_page_is_in_the_navigation():
    nav = entries(yaml.load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"), Loader)["nav"])
    pages = [page.relative_to(DOCS) for page in PAGES]
    pages += [
        page.relative_to(DOCS).with_suffix(".md") for page in (DOCS / "tutorials").glob("*.py")
    ]
    assert sorted(nav) == sorted(page.as_posix() for page in pages)


def test_the_reference_names_everything_public():
    text = "\n".join(page.read_text(encoding="utf-8") for page in (DOCS / "api").glob("*.md"))
    entries = re.findall(
        r"^::: (\S+)$(?:\n    options:\n      heading: (\S+)$)?", text, re.MULTILINE
    )
    documented = {heading or path: path for path, heading in entries}
    assert len(documented) == len(entries)
    public = {module.__name__ for module in MODULES[1:]} | {
        f"{part.__name__}.{name}" for part in MODULES for name in part.__all__
    }
    assert public <= set(documented), sorted(public - set(documented))
    package = griffe.load("lksd", search_paths=[ROOT / "src"], resolve_aliases=True)
    modules = {module.__name__ for module in MODULES}
    for name, path in documented.items():  # a function of a module's name would show the module
        assert package[path.removeprefix("lksd.")].is_module == (name in modules), path


@pytest.mark.parametrize("page", [ROOT / "README.md", *PAGES], ids=lambda page: page.name)
def test_links_between_files(page):
    """As GitHub follows them, which knows nothing of the site's navigation."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
        if "://" not in target:
            linked = page.parent / target
            # the site's form of a notebook
            made = linked.parent.name == "tutorials" and linked.with_suffix(".py").exists()
            assert linked.exists() or made, f"{page.name}: {target}"


@pytest.mark.parametrize(
    ("printed", "shown", "same"),
    [
        ("a 1.00\nb 2\n", "a 1.01\nb 2\n", True),
        ("a 1.00\n", "a 1.10\n", False),
        ("a 1.00\n", "b 1.00\n", False),
        ("a\nb\nc\n", "a\n...\nc\n", True),
        ("a\nb\nd\n", "a\n...\nc\n", False),
        ("P -2.1e-05\n", "P -2.0e-05\n", True),
        ("a 1 2\n", "a 1\n", False),
    ],
)
def test_how_output_is_compared(printed, shown, same):
    assert agree(printed, shown) is same
