# SPDX-License-Identifier: Apache-2.0
"""Fuzz targets; see common/fuzz/fuzz_target.h."""

def fuzz_target(name, deps, mutations = None):
    """The test of NAME.cc, which ends in _fuzz; with --config=fuzz a program of libFuzzer.

    Args:
      name: of the target, and of its file and its folder below corpus/.
      deps: what it includes besides common/fuzz.
      mutations: the number that the test tries, where the usual one would take more than seconds.
    """
    if not name.endswith("_fuzz"):
        fail("fuzz_target %s: the name does not end in _fuzz" % name)
    native.cc_test(
        name = name,
        size = "small",
        srcs = [name + ".cc"],
        args = ["--corpus=%s/corpus/%s" % (native.package_name(), name)] +
               (["--mutations=%d" % mutations] if mutations else []),
        data = native.glob(["corpus/%s/*" % name]),
        linkopts = select({
            "//tools/bazel:fuzzing": ["-fsanitize=fuzzer"],
            "//conditions:default": [],
        }),
        tags = ["fuzz"],
        deps = deps + [
            "//common/fuzz:fuzz_input",
            "//common/fuzz:fuzz_target",
        ] + select({
            "//tools/bazel:fuzzing": ["//common/fuzz:libfuzzer"],
            "//conditions:default": ["//common/fuzz:replay"],
        }),
    )
