# SPDX-License-Identifier: Apache-2.0
"""Workers that pause, or are slow: which members they hold up, and which they do not.

The cost is asserted in virtual time (client/cli/simulate/cluster_model_test.cc), and with real
processes on a quiet machine by tests/soak/stragglers_test.py.
"""

import signal

from tests import report
from tests.process import cluster, stragglers

# Reports with newer steps of a group that goes on, while the other one reports none. All workers
# report equally often, so the other one is not merely late.
_REPORTS_MEANWHILE = 8


def steps_of_groups(status):
    """{group id: the newest step that a member has reported}."""
    steps = {entry["node"]: int((entry.get("progress") or {}).get("step", 0))
             for entry in status["nodes"]}
    return {group.get("id", 0): max(steps[member] for member in group["members"])
            for group in status["view"]["groups"]}


def shares(status):
    """Samples per step that each worker reported last, by rank."""
    reported = {entry["node"]: float((entry.get("progress") or {}).get("samples_per_step", 0))
                for entry in status["nodes"]}
    return [reported[node["id"]] for node in cluster.nodes(status, "WORKER")]


class AMemberThatStops(stragglers.StragglersTest):
    def goes_on(self, contract):
        """One group trains while a member of the other one is stopped; then both continue."""
        workers = self.start_workers(
            2, 2, ["--contract", contract, "--steps", 10**6, "--group-batch", 10,
                   "--milliseconds-per-sample", 2], ["--stragglers", "off"], silence_min="5m")
        status = self.cluster.await_status(
            lambda status: len(status["view"].get("groups", [])) == 2
            and min(steps_of_groups(status).values()) >= 3, "steps of both groups")
        [of_victim] = [group.get("id", 0) for group in status["view"]["groups"]
                       if cluster.nodes(status, "WORKER")[2]["id"] in group["members"]]
        [other] = set(steps_of_groups(status)) - {of_victim}

        workers[2].signal(signal.SIGSTOP)
        stood, steps_of_other = None, set()

        def goes_on_alone(status):
            nonlocal stood
            steps = steps_of_groups(status)
            if steps[of_victim] != stood:
                stood = steps[of_victim]
                steps_of_other.clear()
            steps_of_other.add(steps[other])
            return len(steps_of_other) > _REPORTS_MEANWHILE

        self.cluster.await_status(goes_on_alone, "steps of one group while the other one stands")

        workers[2].signal(signal.SIGCONT)
        self.cluster.await_status(lambda status: steps_of_groups(status)[of_victim] > stood,
                                  "steps of the group whose member was stopped")

    def test_does_not_hold_up_the_other_group_when_buffered(self):
        self.goes_on("buffered")

    def test_does_not_hold_up_the_other_group_when_applied_on_arrival(self):
        self.goes_on("async")


class ASlowMember(stragglers.StragglersTest):
    """One of four takes five times as long per sample."""

    _MEMBERS, _SLOWNESS, _BATCH = 4, 5, 128

    def start_slow(self, rung):
        return self.start_workers(
            1, self._MEMBERS,
            ["--steps", 10**6, "--slow", f"{self._MEMBERS - 1}:{self._SLOWNESS}", "--group-batch",
             self._BATCH, "--milliseconds-per-sample", 1],
            ["--stragglers", rung])

    def test_gets_fewer_samples(self):
        self.start_slow("shift")
        status = self.cluster.await_status(
            lambda status: len(shares(status)) == self._MEMBERS
            and 0 < shares(status)[-1] < self._BATCH / self._MEMBERS / 2,
            "fewer samples for the slow member")
        self.assertTrue(any("worker-3" in event["text"] for event in status["events"]),
                        status["events"])

    def test_keeps_its_share_when_nothing_is_done(self):
        """Without this the test above would prove nothing."""
        workers = self.start_slow("off")
        line = workers[0].await_line(r"progress .*\"step\":(\d\d+)", 120)
        self.assertIsNotNone(line)
        status = self.cluster.await_status(lambda status: min(shares(status)) > 0, "shares")
        self.assertEqual([self._BATCH / self._MEMBERS] * self._MEMBERS, shares(status))


if __name__ == "__main__":
    report.main()
