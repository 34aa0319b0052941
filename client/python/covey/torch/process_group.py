# SPDX-License-Identifier: Apache-2.0
"""The backend "covey" of torch.distributed: collectives of a Covey group."""

from __future__ import annotations

import inspect
from typing import Any, Callable

import torch
import torch.distributed as dist

import covey
from covey.handle import Handle
from covey.torch.reduction import check, flat, group_operation, operation_of, reduce, restore
from covey.torch.work import Several, Work
from covey.worker import Worker

_NO_PAIRS = ("the backend covey has no send and recv, because a Covey group has operations of all its "
             "members only; use broadcast() or all_to_all(), or gloo for these tensors")


class CoveyProcessGroup(dist.ProcessGroup):
    """The collectives of torch.distributed over a Covey group.

    Sums, products, minima and maxima of float32, float64, int32 and int64 take the group's own
    reductions. Other types and operations gather all members' tensors and compute in the order of
    ranks: correct, and meant for small tensors. So do gather, scatter and all_to_all, which therefore
    move more bytes than elsewhere. Tensors on a GPU are copied to host memory and back: for few and
    small ones, and for GPUs that nothing faster connects.
    Missing: send and recv, and groups of some of the workers.
    """

    def __init__(self, worker: Worker, rank: int, size: int) -> None:
        super().__init__(rank, size)
        self._worker = worker
        self._size = size
        self._rank = rank
        self._name = self._description = ""
        # PyTorch 1.13 forgets the Python half of an operation unless somebody keeps it until it was
        # waited for.
        self._works: list[Work] = []

    def getBackendName(self) -> str:  # noqa: N802, the name is PyTorch's
        return "covey"

    def name(self) -> str:
        return "covey"

    # PyTorch 2 names groups, and asks groups in Python as well as its own.
    def _set_group_name(self, name: str) -> None:
        self._name = name

    @property
    def group_name(self) -> str:
        return self._name

    def _set_group_desc(self, description: str) -> None:
        self._description = description

    @property
    def group_desc(self) -> str:
        return self._description

    def allreduce(self, tensors: Any, opts: Any = None) -> Work:
        tensor, operation = tensors[0], operation_of(opts)
        check(tensor)
        own = group_operation(operation, tensor)
        if own is None:
            return self._gather(tensor, lambda parts: reduce(parts, operation, tensor), tensors)
        data = flat(tensor)

        def finish() -> None:
            if operation == "AVG":
                data.div_(self._size)
            restore(data, tensor)

        return self._start(self._worker.group.all_reduce(data, own), finish, tensors)

    def allreduce_coalesced(self, tensors: Any, opts: Any = None) -> Work:
        return self._several([self.allreduce([tensor], opts) for tensor in tensors], tensors)

    def reduce(self, tensors: Any, opts: Any) -> Work:
        root, tensor = opts.rootRank, tensors[0]
        check(tensor)
        # The tensors of the others stay as they are.
        whole = tensor if self._rank == root else tensor.detach().clone()
        return self.allreduce([whole], opts)

    def broadcast(self, tensors: Any, opts: Any) -> Work:
        tensor = tensors[0]
        check(tensor)
        if tensor.numel() == 0:
            return self._start(None, lambda: None, tensors)
        data = flat(tensor)
        handle = self._worker.group.broadcast(data, opts.rootRank)
        return self._start(handle, lambda: restore(data, tensor), tensors)

    def allgather(self, outputs: Any, inputs: Any, opts: Any = None) -> Work:
        def finish(parts: list[torch.Tensor]) -> None:
            for output, part in zip(outputs[0], parts):
                output.copy_(part.view(output.shape))

        return self._gather(inputs[0], finish, outputs)

    def allgather_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> Work:
        return self._several([
            self.allgather([[of_rank[number] for of_rank in outputs]], [input_])
            for number, input_ in enumerate(inputs)], outputs)

    def gather(self, outputs: Any, inputs: Any, opts: Any) -> Work:
        def finish(parts: list[torch.Tensor]) -> None:
            if self._rank == opts.rootRank:
                for output, part in zip(outputs[0], parts):
                    output.copy_(part.view(output.shape))

        return self._gather(inputs[0], finish, outputs)

    def scatter(self, outputs: Any, inputs: Any, opts: Any) -> Work:
        output = outputs[0]
        together = output.new_empty(self._size * output.numel())
        if self._rank == opts.rootRank:
            torch.cat([part.reshape(-1) for part in inputs[0]], out=together)
        sent = self.broadcast([together], opts)

        def finish() -> None:
            output.copy_(together.view(self._size, -1)[self._rank].view(output.shape))

        return self._start(Several([sent]), finish, outputs)

    def alltoall(self, outputs: Any, inputs: Any, opts: Any = None) -> Work:
        # How many elements each member sends to each other one.
        counts = torch.zeros(self._size, self._size, dtype=torch.int64, device="cpu")
        mine = torch.tensor([part.numel() for part in inputs], device="cpu")
        self._allgather_base(counts, mine).wait()
        together = outputs[0].new_zeros(int(counts.sum(1).max()))
        sent = torch.cat([part.reshape(-1) for part in inputs])
        together[:sent.numel()] = sent

        def finish(parts: list[torch.Tensor]) -> None:
            for output, part, count in zip(outputs, parts, counts):
                begin = int(count[:self._rank].sum())
                output.copy_(part[begin:begin + output.numel()].view(output.shape))

        return self._gather(together, finish, outputs)

    def alltoall_base(self, output: torch.Tensor, input_: torch.Tensor, output_sizes: Any,
                      input_sizes: Any, opts: Any = None) -> Work:
        def parts(tensor: torch.Tensor, sizes: Any) -> list[torch.Tensor]:
            even = tensor.shape[0] // self._size
            return list(tensor.split(list(sizes) or [even] * self._size))

        return self.alltoall(parts(output, output_sizes), parts(input_, input_sizes))

    def send(self, tensors: Any, peer: int, tag: int = 0) -> Work:
        raise NotImplementedError(_NO_PAIRS)

    def recv(self, tensors: Any, peer: int, tag: int = 0) -> Work:
        raise NotImplementedError(_NO_PAIRS)

    def recv_anysource(self, tensors: Any, tag: int = 0) -> Work:
        raise NotImplementedError(_NO_PAIRS)

    def _allgather_base(self, output: torch.Tensor, input_: torch.Tensor, opts: Any = None) -> Work:
        def finish(parts: list[torch.Tensor]) -> None:
            output.view(-1).copy_(torch.cat([part.reshape(-1) for part in parts]))

        return self._gather(input_, finish, output)

    def reduce_scatter(self, outputs: Any, inputs: Any, opts: Any) -> Work:
        together = torch.cat([part.reshape(-1) for part in inputs[0]])
        return self._reduce_scatter_base(outputs[0], together, opts)

    def _reduce_scatter_base(self, output: torch.Tensor, input_: torch.Tensor,
                             opts: Any = None) -> Work:
        operation = operation_of(opts)
        check(input_)
        own = group_operation(operation, input_)
        if own is None:
            def finish_gather(parts: list[torch.Tensor]) -> None:
                whole = torch.empty_like(input_)
                reduce(parts, operation, whole)
                self._take_part(whole, output)

            return self._gather(input_, finish_gather, output)
        given = flat(input_)
        everything = torch.empty_like(given)

        def finish() -> None:
            if operation == "AVG":
                everything.div_(self._size)
            self._take_part(everything, output)

        handle = self._worker.group.reduce_scatter(given, own, out=everything)
        return self._start(handle, finish, output)

    def _take_part(self, whole: torch.Tensor, output: torch.Tensor) -> None:
        """Writes this member's part of the tensor to the output."""
        output.copy_(whole.view(-1).chunk(self._size)[self._rank].view(output.shape))

    def barrier(self, opts: Any = None) -> Work:
        return self._start(self._worker.group.barrier(), lambda: None, [])

    # What later versions call them.
    all_gather_single = _allgather_base
    reduce_scatter_single = _reduce_scatter_base
    all_to_all_single = alltoall_base

    def _gather(self, tensor: torch.Tensor, finish: Callable[[list[torch.Tensor]], Any],
                result: Any) -> Work:
        """Starts an all-gather; `finish` gets the tensors of all members, in the order of ranks."""
        check(tensor)
        if tensor.numel() == 0:
            return self._start(None, lambda: finish([tensor] * self._size), result)
        everything = tensor.new_empty((self._size, *tensor.shape), device="cpu")
        everything[self._rank].copy_(tensor.detach())
        handle = self._worker.group.all_gather(everything.view(-1))
        return self._start(handle, lambda: finish(list(everything)), result)

    def _several(self, works: list[Work], result: Any) -> Work:
        return self._start(Several(works), lambda: None, result)

    def _start(self, handle: Handle | Several | None, finish: Callable[[], Any], result: Any) -> Work:
        self._works = [work for work in self._works if not work.was_waited_for()]
        work = Work(handle, finish, result)
        self._works.append(work)
        return work


