"""Commands run on a real terminal."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import time


def on_terminal(
    command: list[str], interrupt_after: float | None = None, **options
) -> tuple[str, int]:
    """All that a command shows on a terminal, and its exit code; Ctrl-C after some seconds if asked
    for.
    """
    master, slave = pty.openpty()
    with subprocess.Popen(command, stderr=slave, stdout=slave, **options) as process:
        os.close(slave)
        if interrupt_after is not None:
            time.sleep(interrupt_after)
            process.send_signal(signal.SIGINT)
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
    return b"".join(chunks).decode(), process.returncode
