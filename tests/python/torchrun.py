# SPDX-License-Identifier: Apache-2.0
"""How tests start torchrun: on loopback alone, where no name has to be found."""

import socket
import sys

# gloo otherwise looks for the address of this machine's name.
ENVIRONMENT = {"GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}


def command(workers):
    """Before the script and its arguments."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    # Without the options for output, PyTorch 1.13's does not start under Python 3.11.
    return [sys.executable, "-m", "torch.distributed.run", "--nnodes", "1", "--master_addr",
            "127.0.0.1", "--master_port", str(port), "--nproc_per_node", str(workers),
            "--redirects", "1", "--tee", "1"]
