# SPDX-License-Identifier: Apache-2.0
"""What the programs of launch_test.py run: says where it is, and adds its rank plus one."""

import array
import json
import logging
import os
import signal
import sys
import time

import covey

logging.basicConfig(level=logging.INFO)
way = sys.argv[1]
worker = covey.join() if way in ("join", "restart") else covey.init(servers=2, groups=2 if way == "init" else 1)
if way == "restart" and worker.launch.rank == 1 and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
    os.kill(os.getpid(), signal.SIGKILL)
if way == "wait":
    print("joined", flush=True)
    time.sleep(600)
total = array.array("f", [worker.group.rank + 1])
worker.group.all_reduce(total).wait()
# The worker beside the one that was killed may get as far as this before it is restarted, too.
if way != "restart" or os.environ["TORCHELASTIC_RESTART_COUNT"] != "0":
    with worker.connect() as client:  # finds the same job
        tables = len(client.list_tables())
    print(json.dumps({"tables": tables, "rank": worker.rank, "size": worker.size,
                      "groups": worker.groups, "local_rank": worker.local_rank,
                      "sum": total[0]}), flush=True)
if way in ("join", "restart"):
    worker.close()
