"""The code of the README runs as it stands, one block after the other."""

import re
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"


def test_the_readmes_code(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) >= 3
    names: dict = {}
    for block in blocks:
        exec(compile(block, str(README), "exec"), names)
    assert names["result"].reject
