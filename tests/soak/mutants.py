# SPDX-License-Identifier: Apache-2.0
"""tests/soak/mutants: whether the tests notice small changes of the code.

Copies the tree, makes one change after the other there (tests/soak/mutations.py), and runs the tests
that depend on the changed file, those of its own package first. A change that no test notices
survives: it stands in the end as FILE:LINE with what was changed, and shows what no test asserts, or
code that changes nothing. Each result is kept, so that the same command goes on where it was ended.

Exits 0 when no change has survived, and with 1 otherwise.
"""

import argparse
import dataclasses
import hashlib
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import time

from tests.soak import mutations

# What became of a change.
KILLED, SURVIVED, NO_CODE, LATE = "killed", "survived", "does not compile", "no time"
# Bazel's exit codes.
_BUILD_FAILED, _TESTS_FAILED = 1, 3


@dataclasses.dataclass(frozen=True)
class Mutant:
    path: str
    mutation: mutations.Mutation

    def key(self, text):
        """Names the change of this text, from one run to the next."""
        change = self.mutation
        return f"{self.path}:{change.begin}:{change.end}:{change.after}:{hash_of(text)}"


def hash_of(text):
    # hash() differs from one process to the next.
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def choose(texts, count, seed):
    """`count` changes of the files (path -> text), or all; the same ones for the same seed."""
    every = [Mutant(path, mutation) for path in sorted(texts)
             for mutation in mutations.mutations(texts[path])]
    if count >= len(every):
        return every
    chosen = random.Random(seed).sample(range(len(every)), count)
    return [every[i] for i in sorted(chosen)]


def nearest_first(tests, path):
    """Two lists of labels: the tests of the package of `path`, and the others, near ones first."""
    package = os.path.dirname(path)

    def distance(label):
        other = label.removeprefix("//").partition(":")[0]
        shared = os.path.commonpath([package, other]) if package and other else ""
        return len([part for part in shared.split("/") if part]) * -1, label

    own = sorted(label for label in tests if label.startswith(f"//{package}:"))
    return own, sorted(set(tests) - set(own), key=distance)


class Bazel:
    """Builds and tests in the copy."""

    def __init__(self, tree, options):
        self._tree = tree
        self._options = options

    def tests_of(self, path):
        """Labels of the tests that depend on a file, without those that take long."""
        package, name = os.path.split(path)
        query = (f'let all = tests(rdeps(//..., //{package}:{name})) in '
                 f'$all except attr(tags, "\\b(soak|slow|exclusive|manual|local)\\b", $all)')
        done = subprocess.run(["bazel", "query", "--noshow_progress", query], cwd=self._tree,
                              check=True, capture_output=True, text=True)
        return done.stdout.split()

    def test(self, labels, seconds):
        """Whether the tests pass: SURVIVED, KILLED, NO_CODE, or LATE after so many seconds."""
        command = ["bazel", "test", "--config=opt", "--noshow_progress", "--test_output=summary",
                   "--test_timeout=60,120,240,240", *self._options, *labels]
        process = subprocess.Popen(command, cwd=self._tree, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        try:
            code = process.wait(timeout=seconds)
        except BaseException as error:
            process.send_signal(signal.SIGINT)
            process.wait()
            if isinstance(error, subprocess.TimeoutExpired):
                return LATE
            raise
        if code not in (0, _BUILD_FAILED, _TESTS_FAILED):
            raise RuntimeError(f"{' '.join(command)} in {self._tree} ended with code {code}; run it")
        return {0: SURVIVED, _BUILD_FAILED: NO_CODE, _TESTS_FAILED: KILLED}[code]


class Hunt:
    """Tries mutants one after the other. `builder`: as Bazel, of the copy in `tree`."""

    def __init__(self, tree, builder, results, limit, tests_max, say):
        self._tree = pathlib.Path(tree)
        self._builder = builder
        self._results = pathlib.Path(results)
        self._limit = limit
        self._tests_max = tests_max
        self._say = say

    def run(self, texts, mutants):
        """(mutant, what became of it) of each."""
        known = self._known()
        tests = {path: self._tests(path) for path in sorted({mutant.path for mutant in mutants})}
        outcomes = []
        for number, mutant in enumerate(mutants, 1):
            text = texts[mutant.path]
            key = mutant.key(text)
            if key not in known:
                known[key] = self._try(mutant, text, tests[mutant.path])
                with open(self._results, "a", encoding="utf-8") as file:
                    file.write(json.dumps({"mutant": key, "outcome": known[key]}) + "\n")
            self._say(f"[{number}/{len(mutants)}] {place(mutant, text)}: {known[key]}")
            outcomes.append((mutant, known[key]))
        return outcomes

    def _known(self):
        if not self._results.exists():
            return {}
        lines = map(json.loads, self._results.read_text(encoding="utf-8").splitlines())
        return {line["mutant"]: line["outcome"] for line in lines}

    def _tests(self, path):
        own, others = nearest_first(self._builder.tests_of(path), path)
        groups = [group for group in (own, others[:max(0, self._tests_max - len(own))]) if group]
        if not groups:
            raise SystemExit(f"tests/soak/mutants: no test depends on {path}")
        for group in groups:
            if self._builder.test(group, None) != SURVIVED:
                raise SystemExit(f"tests/soak/mutants: the tests of {path} fail without a change, "
                                 f"so they tell nothing; run bazel test {' '.join(group)}")
        return groups

    def _try(self, mutant, text, groups):
        target = self._tree / mutant.path
        end = time.monotonic() + self._limit
        try:
            target.write_text(mutant.mutation.apply(text), encoding="utf-8")
            for group in groups:
                outcome = self._builder.test(group, max(1, end - time.monotonic()))
                if outcome != SURVIVED:
                    return outcome
            return SURVIVED
        finally:
            target.write_text(text, encoding="utf-8")


def place(mutant, text):
    return f"{mutant.path}:{mutant.mutation.line(text)}: {mutant.mutation.show(text)}"


def summary(texts, outcomes):
    """Lines: the survivors, those for which there was no time, and how many there are of each."""
    lines = []
    for told in (SURVIVED, LATE):
        lines += [f"{told.upper()} {place(mutant, texts[mutant.path])}"
                  for mutant, outcome in outcomes if outcome == told]
    counts = {told: sum(outcome == told for _, outcome in outcomes)
              for told in (KILLED, SURVIVED, NO_CODE, LATE)}
    return [*lines, ", ".join(f"{count} {told}" for told, count in counts.items())]


def _copy(root, tree):
    """Makes `tree` the files of the working tree in `root` that git does not ignore."""
    names = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                           cwd=root, check=True, capture_output=True, text=True).stdout.split("\0")
    wanted = {name for name in names if name and os.path.lexists(os.path.join(root, name))}
    for folder, subfolders, files in os.walk(tree):
        subfolders[:] = [name for name in subfolders
                         if not os.path.islink(os.path.join(folder, name))]
        for name in files:
            path = os.path.join(folder, name)
            if os.path.relpath(path, tree) not in wanted:
                os.remove(path)
    for name in wanted:
        source, target = os.path.join(root, name), os.path.join(tree, name)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        # A file that is the same stays as it is, so that nothing is built again.
        if not os.path.lexists(target) or os.path.islink(source) or _differ(source, target):
            shutil.copy2(source, target, follow_symlinks=False)


