"""The code of the README runs as it stands, one block after the other."""

import re
import subprocess
import sys
from pathlib import Path

from pages import agree, run_page

README = Path(__file__).parents[1] / "README.md"


def test_the_readmes_code(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names, count = run_page(README)
    assert count >= 3
    assert names["result"].reject


def test_the_demo_prints_what_the_readme_shows(tmp_path):
    command = [str(Path(sys.executable).with_name("lksd")), "demo"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    promised = re.search(
        r"```\n(H0: 2 factors.*?)```", README.read_text(encoding="utf-8"), re.DOTALL
    ).group(1)
    assert agree(done.stdout, promised + "\nReport: report.html\n")
    assert 20_000 < (tmp_path / "report.html").stat().st_size < 2_000_000
