# SPDX-License-Identifier: Apache-2.0
"""Networks that partition, in one direction or both, and heal: no acknowledged push is lost, none
is applied twice, and all nodes reconnect. No fault here may be seen as an error: a producer ends
with the first push that fails, and the test with it.

Each process is on a machine of its own; the test controls the packets between machines
(network.py).
"""

import os
import time

from tests.process import chains, cluster, figures, ledger, network, outage, program

_SERVERS = 3
# After healing everything is whole within this time on a quiet machine; a hang takes longer.
_CONVERGE_SECONDS = 30
# TCP alone would wait for about as long again after such a cut.
_LONG_CUT_SECONDS = 60
# Until a push succeeds after any cut has healed.
_FIRST_PUSH_SECONDS = 10
_FIGURES = figures.Figures(rounds=1)


class RelayedCluster(cluster.Observer):
    """A scheduler, servers and a machine "client", each on its own node of a Relayed network."""

    def __init__(self, test, relayed):
        self._test = test
        self._relayed = relayed
        port_file = os.path.join(test.folder, "port")
        host = relayed.nodes["scheduler"].address
        self.scheduler = test.start("scheduler", [
            *relayed.nodes["scheduler"].command(), cluster.SCHEDULER, "--job", cluster.JOB,
            "--servers", _SERVERS, "--host", host, "--insecure", "--port-file", port_file,
            "--log-file", os.path.join(test.folder, "decisions")])
        program.await_true(
            lambda: os.path.exists(port_file) or not self.scheduler.running(),
            f"a port file of {self.scheduler}")
        with open(port_file, encoding="ascii") as file:
            super().__init__(f"{host}:{int(file.read())}", relayed.nodes["scheduler"].command())
        self.servers = [None] * _SERVERS
        for rank in range(_SERVERS):
            self.start_server(rank)

    def start_server(self, rank):
        """Starts the first server of this rank, or one in place of one that has ended."""
        node = self._relayed.nodes[f"server-{rank}"]
        self.servers[rank] = self._test.start(f"server-{rank}", [
            *node.command(), cluster.SERVER, "--scheduler", self.address, "--job", cluster.JOB,
            "--rank", rank, "--data-host", node.address, "--insecure", "--loops", 1])

    def restart_the_fallen(self):
        """Acts as a supervisor of servers."""
        for rank, server in enumerate(self.servers):
            if not server.running():
                self.start_server(rank)


