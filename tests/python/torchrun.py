# SPDX-License-Identifier: Apache-2.0
"""How tests start programs that no `covey run` starts: alone, or by torchrun on loopback."""

import os
import pathlib
import socket

import covey
from tests.process import cluster
from tests.python import interpreter


def environment(folder, **more):
    """In which Python finds covey, and covey its programs; `folder` is for temporary files."""
    binaries = {os.path.dirname(path) for path in (cluster.SCHEDULER, cluster.SERVER)}
    clean = {name: value for name, value in os.environ.items()
             if not name.startswith(("COVEY_", "TEST_"))}
    return {**clean, "PATH": os.pathsep.join([*binaries, os.environ["PATH"]]), "TMPDIR": folder,
            "PYTHONPATH": str(pathlib.Path(covey.__file__).parents[1]), "OMP_NUM_THREADS": "1",
            # Otherwise gloo looks for the address of this machine's name.
            "GLOO_SOCKET_IFNAME": "lo", **more}


def command(workers):
    """Before the script and its arguments."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    # Without the options for output, PyTorch 1.13's does not start under Python 3.11.
    return [interpreter.PYTHON, "-m", "torch.distributed.run", "--nnodes", "1", "--master_addr",
            "127.0.0.1", "--master_port", str(port), "--nproc_per_node", str(workers),
            "--redirects", "1", "--tee", "1"]
