# SPDX-License-Identifier: Apache-2.0
"""Parses the headers of other projects once: a third of the time to build Covey (--config=opt).

GCC can save what it has parsed ("precompiled header") and load it in another compilation whose flags are
the same. Here are such files, one for each set of flags that .bazelrc has. `-include` names an
empty header beside them: GCC passes over a precompiled form that does not fit, so that a file
compiled by other flags, or by another compiler, is compiled as without any of this.

Each run of the compiler writes a few other bytes, so two checkouts share a --disk_cache only if they
share the files: --override_repository=precompiled=FOLDER with a copy of one.

It is a repository, since the files must have a path that .bazelrc can name.
//tools/bazel:compiler makes them inputs of each compilation.
"""

# Flags that Bazel gives to each compilation in opt, as far as they must agree.
_FLAGS = [
    "-U_FORTIFY_SOURCE",
    "-D_FORTIFY_SOURCE=1",
    "-DNDEBUG",
    "-fno-omit-frame-pointer",
    "-fPIC",
    "-fstack-protector",
    "-ffunction-sections",
    "-fdata-sections",
    "-g0",
]

# From a name to what a few files are given beside the flags of all.
_VARIANTS = {
    "product": [],
    "commands": ["-O1"],
    "tests": ["-O1", "-DCOVEY_TEST_CODE"],
}

def _flags_of_bazelrc(text):
    """The compiler flags of all files in --config=opt, in their order."""
    found = []
    for line in text.splitlines():
        for prefix in ["build --copt=", "build --cxxopt=", "build:opt --copt="]:
            if line.startswith(prefix):
                found.append(line[len(prefix):])
    return found

def _precompiled_headers(ctx):
    source = ctx.path(Label("//tools/bazel:precompiled.h"))
    flags = _FLAGS + _flags_of_bazelrc(ctx.read(Label("//:.bazelrc")))
    ctx.file("system.h", "")
    ctx.execute(["mkdir", "-p", "system.h.gch"])
    for name, extra in _VARIANTS.items():
        ctx.report_progress("parsing system headers for " + name)
        # -w: the warnings of our files are not for these. A failure has no precompiled form as its
        # only result; whatever is missing is missing to the files of the build too, which say so.
        ctx.execute(
            ["g++"] + flags + extra +
            ["-w", "-x", "c++-header", str(source), "-o", "system.h.gch/" + name],
        )
    ctx.file("BUILD", """filegroup(
    name = "files",
    srcs = ["system.h"] + glob(["system.h.gch/*"]),
    visibility = ["//visibility:public"],
)
""")

precompiled_headers = repository_rule(implementation = _precompiled_headers)