class PartitionTest(cluster.ProcessTest):
    def setUp(self):
        super().setUp()
        names = ["scheduler", *(f"server-{rank}" for rank in range(_SERVERS)), "client"]
        self.relayed = network.Relayed(self, names)
        self.running = RelayedCluster(self, self.relayed)
        self.where = self.relayed.nodes["client"].command()
        self.producers = [
            ledger.Producer(self, self.running, contract, slot, where=self.where)
            for contract in ("async", "buffered:2") for slot in range(2)]
        for producer in self.producers:
            producer.await_durable(1, "first durable pushes")
        self.status = chains.await_whole(self.running)

    def _heal(self, name):
        """Waits until all nodes have reconnected by themselves, and checks the ledger."""
        self.relayed.heal()
        healed = time.time()
        for producer in self.producers:
            producer.await_durable(1, "a durable push after healing",
                                   healed + _FIRST_PUSH_SECONDS - time.time())
        chains.await_whole(self.running, _CONVERGE_SECONDS)
        for producer in self.producers:
            producer.await_durable(8, "durable pushes after healing", _CONVERGE_SECONDS)
        _FIGURES.note(f"{name}: healed until whole and pushing",
                      seconds=round(time.time() - healed, 3))
        ledger.stop(self, self.running, self.producers, where=self.where)
        account = ledger.audit(self, self.running, self.producers, where=self.where)
        print(account, flush=True)
        self.assertEqual([], account.deviations)
        self.assertEqual(0, account.uncertain)
        self.assertGreater(account.certain, 0)

    def _head(self):
        """Names of a server that is the head of a shard, and of that shard's tail."""
        chain = next(chain for (table, _), chain in chains.of(self.status).items()
                     if table.startswith("ledger/"))
        return chain[0][0], chain[-1][0]

    def _push_on(self, pushes=8):
        for producer in self.producers:
            producer.await_durable(pushes, "durable pushes meanwhile")

    def test_a_server_is_isolated(self):
        head, _ = self._head()
        self.relayed.fault("isolate", head)
        # The other servers take over without it.
        self.running.await_status(
            lambda status: len(cluster.nodes(status, "SERVER")) == _SERVERS - 1, "its death")
        self._push_on()
        self._heal("server isolated")

    def test_a_server_whose_answers_get_lost(self):
        head, _ = self._head()
        self.relayed.fault("one-way-partition", head, other="client", seconds=3)
        # It still receives, applies and replicates; whatever is resent counts once.
        self._push_on()
        self._heal("answers to clients lost")

    def test_a_server_that_clients_cannot_reach(self):
        head, _ = self._head()
        self.relayed.fault("one-way-partition", "client", other=head, seconds=3)
        self._push_on()
        self._heal("requests of clients lost")

    def test_a_chain_is_cut(self):
        head, tail = self._head()
        self.relayed.fault("partition", head, other=tail)
        # All nodes are live, but two do not hear each other: one of them must leave.
        self._push_on()
        self._heal("chain cut")

    def test_a_chain_is_cut_one_way(self):
        head, tail = self._head()
        self.relayed.fault("one-way-partition", tail, other=head)
        self._push_on()
        self._heal("acknowledgments lost")

    def test_the_scheduler_is_isolated(self):
        self.relayed.fault("isolate", "scheduler", seconds=4)
        # Data do not pass through the scheduler.
        self._push_on(64)
        self._heal("scheduler isolated")

    def test_a_server_cannot_reach_the_scheduler(self):
        head, _ = self._head()
        self.relayed.fault("one-way-partition", head, other="scheduler")
        self.running.await_status(
            lambda status: len(cluster.nodes(status, "SERVER")) == _SERVERS - 1, "its death")
        self._push_on()
        self._heal("heartbeats lost")

    def test_a_bad_network(self):
        self.relayed.fault("loss", "*", chance=0.05)
        self.relayed.fault("jitter", "*", by="10ms")
        self.relayed.fault("duplicate", "*", chance=0.01)
        self.relayed.fault("corrupt", "*", chance=0.01)
        self._push_on()
        dead = [node["name"] for node in self.running.status()["view"]["nodes"]
                if node["state"] == "DEAD"]
        self.assertEqual([], dead)
        self._heal("bad network")


class LongCutTest(cluster.ProcessTest):
    def test_pushes_flow_soon_after_a_long_cut(self):
        relayed = network.Relayed(
            self, ["scheduler", *(f"server-{rank}" for rank in range(_SERVERS)), "client"])
        running = RelayedCluster(self, relayed)
        probe = outage.Probe(self, running, where=relayed.nodes["client"].command(),
                             options=["--deadline", f"{3 * _LONG_CUT_SECONDS}s"])
        heads = {}
        for (table, _), chain in chains.of(chains.await_whole(running)).items():
            heads.setdefault(chain[0][0], []).append(int(table.removeprefix("probe/")))
        head, tables = sorted(heads.items())[0]
        cut = time.time()
        # The scheduler hears both sides, so no other server takes over.
        relayed.fault("partition", head, other="client")
        program.await_true(lambda: time.time() - cut > _LONG_CUT_SECONDS, "the end of the cut",
                           2 * _LONG_CUT_SECONDS)
        relayed.heal()
        healed = time.time()
        seconds = [probe.outage(table, cut, 3 * _LONG_CUT_SECONDS) - (healed - cut)
                   for table in tables]
        _FIGURES.add("cut for a minute: healed until a push succeeds", seconds)
        self.assertGreater(min(seconds), 0)
        self.assertLessEqual(max(seconds), _FIRST_PUSH_SECONDS)


if __name__ == "__main__":
    _FIGURES.main()
