# SPDX-License-Identifier: Apache-2.0
"""A scheduler and servers that the first worker starts itself, for one machine."""

from __future__ import annotations

import atexit
import ctypes
import os
import pathlib
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from typing import Any

from covey import launch as _launch
from covey._lifetime import close_all
from covey.client import connect
from covey.errors import CoveyError, DeadlineExceeded, FailedPrecondition, NotFound
from covey.worker import Worker, join

_PR_SET_PDEATHSIG = 1
_LOOK_AGAIN_SECONDS = 0.02
# How long the servers stay for other workers, once the first one's program has ended.
_OTHERS_LEAVE_SECONDS = 30.0
_END_SECONDS = 10.0


def init(servers: int = 1, *, groups: int = 1, start_timeout: float = 30.0, **given: Any) -> Worker:
    """Joins as join() does, and sees to it that there is something to join.

    Where a scheduler is named, by the argument or by COVEY_SCHEDULER, this is join(). Otherwise the
    worker of local rank 0 starts a scheduler and servers on this machine, and all workers that were
    started with it join them: `torchrun --nproc-per-node 4 train.py` needs no other command. They
    are for trying out, and for one machine: they end with that worker, or are killed with it.

    Args:
        servers: how many servers are started.
        groups: into how many groups the workers are divided, all of one size.
        start_timeout: longest wait for the scheduler to listen, in seconds.
        given: the arguments of join().

    Raises:
        FailedPrecondition: the workers are on several machines, or cannot be divided.
        NotFound: covey_scheduler or covey_server is not installed.
        DeadlineExceeded: the worker of local rank 0 has started no scheduler.
        and what join() raises.
    """
    if given.get("scheduler") or os.environ.get("COVEY_SCHEDULER"):
        return join(**given)
    found = _launch.detect()
    size = found.size or 1
    if found.local_size not in (None, size):
        raise FailedPrecondition(
            f"init: {found.local_size} of {size} workers are on this machine, and init starts servers "
            "for one machine only; start covey_scheduler and covey_server, and set COVEY_SCHEDULER")
    if groups < 1 or size % groups != 0:
        raise FailedPrecondition(f"init: {size} workers cannot be divided into {groups} groups of one "
                                 "size; choose another number of groups")
    # Workers that were started together have one parent. A restart by torchrun is another cluster.
    name = "-".join(["covey-init", str(os.getuid()), str(os.getppid() if size > 1 else os.getpid()),
                     os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")])
    folder = pathlib.Path(tempfile.gettempdir(), name)
    if not found.rank:
        _Cluster(name, folder, servers, groups, size // groups)
    port = _await_port(folder, start_timeout)
    given.update(scheduler=f"127.0.0.1:{port}", job=name)
    return join(**given)


def _await_port(folder: pathlib.Path, timeout: float) -> int:
    """The port of the scheduler, once it has written it there."""
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        try:
            status = folder.lstat()
            if status.st_uid != os.getuid() or not stat.S_ISDIR(status.st_mode):
                raise FailedPrecondition(f"init: {folder} belongs to somebody else; set TMPDIR")
            text = (folder / "port").read_text(encoding="ascii")
            if text.strip().isdigit():
                return int(text)
        except FileNotFoundError:
            pass
        time.sleep(_LOOK_AGAIN_SECONDS)
    raise DeadlineExceeded(f"init: no scheduler after {timeout:g} s; the worker of local rank 0 starts "
                           "it, look at its output")


def _program(name: str) -> str:
    """Beside this Python, as pip installs it, or on PATH."""
    beside = pathlib.Path(sys.executable).parent / name
    found = str(beside) if beside.is_file() else shutil.which(name)
    if found is None:
        raise NotFound(f"init: there is no {name} on PATH; install Covey's wheel or the package covey, "
                       "or start the servers yourself and set COVEY_SCHEDULER")
    return found


class _Cluster:
    """Starts at once; ends with the program."""

    def __init__(self, job: str, folder: pathlib.Path, servers: int, groups: int,
                 workers: int) -> None:
        self._job = job
        self._folder = folder
        self._processes: list[subprocess.Popen[bytes]] = []
        scheduler, server = _program("covey_scheduler"), _program("covey_server")
        # What an earlier program of the same number has left behind.
        shutil.rmtree(folder, ignore_errors=True)
        try:
            folder.mkdir(mode=0o700)
        except FileExistsError:
            raise FailedPrecondition(f"init: {folder} belongs to somebody else; set TMPDIR") from None
        atexit.register(self._end)
        self._start(scheduler, "--job", job, "--servers", str(servers), "--groups", str(groups),
                    "--workers", str(workers), "--port-file", str(folder / "port"))
        self._address = f"127.0.0.1:{_await_port(folder, 30.0)}"
        for rank in range(servers):
            self._start(server, "--job", job, "--scheduler", self._address, "--rank", str(rank))
        print(f"covey: scheduler at {self._address} and {servers} servers, for as long as this program "
              "runs", file=sys.stderr, flush=True)

    def _start(self, *command: str) -> None:
        # The log of workers is the program's; of these, only what is wrong.
        environment = {"COVEY_LOG_LEVEL": "error", **os.environ}
        self._processes.append(subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, preexec_fn=_die_with_parent))

    def _end(self) -> None:
        close_all()  # this program's worker, which the servers would wait for
        self._await_others()
        for process in reversed(self._processes):
            process.terminate()
        deadline = time.monotonic() + _END_SECONDS
        for process in self._processes:
            try:
                process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _await_others(self) -> None:
        deadline = time.monotonic() + _OTHERS_LEAVE_SECONDS
        try:
            with connect(self._address, job=self._job, join_timeout=2.0) as client:
                while time.monotonic() < deadline:
                    nodes = client.status()["view"].get("nodes", [])
                    if not any(node["role"] == "WORKER" and node["state"] == "ALIVE"
                               for node in nodes):
                        return
                    time.sleep(5 * _LOOK_AGAIN_SECONDS)
        except (CoveyError, KeyError):
            pass  # it has ended already


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
