# SPDX-License-Identifier: Apache-2.0
"""Operations in progress, as torch.distributed knows them."""

from __future__ import annotations

import datetime
import threading
from typing import Any, Callable

import torch

from covey.errors import CoveyError
from covey.handle import Handle
from covey.torch.completion import Completer, new_future

_completer = Completer()


class Several:
    """Several operations as one."""

    def __init__(self, works: list[Work]) -> None:
        self._works = works

    def wait(self, timeout: float | None = None) -> None:
        for work in self._works:
            work.wait(None if timeout is None else datetime.timedelta(seconds=timeout))

    def done(self) -> bool:
        return all(work.is_completed() for work in self._works)


class Work(torch._C._distributed_c10d.Work):
    """An operation in progress, as torch.distributed knows it."""

    def __init__(self, handle: Handle | Several | None, finish: Callable[[], Any],
                 result: Any) -> None:
        super().__init__()
        self._handle = handle
        self._finish: Callable[[], Any] | None = finish
        self._result = result
        self._lock = threading.Lock()

    def wait(self, timeout: Any = None) -> bool:
        seconds = timeout.total_seconds() if timeout else None
        if self._handle is not None:
            self._handle.wait(seconds or None)
        with self._lock:  # a future's thread may be here, too
            finish, self._finish = self._finish, None
            if finish is not None:
                finish()
        return True

    def was_waited_for(self) -> bool:
        return self._finish is None

    def is_completed(self) -> bool:
        if self._handle is not None and not self._handle.done():
            return False
        try:
            self.wait()  # at once; a program may read the tensors now
        except CoveyError:
            pass  # wait() raises it again
        return True

    def is_success(self) -> bool:
        return self.is_completed() and self.was_waited_for()

    def result(self) -> Any:
        return self._result

    def get_future(self) -> Any:
        if self._handle is None:
            self.wait()
            future = new_future(self._result)
            future.set_result(self._result)
            return future

        def finished() -> Any:
            self.wait()
            return self._result

        return _completer.future(self._handle, finished, self._result)
