# SPDX-License-Identifier: Apache-2.0
"""Runs a script in which torch.distributed knows the backend "covey".

    torchrun --nproc-per-node 4 -m covey.torch train.py

For PyTorch before 2.5, and for a package that is not installed but on Python's path: elsewhere
`import torch` finds the backend by itself.
"""

import os
import runpy
import sys

if len(sys.argv) < 2:
    sys.exit("usage: python3 -m covey.torch SCRIPT [ARGUMENT]...")
del sys.argv[0]
sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))  # as `python3 SCRIPT` has it
runpy.run_path(sys.argv[0], run_name="__main__")
