# SPDX-License-Identifier: Apache-2.0
"""The resident memory (VmRSS) of a large table and of an idle worker."""


from tests import report
from tests.process import cluster, program

_MEMORY_CLIENT = program.built("tests/process/memory_client")
_TABLE_MIB = 1024
_SERVER_MIB_MAX = 2.2 * 1024
_WORKER_MIB_MAX = 30


class MemoryTest(cluster.ProcessTest):
    def test_server_with_a_large_table_and_momentum(self):
        running = cluster.Cluster(self, loops=2)
        client = self.run_to_end(
            "client", [_MEMORY_CLIENT, running.address, cluster.JOB, _TABLE_MIB], seconds=600)
        self.assertEqual(0, client.code, client)
        server = running.servers[0]
        resident, highest = (server.memory_kib(field) >> 10 for field in ("VmRSS", "VmHWM"))
        print(f"server with {_TABLE_MIB} MiB and momentum: {resident} MiB, at most {highest} MiB")
        # Values and momentum: less would mean that the pushes did not arrive.
        self.assertGreater(resident, 2 * _TABLE_MIB)
        self.assertLess(resident, _SERVER_MIB_MAX)

    def test_idle_worker(self):
        running = cluster.Cluster(self)
        joined = self.start("joined", [cluster.RING_WORKER], running.environment())
        alone = self.start("alone", [cluster.RING_WORKER])
        for worker in (joined, alone):
            worker.await_line("ready")
        for field in ("VmRSS", "RssAnon"):
            print(f"{field}: worker {joined.memory_kib(field)} KiB, "
                  f"the same program without a cluster {alone.memory_kib(field)} KiB")
        # The whole process, including its libraries.
        self.assertLess(joined.memory_kib(), _WORKER_MIB_MAX << 10)


if __name__ == "__main__":
    report.main()
