# SPDX-License-Identifier: Apache-2.0
"""What it costs a job that computes to be watched: by a trace of all of it, and by scrapes.

Periods with and without the watching alternate in one job, and medians of their ratios count.
"""

import json
import os
import re
import statistics
import threading
import time
import urllib.request

from tests import report
from tests.process import cluster, control_plane, program

_PAIRS, _SECONDS = 9, 5
_TRACE_COST_MAX = 0.03
# A node hears of a trace with its next heartbeat.
_LEAD_SECONDS = 2
# A percent is less than what two periods differ by, so each page is read ten times in each second in
# which an eager Prometheus would read it once.
_METRICS_COST_MAX, _SCRAPES_PER_SECOND = 0.01, 10
_COMMAND = [cluster.FASHION_MNIST, "--batch", 64, "--hidden", 128, "--epochs", 1000,
            "--learning-rate", 0.01, "--metrics", "localhost:0"]


def read_page(address):
    with urllib.request.urlopen(f"http://{address}/metrics",
                                timeout=program.PATIENCE_SECONDS) as page:
        return page.read().decode()


class ObservationCostTest(cluster.ProcessTest):

    def setUp(self):
        super().setUp()
        metrics = ["--metrics", "localhost:0"]
        self.job = cluster.Cluster(self, workers=2, scheduler_options=metrics,
                                   server_options=metrics)
        self.workers = [self.start(f"worker-{rank}", _COMMAND, self.job.environment(rank))
                        for rank in range(2)]
        self.processes = [*self.workers, self.job.scheduler, *self.job.servers]
        self.pages = [process.await_line(r'serves_metrics.*?address"?[:=]"?([^" ]+:\d+)').group(1)
                      for process in self.processes]
        program.await_true(lambda: self.steps() > 50, "a job that trains")

    def steps(self):
        return int(re.search(r"^covey_worker_steps_total (\d+)$", read_page(self.pages[0]),
                             re.MULTILINE).group(1))

    def cpu_seconds(self):
        """Of all processes of the job."""
        return sum(map(control_plane.processor_seconds, self.processes))

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
        return measured

    def measure_scraped(self):
        """While one thread, which computes on the same machine, reads all pages in turn."""
        ended, rounds = threading.Event(), 0

        def scrape():
            nonlocal rounds
            while not ended.wait(1 / _SCRAPES_PER_SECOND):
                for page in self.pages:
                    read_page(page)
                rounds += 1

        thread = threading.Thread(target=scrape)
        thread.start()
        try:
            measured = self.measure()
        finally:
            ended.set()
            thread.join()
        self.assertGreater(rounds, 0.7 * _SCRAPES_PER_SECOND * _SECONDS, "too few scrapes")
        return measured

    def compare(self, measure_watched):
        """Median of the steps per second, times as many as without."""
        speeds, costs = [], []
        for pair in range(_PAIRS):
            # The order alternates, so that a machine that slows down or warms up favors neither.
            plain = None if pair % 2 else self.measure()
            watched = measure_watched()
            plain = plain or self.measure()
            speeds.append(watched[0] / plain[0])
            costs.append(watched[1] / plain[1])
            print(f"{plain[0]:.1f} steps/s, watched {speeds[-1]:.3f} times as many; processors "
                  f"per step {costs[-1]:.3f} times", flush=True)
        speed = statistics.median(speeds)
        print(f"median: {speed:.3f} times as many steps, {statistics.median(costs):.3f} times the "
              f"processors per step", flush=True)
        return speed

    def test_a_trace_costs_few_steps(self):
        self.assertGreater(self.compare(self.measure_traced), 1 - _TRACE_COST_MAX)

    def test_scrapes_cost_few_steps(self):
        self.assertGreater(self.compare(self.measure_scraped),
                           1 - _METRICS_COST_MAX * _SCRAPES_PER_SECOND)


if __name__ == "__main__":
    report.main()
