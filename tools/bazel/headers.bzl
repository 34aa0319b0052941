# SPDX-License-Identifier: Apache-2.0
"""Checks that each header compiles alone; on with --config=quick and --config=presubmit.

A header whose own source file (barrier.h, barrier.cc) is compiled by the same target needs no check
here: that file includes it first (tests/style/includes_test.py), which is the same proof.

It is an aspect and not a test, so that Bazel knows what each header reads: only what a change could
have broken is compiled again. A failure is a failed build that names the header.
"""

load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")

def _headers_compile_alone(target, ctx):
    if CcInfo not in target or target.label.workspace_name:
        return []
    context = target[CcInfo].compilation_context
    sources = {source.path: True for source in getattr(ctx.rule.files, "srcs", [])}
    headers = [
        header
        for header in context.direct_public_headers + context.direct_private_headers
        if header.is_source and header.extension == "h" and
           header.path[:-len("h")] + "cc" not in sources
    ]
    if not headers:
        return []

    toolchain = find_cpp_toolchain(ctx)
    features = cc_common.configure_features(
        ctx = ctx,
        cc_toolchain = toolchain,
        requested_features = ctx.features,
        unsupported_features = ctx.disabled_features,
    )
    objects = []
    for header in headers:
        source = ctx.actions.declare_file("%s.alone/%s.cc" % (ctx.label.name, header.basename))
        ctx.actions.write(source, '#include "%s"\n' % header.path)
        _, outputs = cc_common.compile(
            name = "%s.%s.alone" % (ctx.label.name, header.basename),
            actions = ctx.actions,
            cc_toolchain = toolchain,
            compilation_contexts = [context],
            feature_configuration = features,
            srcs = [source],
            # The object is never run. Fortified headers need an optimizing compiler.
            user_compile_flags = ["-O0", "-U_FORTIFY_SOURCE"],
        )
        objects += outputs.pic_objects or outputs.objects
    return [OutputGroupInfo(headers = depset(objects))]

headers_compile_alone = aspect(
    implementation = _headers_compile_alone,
    attrs = {
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)
