# SPDX-License-Identifier: Apache-2.0
"""A group under `bsp` trains the same bits as one process, over any number of servers."""

import os
import re
import subprocess
import sys
import unittest

from tests import report

_LAUNCHER, _SCHEDULER, _SERVER, _WORKER, _REFERENCE = sys.argv[1:6]
_WEIGHTS = re.compile(r"weights \w+ [0-9a-f]{8}")


def _weights(command, **environment):
    run = subprocess.run(
        command, capture_output=True, text=True, timeout=120, env={**os.environ, **environment}
    )
    if run.returncode != 0:
        raise AssertionError(f"{command} exited with {run.returncode}\n{run.stdout}{run.stderr}")
    return sorted(_WEIGHTS.findall(run.stdout))


def _of_cluster(members, servers, algorithm="ring"):
    return _weights(
        [
            _LAUNCHER, "run", f"--servers={servers}", "--groups=1", f"--workers={members}",
            f"--scheduler-binary={_SCHEDULER}", f"--server-binary={_SERVER}", "--", _WORKER,
        ],
        COVEY_COLLECTIVE=algorithm,
    )  # fmt: skip


class BitEqualityTest(unittest.TestCase):
    def test_weights_equal_those_of_one_process(self):
        for members in (1, 2, 4):
            expected = _weights([_REFERENCE, str(members)])
            self.assertEqual(3, len(expected))
            for servers in (1, 2, 3):
                with self.subTest(members=members, servers=servers):
                    # Every member prints its own copy.
                    everybody = sorted(expected * members)
                    self.assertEqual(everybody, _of_cluster(members, servers))

    def test_every_algorithm_sums_in_its_own_order(self):
        members = 4
        for algorithm in ("direct", "hierarchical", "halving-doubling", "tree"):
            with self.subTest(algorithm=algorithm):
                expected = _weights([_REFERENCE, str(members), algorithm])
                self.assertEqual(sorted(expected * members), _of_cluster(members, 2, algorithm))

    def test_the_order_of_summation_can_be_seen(self):
        """Without this the test above would prove nothing about the cluster."""
        self.assertNotEqual(_weights([_REFERENCE, "2"]), _weights([_REFERENCE, "4"]))


if __name__ == "__main__":
    report.main(argv=sys.argv[:1])
