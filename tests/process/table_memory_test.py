# SPDX-License-Identifier: Apache-2.0
"""Servers of 1 GiB, and tables for which they have no memory: nothing else comes to harm."""

import os

from tests import report
from tests.process import cluster, program

_CREATE = program.built("tests/process/memory_client")
_LIMIT_KIB = 1 << 20
_TABLE_MIB = 4096
# With momentum more than two servers of 1 GiB have, and not too much for the client.
_BEYOND_MIB = 1280


class TableMemoryTest(cluster.ProcessTest):
    def start_cluster(self, **options):
        limited = os.path.join(self.folder, "limited_server")
        with open(limited, "w", encoding="ascii") as script:
            script.write(f'#!/bin/sh\nulimit -v {_LIMIT_KIB}\nexec "{cluster.SERVER}" "$@"\n')
        os.chmod(limited, 0o755)
        self.cluster = cluster.Cluster(self, servers=2, server_program=limited, **options)
        self.assertEqual(1, self.cluster.count())

    def assert_others_go_on(self):
        for count in (2, 3):
            self.assertEqual(count, self.cluster.count())
        for each in [self.cluster.scheduler, *self.cluster.servers]:
            self.assertTrue(each.running(), each)

    def test_a_table_beyond_their_memory_is_refused(self):
        self.start_cluster()
        client = self.run_to_end("client", [_CREATE, self.cluster.address, cluster.JOB, _TABLE_MIB])
        self.assertNotEqual(0, client.code)
        client.await_line(r"create table 'large'.*need 17179869184 bytes in all replicas, and the "
                          r"tables of the servers may take \d+ more")
        self.assertEqual(["counters"], [table["spec"]["name"] for table in
                                       self.cluster.status()["view"]["tables"]])
        self.assert_others_go_on()

    def test_a_shard_without_memory_fails_alone(self):
        # The operator is wrong about how much there is.
        self.start_cluster(server_options=["--table-bytes-max", "1TiB"])
        client = self.start("client", [_CREATE, self.cluster.address, cluster.JOB, _BEYOND_MIB])
        for server in self.cluster.servers:
            server.await_line("shard_not_opened.*the system has no memory")
        self.assert_others_go_on()
        client.kill()


if __name__ == "__main__":
    report.main()
