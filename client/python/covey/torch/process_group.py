# SPDX-License-Identifier: Apache-2.0
"""The backend "covey" of torch.distributed: collectives of a Covey group."""

from __future__ import annotations

from typing import Any, Callable

import torch
import torch.distributed as dist
from torch.distributed import ReduceOp

import covey
from covey.handle import Handle
from covey.torch.completion import Completer
from covey.worker import Worker

_completer = Completer()


def _as_floats(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor's bytes as float32, in place where its memory allows that, padded otherwise.

    Broadcast and all-gather move bytes and compute nothing, so they carry elements of any type.
    """
    flat = tensor.detach().contiguous().view(-1).view(torch.uint8)
    if flat.numel() % 4 == 0 and flat.data_ptr() % 4 == 0:
        return flat.view(torch.float32)
    padded = torch.zeros((flat.numel() + 3) // 4 * 4, dtype=torch.uint8)
    padded[:flat.numel()] = flat
    return padded.view(torch.float32)


def _restore(floats: torch.Tensor, tensor: torch.Tensor) -> None:
    """Writes the bytes behind `floats` to a tensor of the same size."""
    if floats.data_ptr() == tensor.data_ptr():
        return
    count = tensor.numel() * tensor.element_size()
    source = floats.contiguous().view(torch.uint8)[:count].view(tensor.dtype)
    tensor.copy_(source.view(tensor.shape))


def _minimum(sum_: torch.Tensor, part: torch.Tensor) -> None:
    torch.minimum(sum_, part, out=sum_)


def _maximum(sum_: torch.Tensor, part: torch.Tensor) -> None:
    torch.maximum(sum_, part, out=sum_)


# "AVG" is a sum that is divided at the end.
_REDUCE: dict[str, Callable[[torch.Tensor, torch.Tensor], Any]] = {
    "SUM": torch.Tensor.add_,
    "AVG": torch.Tensor.add_,
    "PRODUCT": torch.Tensor.mul_,
    "MIN": _minimum,
    "MAX": _maximum,
    "BAND": torch.Tensor.bitwise_and_,
    "BOR": torch.Tensor.bitwise_or_,
    "BXOR": torch.Tensor.bitwise_xor_,
}


def _operation(options: Any) -> str:
    """The name of the operation that the options ask for."""
    if options is None:
        return "SUM"
    for name in _REDUCE:
        if options.reduceOp == getattr(ReduceOp, name):
            return name
    raise NotImplementedError(
        f"the backend covey cannot reduce by {options.reduceOp}; it knows {', '.join(_REDUCE)}")


class _Work(torch._C._distributed_c10d.Work):
    """An operation in progress, as torch.distributed knows it."""

    def __init__(self, handle: Handle | None, finish: Callable[[], Any], result: Any) -> None:
        super().__init__()
        self._handle = handle
        self._finish: Callable[[], Any] | None = finish
        self._result = result

    def wait(self, timeout: Any = None) -> bool:
        seconds = timeout.total_seconds() if timeout else None
        if self._handle is not None:
            self._handle.wait(seconds or None)
        finish, self._finish = self._finish, None
        if finish is not None:
            finish()
        return True

    def was_waited_for(self) -> bool:
        return self._finish is None

    def is_completed(self) -> bool:
        return self._handle is None or self._handle.done()

    def is_success(self) -> bool:
        return self.is_completed()

    def result(self) -> Any:
        return self._result

    def get_future(self) -> Any:
        if self._handle is None:
            future: torch.futures.Future[Any] = torch.futures.Future()
            future.set_result(self._result)
            return future

        def finished() -> Any:
            self.wait()
            return self._result

        return _completer.future(self._handle, finished)


class CoveyProcessGroup(dist.ProcessGroup):
    """The collectives of torch.distributed over a Covey group of CPU tensors.

    Sums of float32 take the group's own all-reduce. Other types and operations gather all
    members' tensors and reduce them in the order of ranks: correct, and meant for small tensors.
    Missing: send, recv, gather, scatter and all_to_all.
    """

    def __init__(self, worker: Worker, rank: int, size: int) -> None:
        super().__init__(rank, size)
        self._worker = worker
        self._size = size
        self._rank = rank
        # PyTorch 1.13 forgets the Python half of an operation unless somebody keeps it until it was
        # waited for.
        self._works: list[_Work] = []

    def getBackendName(self) -> str:  # noqa: N802, the name is PyTorch's
        return "covey"

    def name(self) -> str:
        return "covey"

    def allreduce(self, tensors: Any, opts: Any = None) -> _Work:
        tensor, operation = tensors[0], _operation(opts)
        sums = operation in ("SUM", "AVG")
        if sums and tensor.dtype == torch.float32 and tensor.numel() > 0:
            data = tensor.detach().contiguous().view(-1)
            handle = self._worker.group.all_reduce(data)

            def finish() -> None:
                if operation == "AVG":
                    data.div_(self._size)
                _restore(data, tensor)

            return self._start(handle, finish, tensors)
        return self._gather(tensor, lambda parts: self._reduce(parts, operation, tensor), tensors)

    def reduce(self, tensors: Any, opts: Any) -> _Work:
        root, tensor, operation = opts.rootRank, tensors[0], _operation(opts)

        def finish(parts: list[torch.Tensor]) -> None:
            if self._rank == root:
                self._reduce(parts, operation, tensor)

        return self._gather(tensor, finish, tensors)

    def broadcast(self, tensors: Any, opts: Any) -> _Work:
        tensor = tensors[0]
        if tensor.numel() == 0:
            return self._start(None, lambda: None, tensors)
        data = _as_floats(tensor)
        handle = self._worker.group.broadcast(data, opts.rootRank)
        return self._start(handle, lambda: _restore(data, tensor), tensors)

    def allgather(self, outputs: Any, inputs: Any, opts: Any = None) -> _Work:
        def finish(parts: list[torch.Tensor]) -> None:
            for output, part in zip(outputs[0], parts):
                output.copy_(part.view(output.shape))

        return self._gather(inputs[0], finish, outputs)

    def _allgather_base(self, output: torch.Tensor, input_: torch.Tensor, opts: Any = None) -> _Work:
        def finish(parts: list[torch.Tensor]) -> None:
            output.view(-1).copy_(torch.cat([part.reshape(-1) for part in parts]))

        return self._gather(input_, finish, output)

    def reduce_scatter(self, outputs: Any, inputs: Any, opts: Any) -> _Work:
        together = torch.cat([part.reshape(-1) for part in inputs[0]])
        return self._reduce_scatter_base(outputs[0], together, opts)

    def _reduce_scatter_base(self, output: torch.Tensor, input_: torch.Tensor,
                             opts: Any = None) -> _Work:
        operation = _operation(opts)

        def finish(parts: list[torch.Tensor]) -> None:
            whole = torch.empty_like(input_)
            self._reduce(parts, operation, whole)
            output.copy_(whole.view(-1).chunk(self._size)[self._rank].view(output.shape))

        return self._gather(input_, finish, output)

    def barrier(self, opts: Any = None) -> _Work:
        return self._start(self._worker.group.barrier(), lambda: None, [])

    def _gather(self, tensor: torch.Tensor, finish: Callable[[list[torch.Tensor]], Any],
                result: Any) -> _Work:
        """Starts an all-gather; `finish` gets the tensors of all members, in the order of ranks."""
        if tensor.numel() == 0:
            return self._start(None, lambda: finish([tensor] * self._size), result)
        own = _as_floats(tensor)
        everything = torch.empty(self._size * own.numel())
        everything.view(self._size, -1)[self._rank] = own
        handle = self._worker.group.all_gather(everything)

        def restore() -> None:
            parts = []
            for floats in everything.view(self._size, -1):
                part = torch.empty_like(tensor, memory_format=torch.contiguous_format)
                _restore(floats, part)
                parts.append(part)
            finish(parts)

        return self._start(handle, restore, result)

    def _reduce(self, parts: list[torch.Tensor], operation: str, out: torch.Tensor) -> None:
        total = parts[0].clone()
        for part in parts[1:]:
            _REDUCE[operation](total, part)
        if operation == "AVG":
            total.div_(self._size)
        out.copy_(total)

    def _start(self, handle: Handle | None, finish: Callable[[], Any], result: Any) -> _Work:
        self._works = [work for work in self._works if not work.was_waited_for()]
        work = _Work(handle, finish, result)
        self._works.append(work)
        return work


def _create(store: Any, rank: int, size: int, timeout: Any) -> CoveyProcessGroup:
    """What torch.distributed calls for init_process_group("covey") and new_group()."""
    worker = covey.init(rank=rank, timeout=timeout.total_seconds() or None)
    group = worker.group
    if (group.rank, group.size) != (rank, size):
        worker.close()
        raise covey.InvalidArgument(
            f"torch.distributed has rank {rank} of {size}, but this worker is {group.rank} of "
            f"{group.size} in its Covey group; start the scheduler with --groups 1 and "
            f"--workers {size}")
    return CoveyProcessGroup(worker, rank, size)


def register_backend() -> None:
    """Makes torch.distributed.init_process_group("covey") work; importing covey.torch does it."""
    if not dist.is_available() or hasattr(dist.Backend, "COVEY"):
        return
    dist.Backend.register_backend("covey", _create)


register_backend()
