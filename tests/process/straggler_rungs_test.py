# SPDX-License-Identifier: Apache-2.0
"""The stronger measures against slow workers, with real processes: another group, none, and steps
that do not wait. What each brings is asserted in virtual time
(common/grouping/stragglers/straggler_ladder_test.cc).
"""

from tests import report
from tests.process import cluster, stragglers

_SLOWNESS = 30
_BATCH = 60


def group_of(status, rank):
    """The number of the ACTIVE group of this worker; None = it is in none."""
    ids = [node["id"] for node in cluster.nodes(status, "WORKER")
           if int(node.get("rank", 0)) == rank]
    found = [group["id"] for group in status["view"].get("groups", [])
             if group["state"] == "ACTIVE" and set(ids) & set(group["members"])]
    return found[0] if found else None


def seconds_since(status, text):
    """The age of the newest event of this text."""
    return (int(status["uptime_ms"]) - max(
        int(event["at_ms"]) for event in status["events"] if text in event["text"])) / 1000


def minimum_members(status):
    """Of the first group."""
    groups = status["view"].get("groups", [])
    return int(groups[0].get("minimum_members", 0)) if groups else 0


def has_event(status, text):
    return any(text in event["text"] for event in status["events"])


class StragglerRungsTest(stragglers.StragglersTest):
    """The tenth of an even share, the least that a member gets, takes worker-2 three times as long
    as the others need for all of theirs: shares do not help."""

    @staticmethod
    def arguments(slow):
        return ["--steps", 10**6, "--group-batch", _BATCH, "--milliseconds-per-sample", 1,
                "--slow", ",".join(f"{rank}:{_SLOWNESS}" for rank in slow)]

    def start_groups(self, groups, rung, slow, *options):
        return self.start_workers(groups, 3, self.arguments(slow), ["--stragglers", rung, *options])

    def assert_all_go_on(self, ranks):
        """Each of these workers takes steps from now on."""
        def steps(status):
            entries = {entry["node"]: int((entry.get("progress") or {}).get("step", 0))
                       for entry in status["nodes"]}
            return [entries[node["id"]] for node in cluster.nodes(status, "WORKER")
                    if int(node.get("rank", 0)) in ranks]

        before = steps(self.cluster.status())
        self.cluster.await_status(
            lambda status: all(now > then for now, then in zip(steps(status), before)),
            f"steps of workers {ranks}")

    def test_a_member_moves_to_the_group_that_is_as_slow(self):
        self.start_groups(2, "regroup", slow=[2, 3, 4, 5])
        status = self.cluster.await_status(
            lambda status: group_of(status, 2) is not None
            and group_of(status, 2) == group_of(status, 3), "worker-2 among the slow ones")
        self.assertEqual(group_of(status, 0), group_of(status, 1))
        self.assertNotEqual(group_of(status, 0), group_of(status, 2))
        self.assertTrue(has_event(status, "worker-2 leaves group 1 for group 2"),
                        status["events"])
        self.assert_all_go_on({0, 1, 2, 3, 4, 5})

    def test_a_member_that_fits_nowhere_is_evicted(self):
        workers = self.start_groups(1, "evict", [2], "--straggler-probation", "3s")
        self.cluster.await_status(
            lambda status: has_event(status, "worker-2 evicted from group 1") and group_of(status, 2) is None,
            "an eviction")
        workers[2].await_line("left out: worker-2 left group 1")
        self.assert_all_go_on({0, 1})
        # Its program has ended its training, so no group waits for it when its probation is over.
        self.cluster.await_status(
            lambda status: seconds_since(status, "worker-2 evicted") > 6, "more than a probation")
        self.assertIsNone(group_of(self.cluster.status(), 2))
        self.assert_all_go_on({0, 1})

        # A new process of this rank may try again.
        workers[2].kill()
        self.start("worker-2 again", [*stragglers.PROGRAM, *self.arguments(slow=[])],
                   self.cluster.environment(2))
        self.cluster.await_status(lambda status: group_of(status, 2) is not None, "its return")
        self.assert_all_go_on({0, 1, 2})

    def test_where_it_must_stay_steps_do_not_wait_for_it(self):
        self.start_groups(1, "partial", [2])
        status = self.cluster.await_status(
            lambda status: minimum_members(status) == 2, "steps without worker-2")
        self.assertEqual(group_of(status, 0), group_of(status, 2))

        def steps_aside(status):
            [node] = [node for node in cluster.nodes(status, "WORKER")
                      if int(node.get("rank", 0)) == 2]
            [entry] = [entry for entry in status["nodes"] if entry["node"] == node["id"]]
            return int((entry.get("progress") or {}).get("steps_aside", 0))

        self.cluster.await_status(lambda status: steps_aside(status) > 10, "steps without it")
        self.assert_all_go_on({0, 1, 2})

    def test_all_wait_for_it_when_nothing_is_done(self):
        """Without this the tests above would prove nothing."""
        workers = self.start_groups(1, "off", [2])
        self.assertIsNotNone(workers[0].await_line(r"progress .*\"step\":(\d\d+)", 120))
        status = self.cluster.status()
        self.assertEqual(group_of(status, 0), group_of(status, 2))
        self.assertEqual(0, minimum_members(status))


if __name__ == "__main__":
    report.main()
