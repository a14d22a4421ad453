"""Runs the Python blocks of a Markdown page in order, in one namespace, and compares what they
print with what the page shows.
"""

import io
import math
import re
from contextlib import redirect_stdout
from pathlib import Path

BLOCK = re.compile(r"^```(python|text)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")
# numbers may differ in rounding between machines, and a little more where chains made them
RELATIVE = 0.02
UNITS = 2  # of the last digit shown
# the worst of hundreds of chains varies with the processor
EXTREMES = re.compile(r"R-hat at most [\d.]+, ESS at least \d+")


def run_page(path: Path) -> tuple[dict, int]:
    """The names that the page defines, and how many blocks ran; a text block after a block is what
    that block prints.
    """
    text = path.read_text(encoding="utf-8")
    blocks = list(BLOCK.finditer(text))
    names: dict = {"__name__": path.stem}
    count = 0
    for block, following in zip(blocks, [*blocks[1:], None], strict=True):
        if block[1] == "text":
            continue
        line = text.count("\n", 0, block.start(2))
        printed = io.StringIO()
        with redirect_stdout(printed):
            exec(compile("\n" * line + block[2], str(path), "exec"), names)
        count += 1
        if (
            following is not None
            and following[1] == "text"
            and not text[block.end() : following.start()].strip()
        ):
            shown = following[2]
            assert agree(printed.getvalue(), shown), (
                f"{path.name}, line {line}: prints\n{printed.getvalue()}\nand shows\n{shown}"
            )
    return names, count


def agree(printed: str, shown: str) -> bool:
    """The same words, and numbers that agree to what they show; a line of dots stands for any
    lines.
    """
    printed, shown = EXTREMES.sub("R-hat and ESS", printed), EXTREMES.sub("R-hat and ESS", shown)
    if "\n...\n" in f"\n{shown}":
        head, tail = f"\n{shown}".split("\n...\n", 1)
        count, rest = head.count("\n"), tail.count("\n")
        lines = printed.splitlines(keepends=True)
        return agree("".join(lines[:count]), head[1:] + "\n" * bool(count)) and agree(
            "".join(lines[len(lines) - rest :]), tail
        )
    if words(printed) != words(shown):
        return False
    pairs = zip(NUMBER.findall(printed), NUMBER.findall(shown), strict=True)
    return all(near(*pair) for pair in pairs)


def words(text: str) -> list[str]:
    """Without numbers, and without the widths that numbers give to columns."""
    return re.sub(r"-{3,}", "---", NUMBER.sub("#", text)).split()


def near(a: str, b: str) -> bool:
    unit = max(10.0 ** -digits(a), 10.0 ** -digits(b))
    x, y = float(a.replace(",", "")), float(b.replace(",", ""))
    return math.isclose(x, y, rel_tol=RELATIVE, abs_tol=UNITS * unit * (1 + 1e-9))


def digits(number: str) -> int:
    mantissa, _, exponent = number.partition("e")
    return len(mantissa.partition(".")[2]) - int(exponent or 0)
