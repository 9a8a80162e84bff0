"""Runs clang-tidy on each source file of a C++ target, by an aspect. Builds
nothing. The output group "lint" has all of them, and "lint:PATH" has one file.
"""

def _flags(ctx, context):
    flags = ["-std=c++17", "-Wthread-safety"]
    flags += ["-D" + define for define in (
        context.defines.to_list() + context.local_defines.to_list()
    )]
    for flag, folders in [
        ("-iquote", context.quote_includes),
        ("-I", context.includes),
        ("-isystem", context.system_includes),
    ]:
        for folder in folders.to_list():
            flags += [flag, folder]
    copts = ctx.rule.attr.copts
    if copts and copts[0] == "-include":  # flags of g++: see third_party/cc.bzl
        copts = copts[2:]
    return flags + copts

# Warnings go to standard output, and the number of suppressed ones to standard
# error.
_COMMAND = """out=$1; shift
clang-tidy --quiet "$@" 2>"$out" || { cat "$out" >&2; exit 1; }"""

def _lint_source(ctx, context, source):
    seen = ctx.actions.declare_file(source.path + ".lint")
    ctx.actions.run_shell(
        command = _COMMAND,
        arguments = [
            seen.path,
            "--config-file=" + ctx.file._config.path,
            source.path,
            "--",
        ] + _flags(ctx, context),
        inputs = depset(
            [source, ctx.file._config],
            transitive = [context.headers],
        ),
        outputs = [seen],
        mnemonic = "Lint",
        progress_message = "Linting %s" % source.short_path,
        use_default_shell_env = True,
    )
    return seen

def _lint_impl(target, ctx):
    if CcInfo not in target or not hasattr(ctx.rule.attr, "srcs"):
        return []
    context = target[CcInfo].compilation_context
    seen = {
        "lint:" + source.path: depset([_lint_source(ctx, context, source)])
        for attribute in ctx.rule.attr.srcs
        for source in attribute.files.to_list()
        if source.extension == "cc" and source.is_source
    }
    return [OutputGroupInfo(lint = depset(transitive = seen.values()), **seen)]

lint = aspect(
    implementation = _lint_impl,
    attrs = {
        "_config": attr.label(
            default = "//:.clang-tidy",
            allow_single_file = True,
        ),
    },
)
