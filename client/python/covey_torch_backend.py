# SPDX-License-Identifier: Apache-2.0
"""What `import torch` runs of Covey, from PyTorch 2.5 on: it tells torch.distributed of its backend.

It is an entry point of the group torch.backends (entry_points.txt). It stands outside of the
package covey, so that programs that do not use the backend load nothing of it.
"""

import logging


def register():
    """Never raises: an error here would end `import torch` in every program of the installation."""
    try:
        import torch.distributed
        if torch.distributed.is_available() and not hasattr(torch.distributed.Backend, "COVEY"):
            torch.distributed.Backend.register_backend("covey", _create, devices=["cpu", "cuda"])
    except Exception as error:  # pylint: disable=broad-except
        logging.getLogger("covey").warning(
            "torch.distributed does not know the backend covey: %s; import covey.torch says more",
            error)


def _create(*arguments):
    from covey.torch import process_group
    return process_group.create(*arguments)
