# SPDX-License-Identifier: Apache-2.0
"""Processes that die and come back, and the effects that a client sees."""

import os
import signal

from tests import report
from tests.process import cluster


class RestartTest(cluster.ProcessTest):
    def test_scheduler_remembers(self):
        log = os.path.join(self.folder, "decisions")
        running = cluster.Cluster(self, servers=2, scheduler_options=["--log-file", log])
        self.assertEqual(1, running.count())
        before = running.status()
        running.scheduler.kill()
        self.assertIsNone(running.status())
        running.restart_scheduler()
        after = running.await_status(lambda status: len(cluster.nodes(status, "SERVER")) == 2,
                                     "the servers")
        self.assertEqual(before["view"]["tables"], after["view"]["tables"])
        self.assertGreaterEqual(int(after["view"]["epoch"]), int(before["view"]["epoch"]))
        self.assertEqual(2, running.count())
        running.stop()

    def test_server_begins_again(self):
        running = cluster.Cluster(self)
        self.assertEqual(1, running.count())
        self.assertEqual(2, running.count())
        running.servers[0].kill()
        running.await_status(lambda status: not cluster.nodes(status, "SERVER"), "its death")
        running.start_server(0)
        # Its memory is lost, and the events report that.
        self.assertEqual(1, running.count())
        texts = [event["text"] for event in running.status()["events"]]
        self.assertTrue([text for text in texts if "server-0" in text and "lost" in text], texts)
        running.stop()

    def test_server_is_restarted_before_its_death_is_known(self):
        running = cluster.Cluster(self)
        self.assertEqual(1, running.count())
        frozen = running.servers[0]
        frozen.signal(signal.SIGSTOP)
        running.start_server(0)
        # It gets the rank once the other server has been silent for long enough.
        self.assertEqual(1, running.count())
        self.assertTrue(running.servers[0].running(), running.servers[0])
        frozen.kill()
        running.stop()

    def _worker(self, running, **more):
        return self.start("worker-0", [cluster.RING_WORKER], {**running.environment(0), **more})

    def test_worker_is_restarted_at_once(self):
        # Silence would take longer than this worker waits.
        running = cluster.Cluster(self, scheduler_options=["--silence-min", "10m"])
        first = self._worker(running)
        first.await_line('"event":"ready"')
        first.signal(signal.SIGKILL)
        self._worker(running).await_line('"event":"ready"')

    def test_worker_is_restarted_after_it_died_unseen(self):
        log = os.path.join(self.folder, "decisions")
        running = cluster.Cluster(
            self, scheduler_options=["--log-file", log, "--silence-min", "10m"])
        first = self._worker(running)
        first.await_line('"event":"ready"')
        running.scheduler.kill()
        first.kill()
        running.restart_scheduler()
        # No stream of the first worker has reached this scheduler, so none breaks.
        self._worker(running).await_line('"event":"ready"')

    def test_worker_is_restarted_long_before_its_death_is_known(self):
        running = cluster.Cluster(self, scheduler_options=["--silence-min", "7s"])
        frozen = self._worker(running)
        frozen.await_line('"event":"ready"')
        frozen.signal(signal.SIGSTOP)
        self._worker(running).await_line('"event":"ready"')

    def test_a_rank_in_use_names_its_holder(self):
        running = cluster.Cluster(self)
        holder = self._worker(running)
        holder.await_line('"event":"ready"')
        second = self._worker(running, COVEY_JOIN_DEADLINE="6s")
        self.assertEqual(1, second.exit_code(), second)
        self.assertRegex(second.lines("stderr")[-1],
                         "not registered within 6s: rank 0 is held by worker-0 "
                         f"\\(node [0-9]+, pid {holder.pid} on host [^)]+\\): stop that process, "
                         "or give this one another rank")
        self.assertTrue(holder.running(), holder)

    def test_training_outlives_the_scheduler(self):
        log = os.path.join(self.folder, "decisions")
        running = cluster.Cluster(self, groups=2, scheduler_options=["--log-file", log])
        workers = [
            self.start(f"worker-{rank}",
                       [cluster.FASHION_MNIST, "--epochs", 1000, "--hidden", 16, "--batch", 16],
                       running.environment(rank))
            for rank in range(2)
        ]
        for worker in workers:
            worker.await_line("^progress ")
        running.scheduler.kill()
        for worker in workers:
            worker.await_line("^progress ", count=len(worker.lines("stdout")) + 2)
        running.restart_scheduler()
        running.await_status(lambda status: len(cluster.nodes(status, "WORKER")) == 2, "workers")
        for worker in workers:
            worker.signal(signal.SIGTERM)
        for worker in workers:
            self.assertEqual(0, worker.exit_code(), worker)
            self.assertIn("was asked to leave", worker.lines("stderr")[-1])
        running.stop()

    def test_lost_servers_are_named(self):
        running = cluster.Cluster(self, servers=2)
        environment = {**running.environment(), "COVEY_OPERATION_DEADLINE": "6s"}
        worker = self.start("worker", [cluster.FASHION_MNIST, "--epochs", 1000, "--hidden", 16],
                            environment)
        worker.await_line("^progress ")
        # One server has the copies of the other; no server has those of both.
        running.servers[1].kill()
        running.await_status(lambda status: len(cluster.nodes(status, "SERVER")) == 1, "its death")
        worker.await_line("^progress ", count=len(worker.lines("stdout")) + 2)
        running.servers[0].kill()
        self.assertEqual(1, worker.exit_code(), worker)
        self.assertRegex(worker.lines("stderr")[-1], "server-[01].*(dead|silent)")

    def test_client_gives_up(self):
        running = cluster.Cluster(self)
        running.scheduler.kill()
        counter = self.run_to_end("counter", [cluster.COUNTER, running.address, cluster.JOB])
        self.assertEqual(1, counter.code, counter)
        self.assertRegex(counter.lines("stderr")[-1], f"30s.*{running.address}.*check")


if __name__ == "__main__":
    report.main()
