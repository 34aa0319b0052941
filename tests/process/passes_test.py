# SPDX-License-Identifier: Apache-2.0
"""Members meet at the end of each pass: workers that join late, die, and jobs that continue."""

import json
import os
import signal

from tests import report
from tests.process import cluster, program

_EXAMPLES = program.built("tests/process/examples_worker")
_PASSES = 12


def passes_of(worker):
    """What the worker has logged at the end of each pass, by the number of the pass."""
    ends = [json.loads(line[line.index("{"):]) for line in worker.lines("stderr")
            if '"event":"pass_over"' in line]
    return {int(end["pass"]): end for end in ends}


class PassesTest(cluster.ProcessTest):
    def start_worker(self, running, *options):
        return self.start("examples_worker", [
            _EXAMPLES, "--meet", "--passes", _PASSES, *options], running.environment())

    def test_a_late_worker_takes_part_in_the_present_pass(self):
        running = cluster.Cluster(self, servers=1, workers=2,
                                  scheduler_options=["--placement-wait", "1s"])
        workers = [self.start_worker(running) for _ in range(2)]
        workers[0].await_line('"event":"pass_over"', count=2)
        late = self.start_worker(running)
        first = int(late.await_line(r'"event":"pass_begins".*"pass":"?(\d+)').group(1))
        self.assertGreaterEqual(first, 1)
        for worker in [*workers, late]:
            worker.exit_code(120)
        # It may have opened the data set while the others went on to the next pass.
        first = min(passes_of(late))
        self.assertLess(first, _PASSES - 1, late)
        ends = [passes_of(worker) for worker in [*workers, late]]
        for seen, begin in zip(ends, (0, 0, first)):
            self.assertEqual(list(range(begin, _PASSES)), sorted(seen))
        for number in range(_PASSES):
            there = [seen[number] for seen in ends if number in seen]
            self.assertEqual(1, len({int(end["step"]) for end in there}), there)
            # Each example was trained once, and none of the next pass. The program's own account is
            # wrong for the pass in which the members change.
            if number not in (first - 1, first):
                self.assertEqual({0}, {int(end["wrong"]) for end in there}, there)
            self.assertEqual(960, sum(int(end["trained"]) for end in there), there)
        self.assertGreater(int(ends[2][first + 1]["trained"]), 0, ends)

    def test_a_worker_that_dies_is_not_waited_for(self):
        running = cluster.Cluster(self, servers=1, workers=2)
        workers = [self.start_worker(running) for _ in range(2)]
        workers[0].await_line('"event":"pass_over"', count=2)
        workers[1].signal(signal.SIGKILL)
        # It may count examples twice that the dead one has not reported, so its result is open.
        workers[0].exit_code(120)
        self.assertEqual(list(range(_PASSES)), sorted(passes_of(workers[0])), workers[0])

    def test_a_job_goes_on_in_the_pass_of_its_snapshot(self):
        store = os.path.join(self.folder, "store")

        def start(servers, groups, workers, *options):
            return self.start_run(groups, workers, [
                _EXAMPLES, "--meet", "--passes", _PASSES], [
                    "--store", store, "--resume", "if-any", "--servers", servers, *options])

        first = start(2, 1, 2, "--snapshot-every", "1s")
        first.await_line("pass_over", count=2)
        before = first.count(r"snapshot \d+ is complete")
        first.await_line(r"snapshot \d+ is complete", count=before + 1)
        first.kill()
        second = start(1, 1, 1)
        second.await_line(r"resumes snapshot=(\S+)")
        began = int(second.await_line(r"pass_begins.*pass\W+(\d+)").group(1))
        self.assertGreaterEqual(began, 1, second)
        self.assertEqual(0, second.exit_code(120), second)
        self.assertEqual(0, json.loads(second.lines("stdout")[-1])["wrong"])
        self.assertEqual(_PASSES - began, second.count("pass_over"), second)


if __name__ == "__main__":
    report.main()
