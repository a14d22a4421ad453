"""``python -m lksd`` is the command ``lksd``."""

from .cli import run

if __name__ == "__main__":
    run()
