# SPDX-License-Identifier: Apache-2.0
"""One-worker groups that train a data set, one of them slowly: shared by the tests of it."""

import datetime
import json
import re

from tests.process import cluster, ledger, program

_EXAMPLES = program.built("tests/process/examples_worker")
_BATCH = 5


def _time_of(event):
    return datetime.datetime.fromisoformat(event["time"]).timestamp()


class UnevenWorkersTest(cluster.ProcessTest):
    def train(self, workers, batches, step_ms, slowness, scheduler=cluster.SCHEDULER):
        """One pass of so many batches; the last of the workers is slower by this factor.

        Every example must be trained exactly once. Returns the seconds of the pass, and the number
        of examples that the slow worker has returned.
        """
        running = cluster.Cluster(
            self, groups=workers, workers=1, scheduler_program=scheduler,
            scheduler_options=["--stragglers", "off", "--silence-min", "30s"])
        steps_ms = [step_ms] * (workers - 1) + [step_ms * slowness]
        programs = [
            self.start(f"worker-{rank}", [
                _EXAMPLES, "--examples", batches * _BATCH, "--batch", _BATCH, "--passes", 1,
                "--pause", f"{pause}ms"], running.environment(rank))
            for rank, pause in enumerate(steps_ms)]
        status = running.await_status(
            lambda status: len(cluster.nodes(status, "WORKER")) == workers, "all workers")
        slow = cluster.nodes(status, "WORKER")[-1]["id"]
        for worker in programs:
            self.assertEqual(0, worker.exit_code(240), worker)
            self.assertEqual(0, json.loads(
                worker.await_line("^result (.*)").group(1))["wrong"], worker)
        begin = min(_time_of(ledger.events(worker, "pass_begins")[0]) for worker in programs)
        # Of the others: a slow worker notices it at the end of its step.
        end = max(_time_of(ledger.events(worker, "pass_over")[0]) for worker in programs[:-1])
        returned = re.compile(rf"(\d+) examples of node {slow} are given to others")
        running.stop()
        found = map(returned.search, running.scheduler.lines("stderr"))
        return end - begin, sum(int(match.group(1)) for match in found if match)
