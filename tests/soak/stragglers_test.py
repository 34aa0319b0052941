# SPDX-License-Identifier: Apache-2.0
"""Workers that pause, or are slow: their cost for the others, on a quiet machine."""

import json
import signal
import threading

from tests import report
from tests.process import stragglers

_STOPPED_SECONDS, _RUNNING_SECONDS = 2, 2
# A group keeps at least this share of its rate.
_SHARE_MIN = 0.95


class Hiccups:
    """Stops a program for 2 s in every 4, for as long as a `with` block lasts."""

    def __init__(self, victim):
        self._victim = victim
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self):
        self._victim.await_line("progress")
        while self._victim.running() and not self._over.wait(_RUNNING_SECONDS):
            self._victim.signal(signal.SIGSTOP)
            self._over.wait(_STOPPED_SECONDS)
            self._victim.signal(signal.SIGCONT)

    def __enter__(self):
        self._thread.start()

    def __exit__(self, *unused):
        self._over.set()
        self._thread.join()


class AMemberThatStops(stragglers.StragglersTest):
    """In one of two groups. The other group's rate shows which groups wait."""

    def rate_of_the_other(self, contract, stop):
        """Steps per second of group 1, with and without pauses of a member of group 2."""
        workers = self.start_workers(
            2, 2, ["--contract", contract, "--steps", 150, "--group-batch", 60,
                   "--milliseconds-per-sample", 2], ["--stragglers", "off"])
        if stop:
            # The first member of a group reports progress, but the group waits for either member.
            with Hiccups(workers[2]):
                result = self.result(workers)
        else:
            result = self.result(workers)
        return result["by_group"][0]["steps_per_second"], result["by_group"][1]["steps_per_second"]

    def share_that_is_left(self, contract):
        undisturbed, _ = self.rate_of_the_other(contract, stop=False)
        other, disturbed = self.rate_of_the_other(contract, stop=True)
        print(f"{contract}: {undisturbed:.2f} steps/s undisturbed; with a member of the other group "
              f"stopped half of the time: {other:.2f}, and {disturbed:.2f} in that group", flush=True)
        self.assertLess(disturbed, 0.75 * undisturbed)
        return other / undisturbed

    def test_costs_the_other_group_nothing_when_buffered(self):
        self.assertGreaterEqual(self.share_that_is_left("buffered"), _SHARE_MIN)

    def test_costs_the_other_group_nothing_when_applied_on_arrival(self):
        self.assertGreaterEqual(self.share_that_is_left("async"), _SHARE_MIN)

    def test_costs_everybody_under_bsp(self):
        """Without this the test above would prove nothing."""
        self.assertLess(self.share_that_is_left("bsp"), 0.75)


class ASlowMember(stragglers.StragglersTest):
    """One of four takes five times as long per sample; with even shares all wait for it."""

    _MEMBERS, _SLOWNESS, _BATCH, _MILLISECONDS = 4, 5, 128, 1

    def share_of_the_summed_speed(self, rung):
        """The share of the group's rate in the last seconds, after all mitigation."""
        workers = self.start_workers(
            1, self._MEMBERS,
            ["--steps", 10**6, "--slow", f"{self._MEMBERS - 1}:{self._SLOWNESS}", "--group-batch",
             self._BATCH, "--milliseconds-per-sample", self._MILLISECONDS],
            ["--stragglers", rung])
        line = workers[0].await_line(r"progress (.*\"seconds\":(1[89]|[2-9]\d)\..*)", 120)
        last = json.loads(line.group(1))
        first = json.loads(workers[0].await_line(r"progress (.*\"seconds\":(1[34])\..*)").group(1))
        rate = (last["step"] - first["step"]) / (last["seconds"] - first["seconds"]) * self._BATCH
        summed = (self._MEMBERS - 1 + 1 / self._SLOWNESS) * 1000 / self._MILLISECONDS
        events = [event["text"] for event in self.cluster.status()["events"]]
        print(f"--stragglers {rung}: {rate / summed:.3f} of the summed speed", *events[-3:],
              sep="\n  ", flush=True)
        return rate / summed

    def test_gets_fewer_samples(self):
        self.assertGreaterEqual(self.share_of_the_summed_speed("shift"), 0.75)

    def test_holds_all_up_when_nothing_is_done(self):
        """Without this the test above would prove nothing."""
        self.assertLess(self.share_of_the_summed_speed("off"), 0.5)


if __name__ == "__main__":
    report.main()
