# SPDX-License-Identifier: Apache-2.0
"""Compiles protocol buffers with Debian's protoc and gRPC plugin."""

def covey_proto_library(name, srcs, deps = [], grpc = False, visibility = None):
    """A C++ library of the messages, and with `grpc` the services, in `srcs`.

    Files import each other by their path from the workspace root (`import "proto/table.proto";`);
    C++ includes the result the same way (`#include "proto/table.pb.h"`).

    Args:
      name: the C++ library.
      srcs: .proto files of this package.
      deps: covey_proto_library targets whose files `srcs` import.
      grpc: whether to generate service stubs too (`x.grpc.pb.h`).
      visibility: of the library.
    """
    stems = []
    for src in srcs:
        if not src.endswith(".proto"):
            fail("covey_proto_library %s: %s is not a .proto file" % (name, src))
        stems.append(src[:-len(".proto")])

    kinds = [".pb", ".grpc.pb"] if grpc else [".pb"]
    hdrs = [stem + kind + ".h" for stem in stems for kind in kinds]
    sources = [stem + kind + ".cc" for stem in stems for kind in kinds]

    native.filegroup(
        name = name + "_protos",
        srcs = srcs + [dep + "_protos" for dep in deps],
        visibility = visibility,
    )

    flags = "--proto_path=. --cpp_out=$(GENDIR)"
    if grpc:
        flags += " --grpc_out=$(GENDIR) --plugin=protoc-gen-grpc=/usr/bin/grpc_cpp_plugin"
    native.genrule(
        name = name + "_generated",
        srcs = [":" + name + "_protos"],
        outs = hdrs + sources,
        cmd = "/usr/bin/protoc %s %s" % (
            flags,
            " ".join([native.package_name() + "/" + src for src in srcs]),
        ),
        message = "Compiling protocol buffers",
        visibility = ["//visibility:private"],
    )

    # Generated code is exempt from our warnings: .bazelrc exempts *.pb.cc from -Werror.
    native.cc_library(
        name = name,
        srcs = sources,
        hdrs = hdrs,
        visibility = visibility,
        # gRPC's reflection looks a service up by its name. No symbol of the stubs refers to the
        # descriptor that this needs, so the linker would leave it out.
        alwayslink = grpc,
        deps = deps + ["@system//:grpc" if grpc else "@system//:protobuf"],
    )
