"""One line on a terminal, one in a notebook, nothing elsewhere."""

import subprocess
import sys

import nbformat
from nbclient import NotebookClient
from terminal import on_terminal

CODE = """
import time
from lksd import engines
engines.DELAY = 0.2
with engines.opened(None, {wanted}), engines.track("chains", 4) as advance:
    for _ in range(4):
        time.sleep(0.2)
        advance(1)
"""


def test_a_terminal_shows_one_line_with_the_time_left():
    shown, code = on_terminal([sys.executable, "-c", CODE.format(wanted="None")])
    assert code == 0
    assert "chains" in shown
    assert "%" in shown
    assert "left" in shown


def test_it_can_be_switched_off():
    assert on_terminal([sys.executable, "-c", CODE.format(wanted="False")]) == ("", 0)


def test_nothing_is_written_elsewhere():
    piped = subprocess.run(
        [sys.executable, "-c", CODE.format(wanted="None")], capture_output=True, check=True
    )
    assert piped.stderr == piped.stdout == b""


def test_a_notebook_shows_a_bar_and_clears_it():
    watch = (
        CODE.format(wanted="None")
        + "    shown = engines.NotebookLine('chains', 4).bundle()['text/html']"
    )
    cells = [
        nbformat.v4.new_code_cell(watch),
        nbformat.v4.new_code_cell("import lksd, numpy as np; print(shown)\n" + RESULT),
    ]
    notebook = nbformat.v4.new_notebook(cells=cells)
    NotebookClient(notebook, kernel_name="python3").execute()
    bar, *_ = notebook.cells[0].outputs
    assert bar.output_type == "display_data"
    assert bar.data["text/html"] == ""  # gone once the work is done
    assert notebook.cells[1].outputs[0].text.startswith('<progress max="4"')
    assert "fits better" in notebook.cells[1].outputs[-1].data["text/html"]


RESULT = """
x = np.random.default_rng(0).normal(size=(100, 2))
lksd.compare_scores(x, -(x - 1), -x, lksd.kernels.IMQ(2.0))
"""
