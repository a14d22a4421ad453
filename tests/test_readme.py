"""The code of the README runs as it stands, one block after the other."""

from pathlib import Path

from pages import run_page

README = Path(__file__).parents[1] / "README.md"


def test_the_readmes_code(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names, count = run_page(README)
    assert count >= 3
    assert names["result"].reject
