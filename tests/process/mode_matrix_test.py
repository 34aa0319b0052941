# SPDX-License-Identifier: Apache-2.0
"""Every kind of contract meets every kind of fault: nothing hangs, and no step is lost or doubled.

Two groups of two workers count their steps in a table (contract_worker.cc) under one contract. On
loopback a worker is stopped and goes on, another one is killed, and a server is killed and comes
back; between namespaces the uplink of a group's rack is cut and mended. After each fault both
groups have to go on. At the end the values show how many steps of each group they contain.
"""

import os
import signal
import time

from tests import report
from tests.process import chains, cluster, ledger, network, network_cluster, program

_WORKER = program.built("tests/process/contract_worker")
_GROUPS, _MEMBERS = 2, 2
# Longer than workers are stopped, or cut off.
_SILENCE_MIN = "20s"
_FAULT_SECONDS = 1
# Steps that show that a group goes on.
_STEPS = 5
# A multiple of the steps of a round.
_ROUND = 4
# Steps from the last fault to the end.
_STEPS_LEFT = 40
_MBIT = 10**6


class ModeMatrixTest(cluster.ProcessTest):
    def setUp(self):
        super().setUp()
        self.last_step_file = os.path.join(self.folder, "last-step")
        self.deaths = [0, 0]

    def command(self, contract, replicas):
        return [_WORKER, "--contract", contract, "--replicas", replicas, "--pause", "5ms",
                "--last-step-file", self.last_step_file]

    def steps(self):
        """The newest step of each group."""
        newest = [0] * _GROUPS
        for worker in self.workers:
            for event in ledger.events(worker, "step")[-1:]:
                group = int(event["group"])
                newest[group] = max(newest[group], int(event["number"]))
        return newest

    def go_on(self, what):
        """Waits until both groups have made steps, and no worker has failed."""
        before = self.steps()

        def have_gone_on():
            for worker in self.workers:
                self.assertTrue(worker.running(), f"{what}: {worker}")
            return all(now >= then + _STEPS for now, then in zip(self.steps(), before))

        program.await_true(have_gone_on, f"steps of both groups {what}: {self.workers}")

    def finish(self, contract):
        """Ends the run, and checks what the values contain."""
        last = (max(self.steps()) + _STEPS_LEFT) // _ROUND * _ROUND
        with open(self.last_step_file + ".new", "w", encoding="ascii") as file:
            file.write(str(last))
        os.rename(self.last_step_file + ".new", self.last_step_file)
        for worker in self.workers:
            worker.await_line('"event":"trained"')
        self.assertEqual([last] * _GROUPS, self.steps())
        for worker in self.workers:
            worker.signal(signal.SIGTERM)
        for worker in self.workers:
            self.assertEqual(0, worker.exit_code(), worker)
            counted = {int(event["group"]): (float(event["least"]), float(event["most"]))
                       for event in ledger.events(worker, "counted")}
            print(f"{contract}: {last} steps; {counted}, deaths {self.deaths}", flush=True)
            for group in range(_GROUPS):
                for value in counted[group]:
                    # A lost or doubled push would be a whole step.
                    allowed = 0.5 if sum(self.deaths) > 0 else 0.01
                    self.assertLess(abs(value - last), allowed, counted)
            for end in range(2):
                total = sum(counted[group][end] for group in range(_GROUPS))
                self.assertLess(abs(total - _GROUPS * last), 0.5, counted)


class ProcessFaultsTest(ModeMatrixTest):
    """Processes that stop, and that die."""

    def meet_all(self, contract):
        running = cluster.Cluster(
            self, servers=2, groups=_GROUPS, workers=_MEMBERS, loops=2,
            scheduler_options=["--silence-min", _SILENCE_MIN])
        self.workers = [self.start(f"worker-{rank}", self.command(contract, replicas=2),
                                   running.environment(rank))
                        for rank in range(_GROUPS * _MEMBERS)]
        self.go_on("at the beginning")

        self.workers[1].signal(signal.SIGSTOP)
        until = time.monotonic() + _FAULT_SECONDS
        program.await_true(lambda: time.monotonic() > until, "time")
        self.workers[1].signal(signal.SIGCONT)
        self.go_on("after a stop")

        self.workers.pop().kill()
        self.deaths[1] += 1
        self.go_on("after the death of a worker")

        running.servers[0].kill()
        running.start_server(0)
        self.go_on("after the death of a server")
        chains.await_whole(running)
        self.finish(contract)

    def test_bsp(self):
        self.meet_all("bsp")

    def test_ssp(self):
        self.meet_all("ssp:1")

    def test_async(self):
        self.meet_all("async")

    def test_buffered(self):
        self.meet_all("buffered")

    def test_local(self):
        self.meet_all(f"local:{_ROUND}")


class UplinkTest(ModeMatrixTest):
    """A rack that is cut off from the servers, and from nothing else."""

    def cut_and_mend(self, contract, others_wait):
        racks = network.Racks(self, _GROUPS, _MEMBERS, 400 * _MBIT, 100 * _MBIT)
        run = network_cluster.NetworkCluster(
            self, racks.outside, racks.nodes, _GROUPS,
            labels=network_cluster.rack_labels(racks.racks))
        run.start(*self.command(contract, replicas=1))
        self.workers = run.workers
        self.go_on("at the beginning")
        racks.cut(1)
        before = self.steps()
        until = time.monotonic() + _FAULT_SECONDS
        program.await_true(lambda: time.monotonic() > until, "time")

        def made():
            return sorted(now - then for now, then in zip(self.steps(), before))

        if not others_wait:
            program.await_true(lambda: made()[1] >= _STEPS, "steps of the other group")
        self.assertLess(made()[0], _STEPS, "it was not cut off")
        racks.mend(1)
        self.go_on("after the cut")
        self.finish(contract)
        racks.close()

    def test_bsp(self):
        self.cut_and_mend("bsp", others_wait=True)

    def test_ssp(self):
        self.cut_and_mend("ssp:1", others_wait=True)

    def test_async(self):
        self.cut_and_mend("async", others_wait=False)

    def test_buffered(self):
        self.cut_and_mend("buffered", others_wait=False)

    def test_local(self):
        self.cut_and_mend(f"local:{_ROUND}", others_wait=True)


if __name__ == "__main__":
    report.main()
