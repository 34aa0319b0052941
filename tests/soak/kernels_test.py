# SPDX-License-Identifier: Apache-2.0
"""The servers' kernels beside the machine's memory."""

import json

from tests import report
from tests.process import cluster


class KernelsTest(cluster.ProcessTest):
    """Servers apply updates at the speed of memory."""

    def test_updates_take_little_more_than_their_memory(self):
        run = self.run_to_end("bench", [
            cluster.COVEY, "bench", "--blocks", "memory", "--transport", "ipc", "-o", "json"],
            seconds=300)
        self.assertEqual(0, run.code, run)
        figures = {row["what"]: row for row in json.loads("".join(run.lines("stdout")))["figures"]}
        for kernel in ("sgd", "adam"):
            [ratio] = figures[f"covey kernel {kernel}"]["ratios"]
            self.assertEqual("memory stream", ratio["limit"])
            print(f"{kernel}: {ratio['median']:.2f} of memory stream", flush=True)
            self.assertGreaterEqual(ratio["median"], 0.7)


if __name__ == "__main__":
    report.main()