def _differ(source, target):
    with open(source, "rb") as a, open(target, "rb") as b:
        return a.read() != b.read()


def main():
    parser = argparse.ArgumentParser(
        prog="tests/soak/mutants", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", metavar="FILE", help="C++ files of the tree, by their "
                        "paths from its root")
    parser.add_argument("--max", type=int, default=50, help="number of changes; default: 50")
    parser.add_argument("--seed", type=int, default=1, help="which changes of all; default: 1")
    parser.add_argument("--limit", type=int, default=600,
                        help="seconds for a change, to build and to test; default: 600")
    parser.add_argument("--tests", type=int, default=20,
                        help="test targets for a change, if its package has not more; default: 20")
    parser.add_argument("--folder", type=pathlib.Path,
                        default=pathlib.Path.home() / ".cache/covey-mutants",
                        help="of the copy and the results; default: ~/.cache/covey-mutants")
    parser.add_argument("--list", action="store_true", help="only print the changes")
    asked, options = parser.parse_known_args()
    strange = [option for option in options if not option.startswith("--")]
    if strange:
        parser.error(f"what is {strange[0]}? options of bazel are written --NAME=VALUE")

    root = pathlib.Path(__file__).resolve().parents[2]
    texts = {}
    for name in asked.files:
        if not (root / name).is_file() or not name.endswith((".cc", ".h")):
            parser.error(f"{name} is no C++ file of the tree; write its path from the root")
        texts[name] = (root / name).read_text(encoding="utf-8")
    mutants = choose(texts, asked.max, asked.seed)
    if asked.list:
        print("\n".join(place(mutant, texts[mutant.path]) for mutant in mutants))
        return 0

    tree = asked.folder.absolute() / "tree"
    tree.mkdir(parents=True, exist_ok=True)
    _copy(root, tree)
    hunt = Hunt(tree, Bazel(tree, options), asked.folder / "results", asked.limit, asked.tests,
                lambda line: print(line, flush=True))
    outcomes = hunt.run(texts, mutants)
    print("\n".join(summary(texts, outcomes)))
    return 1 if any(outcome == SURVIVED for _, outcome in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
