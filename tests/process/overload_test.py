# SPDX-License-Identifier: Apache-2.0
"""More load than servers can handle: they refuse and continue; no live node is declared dead;
memory is bounded.

  bazel build --config=opt //tests/process:overload_test
  bazel-bin/tests/process/overload_test --measure FILE.json --clients 10 --seconds 30
"""

import time

from tests.process import cluster, figures, outage, program

# The number and size of the tables: 16 MiB of values per replica.
_TABLES, _ELEMENTS = 32, 1 << 17
_TABLE_KIB = _TABLES * _ELEMENTS * 4 // 1024
# A server's default limit of queued bytes.
_BUDGET_KIB = 256 * 1024
_FIGURES = figures.Figures(clients=4, seconds=3)


class OverloadTest(cluster.ProcessTest):
    def test_goodput_memory_and_deaths(self):
        running = cluster.Cluster(self, servers=2)
        empty_kib = max(server.memory_kib() for server in running.servers)
        options = ["--elements", _ELEMENTS, "--bytes-in-flight", "64MiB"]
        seconds = _FIGURES.options.seconds
        floods = [outage.Probe(self, running, _TABLES, options)]
        alone = self._goodput(floods, seconds)
        floods += [outage.Probe(self, running, _TABLES, options)
                   for _ in range(_FIGURES.options.clients - 1)]
        crowded = self._goodput(floods, seconds)
        status = running.status()
        loads = [entry.get("load") or {} for entry in status["nodes"]]
        refused = sum(int(load.get("refused", 0)) for load in loads)
        peak_kib = max(server.memory_kib("VmHWM") for server in running.servers)
        for flood in floods:
            flood.stop(self)
        # With r = 2 each server holds every shard, its optimizer's spare buffer and a copy for
        # readers.
        bound_kib = 1.1 * (empty_kib + 3 * _TABLE_KIB + _BUDGET_KIB)
        _FIGURES.note("overload", clients=len(floods), goodput_alone_mib_s=round(alone, 1),
                      goodput_crowded_mib_s=round(crowded, 1), share=round(crowded / alone, 3),
                      refused=refused, peak_mib=peak_kib // 1024, bound_mib=int(bound_kib) // 1024)
        self.assertLess(peak_kib, bound_kib)
        dead = [node["name"] for node in status["view"]["nodes"]
                if node["state"] == "DEAD" and node["role"] == "SERVER"]
        self.assertEqual([], dead)
        self.assertGreater(crowded, 0)

    def _goodput(self, floods, seconds):
        """MiB per second of accepted gradients, after a moment to settle."""
        begin = time.time() + 1
        end = begin + seconds
        program.await_true(lambda: time.time() > end + 0.5, "time", seconds + 10)
        rate = sum(flood.rate(range(_TABLES), begin, end) for flood in floods)
        return rate * _ELEMENTS * 4 / (1 << 20)


if __name__ == "__main__":
    _FIGURES.main()
