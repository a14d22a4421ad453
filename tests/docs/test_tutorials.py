"""The tutorials run from top to bottom in a kernel of their own, without warnings."""

import importlib.util
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
TUTORIALS = sorted((DOCS / "tutorials").glob("*.py"))
spec = importlib.util.spec_from_file_location(
    "tutorial_pages", DOCS / "hooks" / "tutorial_pages.py"
)
tutorial_pages = importlib.util.module_from_spec(spec)
spec.loader.exec_module(tutorial_pages)


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_a_tutorial_runs(path):
    markdown, images = tutorial_pages.as_markdown(tutorial_pages.executed(path), path.stem)
    assert "fits better" in markdown
    assert images
    assert all(image.startswith(b"\x89PNG") for image in images.values())


def test_both_are_there():
    assert [path.stem for path in TUTORIALS] == ["continuous", "topics"]
