"""precompiled_header: headers that g++ parses once for many sources."""

load("@bazel_tools//tools/build_defs/cc:action_names.bzl", "ACTION_NAMES")
load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")

def _command_line(ctx, toolchain, features, context, out):
    fragment = ctx.fragments.cpp
    variables = cc_common.create_compile_variables(
        cc_toolchain = toolchain,
        feature_configuration = features,
        include_directories = context.includes,
        output_file = out.path,
        preprocessor_defines = context.defines,
        quote_include_directories = context.quote_includes,
        source_file = ctx.file.hdr.path,
        system_include_directories = context.system_includes,
        use_pic = True,  # .bazelrc: --force_pic
        user_compile_flags = fragment.copts + fragment.cxxopts +
                             ctx.attr.copts + ["-x", "c++-header"],
    )
    return cc_common.get_memory_inefficient_command_line(
        action_name = ACTION_NAMES.cpp_compile,
        feature_configuration = features,
        variables = variables,
    )

def _precompiled_header_impl(ctx):
    # g++ looks for FILE.gch in the place of FILE, which does not exist. An
    # unusable precompiled header is therefore an error instead of a slow build.
    out = ctx.actions.declare_file(ctx.label.name + ".h.gch")
    toolchain = find_cpp_toolchain(ctx)
    features = cc_common.configure_features(
        cc_toolchain = toolchain,
        ctx = ctx,
        requested_features = ctx.features,
        unsupported_features = ctx.disabled_features,
    )
    merged = cc_common.merge_cc_infos(
        cc_infos = [dep[CcInfo] for dep in ctx.attr.deps],
    )
    context = merged.compilation_context
    ctx.actions.run(
        arguments = _command_line(ctx, toolchain, features, context, out),
        executable = cc_common.get_tool_for_action(
            action_name = ACTION_NAMES.cpp_compile,
            feature_configuration = features,
        ),
        inputs = depset(
            [ctx.file.hdr],
            transitive = [context.headers, toolchain.all_files],
        ),
        mnemonic = "PrecompiledHeader",
        outputs = [out],
        progress_message = "Precompiling %s" % ctx.file.hdr.short_path,
        use_default_shell_env = True,
    )
    own = cc_common.create_compilation_context(headers = depset([out]))

    # Leaves out the link flags of the headers' libraries.
    return [
        DefaultInfo(files = depset([out])),
        cc_common.merge_cc_infos(cc_infos = [
            CcInfo(compilation_context = own),
            CcInfo(compilation_context = context),
        ]),
    ]

precompiled_header = rule(
    implementation = _precompiled_header_impl,
    attrs = {
        "copts": attr.string_list(),
        "deps": attr.label_list(providers = [CcInfo]),
        "hdr": attr.label(allow_single_file = [".h"], mandatory = True),
        "_cc_toolchain": attr.label(
            default = "@bazel_tools//tools/cpp:current_cc_toolchain",
        ),
    },
    doc = """Precompiles `hdr`, which includes others, with g++.

A library or test that depends on it and has the option
"-include $(GENDIR)/PACKAGE/NAME.h" begins with all of `hdr`. Its other options
must be those that the header was compiled with.""",
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)
