# SPDX-License-Identifier: Apache-2.0
"""A communication hook for DistributedDataParallel."""

from typing import Any

from covey.torch.completion import Completer
from covey.torch.reduction import flat, restore
from covey.worker import Worker

_completer = Completer()


# PyTorch refuses annotations of `bucket` and of the result that it does not know letter by letter.
def ddp_hook(state: Worker, bucket):  # type: ignore[no-untyped-def]
    """Averages gradients over the Covey group: model.register_comm_hook(worker, ddp_hook).

    The optimizer stays local. Buckets on a GPU go through host memory. The members of
    DistributedDataParallel's process group and those of the Covey group must be the same.
    """
    tensor: Any = bucket.buffer()
    tensor.div_(state.group.size)
    data = flat(tensor)

    def finished() -> Any:
        restore(data, tensor)
        return tensor

    return _completer.future(state.group.all_reduce(data), finished, tensor)
