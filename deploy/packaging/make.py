# SPDX-License-Identifier: Apache-2.0
"""Makes all packages of what Bazel has built; deploy/packages builds it and runs this.

Prints the path of each file that it makes. The bytes depend on the inputs and the time alone.
"""

import argparse
import pathlib

from deploy.packaging import build, debian, wheel


def make(inputs, output):
    """Writes all packages into the folder `output`, which is made; returns their paths."""
    pathlib.Path(output).mkdir(parents=True, exist_ok=True)
    return [*debian.make(inputs, output), wheel.make(inputs, output)]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sources", required=True, help="the source tree")
    parser.add_argument("--built", required=True, help="where Bazel puts what it builds: bazel-bin")
    parser.add_argument("--epoch", required=True, type=int, help="seconds since 1970 of all files")
    parser.add_argument("--output", required=True, help="folder for the packages")
    given = parser.parse_args()
    inputs = build.Build(pathlib.Path(given.sources).resolve(), pathlib.Path(given.built).resolve(),
                         given.epoch)
    for path in make(inputs, given.output):
        print(path)


if __name__ == "__main__":
    main()
