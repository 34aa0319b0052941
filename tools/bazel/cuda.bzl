# SPDX-License-Identifier: Apache-2.0
"""Compiles GPU kernels with nvcc, under --config=cuda."""

_CUDA = "/usr/local/cuda"

# Sums on the GPU have the same bits as on the CPU: no fused multiply-add.
_FLAGS = " ".join([
    "-std=c++20",
    "-O3",
    "-fmad=false",
    "--extended-lambda",
    "-gencode=arch=compute_80,code=sm_80",
    "-gencode=arch=compute_90,code=[sm_90,compute_90]",
    "-Werror=all-warnings",
    "-Xcompiler=-fPIC,-Wall,-Wextra,-Werror",
])

_ENABLED = "//tools/bazel:cuda_enabled"

def needs_cuda():
    """The `target_compatible_with` of programs and tests that need the GPU."""
    return select({
        _ENABLED: [],
        "//conditions:default": ["//tools/bazel:incompatible"],
    })

def cuda_library(name, srcs, hdrs = [], headers_of_srcs = [], deps = [], visibility = None):
    """A C++ library of the kernels in `srcs`; empty without --config=cuda.

    Code that calls the kernels asks `#ifdef COVEY_CUDA`, which this library defines when it is not
    empty.

    Args:
      name: the C++ library.
      srcs: .cu files.
      hdrs: free of CUDA types.
      headers_of_srcs: the other headers of ours that `srcs` and `hdrs` include.
      deps: libraries that `hdrs` need when C++ includes them.
      visibility: of the library.
    """
    objects = []
    for src in srcs:
        object = src + ".o"
        native.genrule(
            name = object + "_nvcc",
            srcs = [src] + hdrs + headers_of_srcs,
            outs = [object],
            cmd = ("if ! [ -x {cuda}/bin/nvcc ]; then " +
                   "echo >&2 'no nvcc in {cuda}/bin: " +
                   "install the CUDA toolkit or build without --config=cuda'; " +
                   "exit 1; fi; {cuda}/bin/nvcc {flags} -I. -c $(location {src}) -o $@").format(
                cuda = _CUDA,
                flags = _FLAGS,
                src = src,
            ),
            message = "Compiling GPU kernels",
            tags = ["manual"],
            visibility = ["//visibility:private"],
        )
        objects.append(object)

    native.cc_library(
        name = name,
        srcs = select({
            _ENABLED: objects,
            "//conditions:default": [],
        }),
        hdrs = hdrs,
        defines = select({
            _ENABLED: ["COVEY_CUDA"],
            "//conditions:default": [],
        }),
        linkopts = select({
            _ENABLED: ["-L%s/lib64" % _CUDA, "-lcudart_static", "-ldl", "-lrt", "-lpthread"],
            "//conditions:default": [],
        }),
        visibility = visibility,
        deps = deps,
    )
