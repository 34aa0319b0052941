# SPDX-License-Identifier: Apache-2.0
"""Stops one thread of a process, while its other threads go on."""

import ctypes
import os
import threading
import unittest

_PTRACE_SEIZE = 0x4206
_PTRACE_INTERRUPT = 0x4207
_PTRACE_DETACH = 17
# Children that are threads, too.
_WALL = 0x40000000
_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]


def _trace(request, thread):
    if _LIBC.ptrace(request, thread, None, None) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _thread_called(pid, name):
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/comm", encoding="ascii") as file:
            if file.read().strip() == name:
                return int(thread)
    raise AssertionError(f"process {pid} has no thread {name}")


class StoppedThread:
    """The thread `name` of process `pid`, stopped until `resume` or the end of the process.

    Only the thread that has stopped another one can let it go on, so it has a thread of its own.
    unittest.SkipTest: this system lets no process stop threads of another.
    """

    def __init__(self, pid, name):
        self._thread = _thread_called(pid, name)
        self._refusal = None
        self._stopped = threading.Event()
        self._resumed = threading.Event()
        self._tracer = threading.Thread(target=self._hold, daemon=True)
        self._tracer.start()
        self._stopped.wait()
        if self._refusal is not None:
            raise unittest.SkipTest(f"threads cannot be stopped: {self._refusal}")

    def resume(self):
        self._resumed.set()
        self._tracer.join()

    def _hold(self):
        try:
            _trace(_PTRACE_SEIZE, self._thread)
            _trace(_PTRACE_INTERRUPT, self._thread)
            os.waitpid(self._thread, _WALL)
        except OSError as error:
            self._refusal = error
            return
        finally:
            self._stopped.set()
        # A thread that has ended is a zombie, which keeps its process from ending, until it is
        # waited for.
        while not self._resumed.wait(0.05):
            if os.waitpid(self._thread, _WALL | os.WNOHANG)[0] == self._thread:
                return
        _trace(_PTRACE_DETACH, self._thread)
