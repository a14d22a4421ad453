"""One line on a terminal, nothing elsewhere."""

import os
import pty
import subprocess
import sys

CODE = """
import time
from lksd import _progress
_progress.DELAY = 0.2
with _progress.progress_wanted({wanted}), _progress.track("chains", 4) as advance:
    for _ in range(4):
        time.sleep(0.2)
        advance(1)
"""


def on_terminal(wanted: str) -> str:
    master, slave = pty.openpty()
    with subprocess.Popen([sys.executable, "-c", CODE.format(wanted=wanted)], stderr=slave, stdout=slave) as process:
        os.close(slave)
        chunks = []
        while True:
            try:
                chunk = os.read(master, 1024)
            except OSError:
                break
            if not chunk:
                break
            chunks.append(chunk)
    os.close(master)
    assert process.returncode == 0
    return b"".join(chunks).decode()


def test_a_terminal_shows_one_line():
    shown = on_terminal("None")
    assert "chains" in shown
    assert "%" in shown


def test_it_can_be_switched_off():
    assert on_terminal("False") == ""


def test_nothing_is_written_elsewhere():
    piped = subprocess.run([sys.executable, "-c", CODE.format(wanted="None")], capture_output=True, check=True)
    assert piped.stderr == piped.stdout == b""