# This process, once it has joined.
_worker: Worker | None = None


def create(store: Any, rank: int, size: int, timeout: Any) -> CoveyProcessGroup:
    """What torch.distributed calls for init_process_group("covey") and new_group().

    All groups of a process are the one that its worker is in.
    """
    global _worker
    if _worker is not None:
        if (_worker.group.rank, _worker.group.size) != (rank, size):
            raise NotImplementedError(
                f"new_group() of {size} processes: the backend covey has one group, of all "
                f"{_worker.group.size}; use new_group(..., backend='gloo') for some of them")
        return CoveyProcessGroup(_worker, rank, size)
    worker = covey.init(rank=rank, timeout=timeout.total_seconds() or None)
    group = worker.group
    if (group.rank, group.size) != (rank, size):
        worker.close()
        raise covey.InvalidArgument(
            f"torch.distributed has rank {rank} of {size}, but this worker is {group.rank} of "
            f"{group.size} in its Covey group; start the scheduler with --groups 1 and "
            f"--workers {size}")
    _worker = worker
    return CoveyProcessGroup(worker, rank, size)


DEVICES = ("cpu", "cuda")


def register_backend() -> None:
    """Makes torch.distributed.init_process_group("covey") work; importing covey.torch does it, and
    from PyTorch 2.5 on `import torch`, where Covey is installed."""
    if not dist.is_available() or hasattr(dist.Backend, "COVEY"):
        return
    register = dist.Backend.register_backend
    # Before PyTorch 2.0 backends have no devices.
    has_devices = "devices" in inspect.signature(register).parameters
    register("covey", create, **({"devices": list(DEVICES)} if has_devices else {}))


register_backend()
