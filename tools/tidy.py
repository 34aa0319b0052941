# SPDX-License-Identifier: Apache-2.0
"""Runs clang-tidy with the list of .clang-tidy; warnings are errors.

  tools/dev tidy             everything: an hour
  tools/dev tidy --changed   what differs from the main branch, the working tree included
  tools/dev tidy FILE...

Generated headers must have been built (tools/dev does that).
"""

import argparse
import concurrent.futures
import os
import pathlib
import shutil
import subprocess
import sys

CLANG_TIDY = "clang-tidy-14"
# The branches with which a change is compared: the first one that exists.
_BASES = ("origin/main", "main")


def _git(root, *arguments):
    """Its output, or None when it fails: no git, no repository, no such branch."""
    try:
        run = subprocess.run(["git", "-C", root, *arguments], capture_output=True, text=True,
                             check=False)
    except OSError:
        return None
    return run.stdout if run.returncode == 0 else None


def missing():
    """Why clang-tidy cannot run here; empty when it can."""
    if shutil.which(CLANG_TIDY) is None:
        return f"{CLANG_TIDY} is not installed; install it with: apt-get install {CLANG_TIDY}"
    return ""


def changed_sources(root):
    """Source files that differ from the main branch, and those of changed headers.

    None when there is nothing to compare with.
    """
    bases = (_git(root, "merge-base", "HEAD", base) for base in _BASES)
    base = next((base.strip() for base in bases if base is not None), None)
    if base is None:
        return None
    changed = _git(root, "diff", "--name-only", base, "--", "*.cc", "*.h").split()
    changed += _git(root, "ls-files", "--others", "--exclude-standard", "*.cc", "*.h").split()
    sources = {str(pathlib.PurePath(path).with_suffix(".cc")) for path in changed}
    return sorted(path for path in sources if os.path.exists(os.path.join(root, path)))


def complaints(root, sources, generated):
    """What clang-tidy says about each of `sources` that it does not like.

    generated: the folder below which generated headers stand under their paths.
    """
    def check(path):
        run = subprocess.run(
            [CLANG_TIDY, "--quiet", path, "--", "-std=c++20", "-I.", f"-I{generated}"],
            cwd=root, capture_output=True, text=True, check=False)
        return run.stdout if run.returncode != 0 else ""

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return [told for told in pool.map(check, sources) if told]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--changed", action="store_true")
    parser.add_argument("sources", nargs="*", metavar="FILE")
    arguments = parser.parse_args()
    if why := missing():
        sys.exit(f"tools/tidy.py: {why}")
    sources = arguments.sources
    if arguments.changed:
        sources = changed_sources(".")
        if sources is None:
            sys.exit("tools/tidy.py: no main branch to compare with; name the files")
    elif not sources:
        sources = _git(".", "ls-files", "*.cc").split()
    found = complaints(".", sources, "bazel-bin")
    print("".join(found), end="")
    print(f"{len(sources)} files, {len(found)} with complaints", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
