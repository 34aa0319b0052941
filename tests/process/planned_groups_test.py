# SPDX-License-Identifier: Apache-2.0
"""Groups that the scheduler plans while a job runs, and what `covey plan` says of them."""

import json
import re
import subprocess

from tests import report
from tests.process import cluster, network, network_cluster

_WORKERS = 4
# Ranks 1 and 3 take three times as long.
_SLOW = "1:3,3:3"
_FAST_RANKS, _SLOW_RANKS = {0, 2}, {1, 3}


def ranks_by_group(status):
    """The ranks of the members of each ACTIVE group, in growing order of its id."""
    ranks = {node["id"]: int(node.get("rank", 0)) for node in status["view"]["nodes"]}
    return [{ranks[member] for member in group["members"]}
            for group in status["view"].get("groups", []) if group["state"] == "ACTIVE"]


class PlannedGroupsTest(cluster.ProcessTest):
    def start_job(self, *options, stragglers="off"):
        """Without the ladder members get equal parts, and wait for slow ones."""
        self.cluster = cluster.Cluster(self, groups="auto", workers=_WORKERS,
                                       scheduler_options=["--stragglers", stragglers])
        self.workers = [self.start_worker(rank, *options) for rank in range(_WORKERS)]

    def start_worker(self, rank, *options):
        return self.start(f"worker-{rank}", [
            cluster.SYNTHETIC, "--tensors", 4, "--tensor-kib", 16, "--group-batch", 20,
            "--milliseconds-per-sample", 4, *options], self.cluster.environment(rank))

    def covey(self, *words):
        run = subprocess.run([cluster.COVEY, *words, "--scheduler", self.cluster.address],
                             capture_output=True, text=True, timeout=60, check=True)
        return run.stdout

    def test_groups_of_equal_speed_come_out_of_one(self):
        self.start_job("--slow", _SLOW, "--steps", 10**6)
        self.cluster.await_status(lambda status: ranks_by_group(status) == [{0, 1, 2, 3}],
                                  "one group")
        planned = self.cluster.await_status(lambda status: len(ranks_by_group(status)) > 1,
                                            "several groups")
        for ranks in ranks_by_group(planned):
            self.assertTrue(ranks <= _FAST_RANKS or ranks <= _SLOW_RANKS, ranks)
        events = self.covey("events")
        self.assertRegex(events, r"groups? planned, [123] workers? moved: other groups make [0-9.]+ %")
        self.assertRegex(events, r"of the numbers from 1 to 4, \d promises the most progress")

        # All of them train on in the groups that they are in now.
        steps = self.steps_of_workers()
        self.cluster.await_status(
            lambda status: all(now > before + 10 for before, now in
                               zip(steps, self.steps_of_workers(status))), "steps of all workers")
        page = self.covey("plan")
        self.assertIn("chosen by the scheduler", page)
        self.assertIn("speeds: measured, of 4 of 4 workers", page)
        plan = json.loads(self.covey("plan", "-o", "json"))
        self.assertEqual(4, len(plan["candidates"]))
        self.assertLess(plan["gain"], 0.15)

    def steps_of_workers(self, status=None):
        status = status or self.cluster.status()
        return [int((entry.get("progress") or {}).get("step", 0)) for entry in status["nodes"]
                if entry["node"] in {node["id"] for node in cluster.nodes(status, "WORKER")}]

    def test_a_worker_that_comes_and_one_that_dies(self):
        self.start_job("--slow", _SLOW, "--steps", 10**6)
        self.cluster.await_status(lambda status: len(ranks_by_group(status)) > 1, "several groups")
        self.workers.append(self.start_worker(4, "--slow", _SLOW, "--steps", 10**6))
        self.cluster.await_status(
            lambda status: set().union(*ranks_by_group(status)) == {0, 1, 2, 3, 4}, "five members")
        self.workers[0].kill()
        self.cluster.await_status(
            lambda status: set().union(*ranks_by_group(status)) == {1, 2, 3, 4}, "four members")
        steps = self.steps_of_workers()
        self.cluster.await_status(
            lambda status: all(now > before + 10 for before, now in
                               zip(steps, self.steps_of_workers(status))), "steps of all workers")

    def test_the_result_is_that_of_a_whole_run(self):
        """Groups that wait for each other stay one, so the last step is the same for all."""
        self.start_job("--slow", _SLOW, "--steps", 150, "--contract", "bsp", "--learning-rate", 0.5)
        for worker in self.workers:
            self.assertEqual(0, worker.exit_code(), worker)
        [line] = [line for line in self.workers[0].lines("stdout") if line.startswith("result ")]
        self.assertLess(json.loads(line.removeprefix("result "))["distance"], 0.01)

    def test_without_the_planner_the_same_advice_is_there(self):
        self.cluster = cluster.Cluster(self, groups=1, workers=_WORKERS,
                                       scheduler_options=["--stragglers", "off"])
        self.workers = [self.start_worker(rank, "--slow", _SLOW, "--steps", 10**6)
                        for rank in range(_WORKERS)]
        self.cluster.await_status(
            lambda status: len(status.get("plan", {}).get("workers", [])) == _WORKERS
            and all(float(worker.get("samples_per_second", 0)) > 0
                    for worker in status["plan"]["workers"]), "speeds of all workers")
        page = self.covey("plan")
        self.assertIn("as configured", page)
        advised = re.search(r"Other groups would make ([0-9.]+) % more progress "
                            r"\(see --groups auto of the scheduler\)", page)
        self.assertIsNotNone(advised, page)
        self.assertGreater(float(advised.group(1)), 20)


