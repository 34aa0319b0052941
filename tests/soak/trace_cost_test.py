# SPDX-License-Identifier: Apache-2.0
"""Steps of a job that computes, while `covey trace` records all of it and while it does not."""

import json
import os
import re
import statistics
import time
import urllib.request

from tests import report
from tests.process import cluster, program

_PAIRS, _SECONDS, _COST_MAX = 9, 5, 0.03
# A node hears of a trace with its next heartbeat.
_LEAD_SECONDS = 2
_COMMAND = [cluster.FASHION_MNIST, "--batch", 64, "--hidden", 128, "--epochs", 1000,
            "--learning-rate", 0.01, "--metrics", "localhost:0"]


class TraceCostTest(cluster.ProcessTest):

    def setUp(self):
        super().setUp()
        self.job = cluster.Cluster(self, workers=2)
        self.workers = [self.start(f"worker-{rank}", _COMMAND, self.job.environment(rank))
                        for rank in range(2)]
        self.address = self.workers[0].await_line(
            r'serves_metrics.*?address"?[:=]"?([^" ]+:\d+)').group(1)
        program.await_true(lambda: self.steps() > 50, "a job that trains")

    def steps(self):
        with urllib.request.urlopen(f"http://{self.address}/metrics",
                                    timeout=program.PATIENCE_SECONDS) as page:
            return int(re.search(r"^covey_worker_steps_total (\d+)$", page.read().decode(),
                                 re.MULTILINE).group(1))

    def cpu_seconds(self):
        """Of all processes of the job."""
        ticks = 0
        for process in (self.job.scheduler, *self.job.servers, *self.workers):
            with open(f"/proc/{process.pid}/stat", encoding="utf-8") as file:
                ticks += sum(int(field) for field in file.read().rsplit(")", 1)[1].split()[11:13])
        return ticks / os.sysconf("SC_CLK_TCK")

    def measure(self):
        """(steps per second, seconds of processors per step)."""
        steps, cpu, begin = self.steps(), self.cpu_seconds(), time.monotonic()
        time.sleep(_SECONDS)
        taken, seconds = self.steps() - steps, time.monotonic() - begin
        self.assertGreater(taken, 100, "too few steps to tell a percent")
        return taken / seconds, (self.cpu_seconds() - cpu) / taken

    def measure_traced(self):
        path = os.path.join(self.folder, "trace.json")
        run = self.start("covey trace", [
            cluster.COVEY, "trace", "--scheduler", self.job.address, "--duration",
            f"{_LEAD_SECONDS + _SECONDS + 1}s", path])
        time.sleep(_LEAD_SECONDS)
        measured = self.measure()
        self.assertEqual(0, run.exit_code(), run)
        with open(path, encoding="utf-8") as file:
            spans = json.load(file)["traceEvents"]
        recorded = sum(each["name"] == "step" for each in spans)
        # Those of two workers.
        self.assertGreater(recorded, 1.5 * measured[0] * _SECONDS, "not all was recorded")
        return measured, len(spans)

    def test_a_trace_costs_few_steps(self):
        speeds, costs, events = [], [], 0
        for pair in range(_PAIRS):
            # The order alternates, so that a machine that slows down or warms up favors neither.
            plain = None if pair % 2 else self.measure()
            traced, events = self.measure_traced()
            plain = plain or self.measure()
            speeds.append(traced[0] / plain[0])
            costs.append(traced[1] / plain[1])
            print(f"{plain[0]:.1f} steps/s, traced {speeds[-1]:.3f} times as many; processors "
                  f"per step {costs[-1]:.3f} times; {events} events", flush=True)
        speed = statistics.median(speeds)
        print(f"median: {speed:.3f} times as many steps, {statistics.median(costs):.3f} times the "
              f"processors per step", flush=True)
        self.assertGreater(speed, 1 - _COST_MAX, speeds)


if __name__ == "__main__":
    report.main()
