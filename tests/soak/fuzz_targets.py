# SPDX-License-Identifier: Apache-2.0
"""Runs fuzz targets that were built with libFuzzer, one after the other; tests/soak/fuzz calls it.

Inputs are kept below --folder: NAME/corpus has those that libFuzzer has found so far, by the code
that they reach, and NAME/crashes those that a target did not survive.
"""

import argparse
import dataclasses
import pathlib
import re
import subprocess
import sys
import time


# A single allocation and all memory of a target, in MiB; AddressSanitizer takes its share of the
# latter. And the seconds for one input.
_ALLOCATION_MAX = 256
_MEMORY_MAX = 2048
_SECONDS_PER_INPUT = 10
_INPUT_BYTES_MAX = 1 << 16
# Seconds between two lines about the same target.
_PROGRESS = 60


@dataclasses.dataclass
class Outcome:
    name: str
    executions: int = 0
    new_inputs: int = 0
    # Paths of inputs.
    crashes: list = dataclasses.field(default_factory=list)
    # The exit code; 0 = the time was over.
    code: int = 0

    def good(self):
        return self.code == 0 and not self.crashes

    def verdict(self):
        if self.crashes or self.code == 0:
            return str(len(self.crashes))
        return f"ended with code {self.code}"


def executions(output):
    """How often the target ran, by libFuzzer's statistics, or by its newest line of progress."""
    named = re.findall(r"stat::number_of_executed_units:\s*(\d+)", output)
    return int((named or re.findall(r"^#(\d+)\s", output, re.MULTILINE) or ["0"])[-1])


def table(outcomes):
    """Lines."""
    rows = [("target", "executions", "new inputs", "crashes")]
    rows += [(o.name, str(o.executions), str(o.new_inputs), o.verdict()) for o in outcomes]
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    return ["  ".join([row[0].ljust(widths[0]),
                       *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:]))])
            for row in rows]


class Runner:
    """Runs targets; `program` is a function from a label to the path of its program."""

    def __init__(self, seconds, seed, folder, program, kept):
        self._seconds = seconds
        self._seed = seed
        self._folder = folder
        self._program = program
        # A function from a label to the folder with the inputs that the tree keeps.
        self._kept = kept

    def run(self, label, say):
        name = label.rpartition(":")[2]
        folder = self._folder / name
        corpus, crashes, seeds = (folder / part for part in ("corpus", "crashes", "seeds"))
        for path in (corpus, crashes, seeds):
            path.mkdir(parents=True, exist_ok=True)
        for old in seeds.iterdir():
            old.unlink()
        program = self._program(label)
        subprocess.run([program, f"--write-seeds={seeds}"], check=True)
        before = {*corpus.iterdir()}, {*crashes.iterdir()}
        log = folder / "log"
        command = [
            program, f"-max_total_time={self._seconds}", f"-seed={self._seed}",
            f"-malloc_limit_mb={_ALLOCATION_MAX}", f"-rss_limit_mb={_MEMORY_MAX}",
            f"-timeout={_SECONDS_PER_INPUT}", f"-max_len={_INPUT_BYTES_MAX}",
            f"-artifact_prefix={crashes}/", "-print_final_stats=1", str(corpus), str(seeds)]
        if self._kept(label).is_dir():
            command.append(str(self._kept(label)))
        with open(log, "w", encoding="utf-8") as output:
            process = subprocess.Popen(command, stdout=output, stderr=output)
            begin = time.monotonic()
            while True:
                try:
                    code = process.wait(timeout=_PROGRESS)
                    break
                except subprocess.TimeoutExpired:
                    took = time.monotonic() - begin
                    say(f"{name}: {took:.0f} of {self._seconds} s, "
                        f"{executions(_text(log))} executions")
                except BaseException:
                    process.kill()
                    raise
        return Outcome(name, executions(_text(log)), len({*corpus.iterdir()} - before[0]),
                       sorted(map(str, {*crashes.iterdir()} - before[1])), code)

    def replay(self, label, crash):
        """The command line that shows a crash again."""
        return f"{self._program(label)} {crash}"


def _text(log):
    return log.read_text(encoding="utf-8", errors="replace")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--folder", type=pathlib.Path, required=True)
    parser.add_argument("--programs", type=pathlib.Path, required=True, help="bazel-bin")
    parser.add_argument("labels", nargs="+")
    asked = parser.parse_args()

    def package(label):
        return label.removeprefix("//").partition(":")[0]

    def name(label):
        return label.rpartition(":")[2]

    runner = Runner(asked.seconds, asked.seed, asked.folder.absolute(),
                    lambda label: str(asked.programs / package(label) / name(label)),
                    lambda label: pathlib.Path(package(label)) / "corpus" / name(label))
    outcomes = []
    for number, label in enumerate(asked.labels, 1):
        print(f"[{number}/{len(asked.labels)}] {label}", flush=True)
        outcomes.append(runner.run(label, lambda line: print(line, flush=True)))
    print("\n".join(table(outcomes)))
    for label, outcome in zip(asked.labels, outcomes):
        for crash in outcome.crashes:
            print(f"{outcome.name} did not survive this: {runner.replay(label, crash)}")
        if not outcome.good():
            print(f"{outcome.name}: its output is in {asked.folder.absolute() / outcome.name}/log")
    return 0 if all(outcome.good() for outcome in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