class PlannedRacksTest(cluster.ProcessTest):
    """Two racks that are near each other, behind narrow uplinks; nobody says who is where."""

    _MBIT = 10**6
    _RACKS, _NODES = 2, 2
    _RACK_BITS, _UPLINK_BITS = 400 * _MBIT, 40 * _MBIT

    def test_groups_are_by_rack_and_speed(self):
        racks = network.Racks(self, self._RACKS, self._NODES, self._RACK_BITS, self._UPLINK_BITS)
        # Even ranks are in rack 0, and fast.
        nodes = [node for column in zip(*racks.racks) for node in column]
        run = network_cluster.NetworkCluster(
            self, racks.outside, nodes, "auto", scheduler_options=["--stragglers", "off"],
            labels=[f"site//host-{rank}" for rank in range(len(nodes))])
        run.start(cluster.SYNTHETIC, "--tensors", 4, "--tensor-kib", 16, "--group-batch", 20,
                  "--milliseconds-per-sample", 10, "--slow", _SLOW, "--steps", 10**6)
        observer = cluster.Observer(run.address, racks.outside.command())
        status = observer.await_status(lambda status: len(ranks_by_group(status)) == 2,
                                       "two groups")
        self.assertEqual([_FAST_RANKS, _SLOW_RANKS], ranks_by_group(status))
        # Racks are numbered in the order in which workers have come.
        labels = {int(node.get("rank", 0)): node["labels"].split("/")
                  for node in cluster.nodes(status, "WORKER")}
        self.assertEqual([f"host-{rank}" for rank in range(4)],
                         [labels[rank][2] for rank in range(4)])
        self.assertEqual(labels[0][1], labels[2][1])
        self.assertEqual(labels[1][1], labels[3][1])
        self.assertEqual({"measured-0", "measured-1"}, {labels[0][1], labels[1][1]})
        texts = [event["text"] for event in status["events"]]
        # By bandwidth, or by latencies, where a busy machine happens to let them show the same.
        [measured] = [text for text in texts if "racks measured" in text]
        self.assertTrue(measured.startswith("2 racks measured: "), measured)


if __name__ == "__main__":
    report.main()
