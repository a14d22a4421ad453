"""Nothing that a cluster of our own starts can be reached from elsewhere, and nothing that is
frozen is waited for without end.
"""

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import dask
import numpy as np
import psutil
import pytest
from distributed import Client, LocalCluster
from distributed.security import Security

import lksd
from lksd.engines import EngineError, opened
from lksd.engines.cluster import Dask, own_cluster
from lksd.models import PPCA

X = np.random.default_rng(0).normal(size=(12, 2))
MODEL = PPCA(np.ones((2, 1)), 1.0)


@pytest.fixture(autouse=True)
def importable(monkeypatch):
    """Workers, which are programs of their own, find the functions of this file."""
    monkeypatch.setenv(
        "PYTHONPATH",
        os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]),
    )


def listening(process: psutil.Process) -> list[tuple[int, str]]:
    """What all processes below one listen on for others: (process, address)."""
    found = []
    for one in (process, *process.children(recursive=True)):
        for socket in one.net_connections("inet"):
            if socket.status == psutil.CONN_LISTEN or (
                socket.type.name == "SOCK_DGRAM" and not socket.raddr
            ):
                found.append((one.pid, socket.laddr.ip))
    return found


def scanning(shared):
    def one(item):
        root = psutil.Process(shared)
        return [*listening(root), (len(root.children(recursive=True)), "processes")]

    return one


def test_a_cluster_of_our_own_listens_on_loopback_only():
    before = {address for _, address in listening(psutil.Process())}
    with opened("dask") as engine:
        seen = [place for places in engine.map(scanning, os.getpid(), range(4)) for place in places]
        assert engine.workers == len(os.sched_getaffinity(0))
    places = {
        address
        for process, address in seen
        if address != "processes" and not (process == os.getpid() and address in before)
    }
    assert places == {"127.0.0.1"}
    assert len({process for process, address in seen if address == "127.0.0.1"}) == 1 + 2 * len(
        os.sched_getaffinity(0)
    )


def certificates(folder: Path) -> Security:
    """Of one's own, as a user makes them."""
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "2",
        "-subj",
        "/CN=lksd",
    ]
    subprocess.run([*command, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    both = {"tls_ca_file": str(certificate), "require_encryption": True}
    return Security(
        **both,
        **{
            f"tls_{role}_{part}": str(path)
            for role in ("client", "scheduler", "worker")
            for part, path in (("key", key), ("cert", certificate))
        },
    )


def test_a_cluster_with_tls(tmp_path):
    security = certificates(tmp_path)
    here = lksd.estimate_scores(MODEL, X, exact=False, warmup=5, draws=10)
    options = {
        "n_workers": 1,
        "threads_per_worker": 1,
        "processes": False,
        "dashboard_address": "127.0.0.1:0",
    }
    with LocalCluster(**options, protocol="tls://", security=security) as cluster:
        address = cluster.scheduler_address
        assert address.startswith("tls://")
        with Client(cluster, security=security) as client:
            there = lksd.estimate_scores(MODEL, X, exact=False, warmup=5, draws=10, engine=client)
        np.testing.assert_array_equal(there.score, here.score)
        with pytest.raises(
            ValueError,
            match=r"engine: expected certificates for 'tls://.*Client\(address, security=Security",
        ):
            opened(address).__enter__()
        names = {
            "ca-file": security.tls_ca_file,
            "client": {"key": security.tls_client_key, "cert": security.tls_client_cert},
        }
        with (
            dask.config.set(
                {"distributed.comm.tls": dask.config.get("distributed.comm.tls") | names}
            ),
            opened(address) as engine,
        ):
            assert engine.workers == 1
        with (
            dask.config.set({"distributed.comm.require-encryption": True}),
            pytest.raises(ValueError, match="begins with tls://"),
        ):
            opened(address.replace("tls", "tcp")).__enter__()
        with pytest.raises(EngineError, match="nothing answered"):
            opened(address.replace("tls", "tcp")).__enter__()


def slow(shared):
    """A part that stops the process it runs in, if it is the first, or takes longer than any
    silence may last.
    """
    import os
    import signal
    import time
    from pathlib import Path

    def one(item):
        if item == 0:
            try:
                Path(shared).touch(exist_ok=False)
            except FileExistsError:
                return item  # the second time, elsewhere
            os.kill(os.getpid(), signal.SIGSTOP)
        if item == 1:
            time.sleep(8)  # without the interpreter's lock, as compiled programs
        return item

    return one


def test_a_frozen_worker_costs_its_parts_and_a_slow_one_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("LKSD_SILENCE", "5")
    with (
        opened("dask") as engine,
        pytest.warns(
            lksd.LksdWarning, match="engine: tcp://.* no sign of life for 5 seconds"
        ) as caught,
    ):
        assert list(engine.map(slow, str(tmp_path / "stopped"), range(4))) == [0, 1, 2, 3]
    assert len(caught) == 1
    assert not [
        one
        for one in psutil.Process().children(recursive=True)
        if one.status() == psutil.STATUS_STOPPED
    ]


def freezing(shared):
    """Stops the nanny too, so that nobody starts the worker again."""
    import os
    import signal

    def one(item):
        os.kill(os.getppid(), signal.SIGSTOP)
        os.kill(os.getpid(), signal.SIGSTOP)

    return one


def test_a_cluster_whose_workers_are_all_frozen_is_an_error(monkeypatch):
    monkeypatch.setenv("LKSD_SILENCE", "5")
    with (
        pytest.warns(lksd.LksdWarning, match="no sign of life"),
        pytest.raises(
            EngineError,
            match=r"engine: expected workers that answer; for 5 seconds there was none.*run again",
        ),
        own_cluster([0]) as client,
    ):
        list(Dask(lambda: client, own=True).map(freezing, None, [1]))
    assert not [
        one
        for one in psutil.Process().children(recursive=True)
        if one.status() == psutil.STATUS_STOPPED
    ]


SCHEDULER = """
    import signal, sys, time
    from distributed import LocalCluster
    if __name__ == "__main__":
        options = {"threads_per_worker": 1, "dashboard_address": "127.0.0.1:0", "n_workers": 1}
        address = {"protocol": "tcp://", "host": "127.0.0.1"}
        with LocalCluster(processes=False, **address, **options) as cluster:
            print(cluster.scheduler_address, flush=True)
            sys.stdin.read()
"""


def test_a_frozen_scheduler_is_an_error(monkeypatch):
    monkeypatch.setenv("LKSD_SILENCE", "5")
    command = [sys.executable, "-c", textwrap.dedent(SCHEDULER)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            address = process.stdout.readline().strip()
            with opened(address) as engine:
                assert engine.workers == 1
                process.send_signal(signal.SIGSTOP)
                with pytest.raises(
                    EngineError,
                    match=r"engine: expected a scheduler that answers; tcp://.* was silent for 5 "
                    r"seconds",
                ):
                    list(engine.map(slow, "", [2, 3]))
        finally:
            process.kill()


@pytest.mark.parametrize("given", ["soon", "1", "nan", "inf"])
def test_a_silence_that_is_none(given, monkeypatch):
    monkeypatch.setenv("LKSD_SILENCE", given)
    with (
        own_cluster([0]) as client,
        opened(client) as engine,
        pytest.raises(ValueError, match="LKSD_SILENCE: expected a number"),
    ):
        list(engine.map(slow, "", [2]))
