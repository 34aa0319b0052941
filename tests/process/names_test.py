# SPDX-License-Identifier: Apache-2.0
"""A peer whose name nobody can look up does not slow down what goes to others."""

from tests import report
from tests.process import cluster, network, outage, program

# A lookup that gets no answer takes 10 s, for which a push would have to wait.
_LOOKUP_SECONDS = 10
_SLOWEST_SECONDS = 6
_NOWHERE = "nowhere.example:7000"


class NamesTest(cluster.ProcessTest):
    def setUp(self):
        super().setUp()
        network.silence_the_resolver(self)
        # Through TCP, as between hosts.
        self.running = cluster.Cluster(self, servers=2, server_options=["--transport", "tcp"])

    def test_a_name_without_an_answer_delays_no_other_peer(self):
        probe = outage.Probe(self, self.running)
        self.running.servers[1].kill()
        # Server 0 sends the content of all its shards there.
        self.start("server-1", [*self.running.server_arguments(1), "--transport", "tcp", "--loops", 1,
                                "--advertise-data", _NOWHERE])
        self.running.await_status(
            lambda status: any(_NOWHERE in endpoint for node in cluster.nodes(status, "SERVER")
                               for endpoint in node["endpoints"]), "server 1")
        began = probe.newest()
        program.await_true(lambda: probe.newest() - began > 2 * _LOOKUP_SECONDS,
                           f"figures of the probe: {probe.child}")
        slowest = probe.slowest(began, probe.newest(), field="slowest")
        self.assertLess(slowest, _SLOWEST_SECONDS)
        self.assertGreater(probe.rate(range(6), began, probe.newest()), 0)
        probe.stop(self)


if __name__ == "__main__":
    report.main()
