# SPDX-License-Identifier: Apache-2.0
"""A scheduler and servers that the first worker starts itself, for one machine."""

from __future__ import annotations

import atexit
import ctypes
import logging
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

_log = logging.getLogger("covey")

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
    global _joined
    if _joined is None:
        _joined = _cluster_here(servers, groups, start_timeout, given.get("rank"))
    port, name = _joined
    given.update(scheduler=f"127.0.0.1:{port}", job=name)
    return join(**given)


def _cluster_here(servers: int, groups: int, timeout: float, rank: int | None) -> tuple[int, str]:
    """The scheduler's port and the job; the first worker starts them, and the others wait."""
    found = _launch.detect()
    size = found.size or 1
    if (found.rank is None and size > 1) or (found.rank or 0) >= size or rank not in (
            None, found.rank or 0):
        raise FailedPrecondition(
            f"init: it is not known which of how many workers this is (launched by {found.launcher}, "
            f"rank {found.rank if rank is None else rank} of {size}); start covey_scheduler and "
            "covey_server, and set COVEY_SCHEDULER")
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
        _Cluster(name, folder, servers, groups, size // groups, timeout)
    return _await_port(folder, timeout), name


def _started(pid: int) -> str:
    """When the process was started, as the system counts; empty = it has ended."""
    try:
        status = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""
    return status.rpartition(")")[2].split()[19]


def _await_port(folder: pathlib.Path, timeout: float) -> int:
    """The port of the scheduler, once a first worker that still runs has written it there."""
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        try:
            status = folder.lstat()
            if status.st_uid != os.getuid() or not stat.S_ISDIR(status.st_mode):
                raise FailedPrecondition(f"init: {folder} belongs to somebody else; set TMPDIR")
            port, pid, started = (folder / "ready").read_text(encoding="ascii").split()
            if _started(int(pid)) == started:
                return int(port)
        except (FileNotFoundError, ValueError):
            pass  # not yet; or what an earlier job has left
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


# The scheduler's port and job, once this process has joined it.
_joined: tuple[int, str] | None = None


class _Cluster:
    """Starts at once; ends with the program."""

    def __init__(self, job: str, folder: pathlib.Path, servers: int, groups: int, workers: int,
                 timeout: float) -> None:
        self._job = job
        self._folder = folder
        self._pid = os.getpid()
        self._address = ""
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
        port = self._await_scheduler(timeout)
        self._address = f"127.0.0.1:{port}"
        for rank in range(servers):
            self._start(server, "--job", job, "--scheduler", self._address, "--rank", str(rank))
        unfinished = folder / "unfinished"
        unfinished.write_text(f"{port} {self._pid} {_started(self._pid)}\n", encoding="ascii")
        unfinished.rename(folder / "ready")
        _log.info("scheduler at %s and %d servers, for as long as this program runs",
                  self._address, servers)

    def _start(self, *command: str) -> None:
        # The log of workers is the program's; of these, only what is wrong.
        environment = {"COVEY_LOG_LEVEL": "error", **os.environ}
        self._processes.append(subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, preexec_fn=_die_with_parent))

    def _await_scheduler(self, timeout: float) -> int:
        """The port that it listens on."""
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            if (code := self._processes[0].poll()) is not None:
                raise FailedPrecondition(f"init: covey_scheduler has ended with code {code}; what it "
                                         "printed says why")
            try:
                return int((self._folder / "port").read_text(encoding="ascii"))
            except (FileNotFoundError, ValueError):
                time.sleep(_LOOK_AGAIN_SECONDS)
        raise DeadlineExceeded(f"init: covey_scheduler does not listen after {timeout:g} s")

    def _end(self) -> None:
        if os.getpid() != self._pid:
            return  # a child by fork
        close_all()  # this program's worker, which the servers would wait for
        if self._address:
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
