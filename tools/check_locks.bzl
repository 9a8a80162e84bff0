"""An aspect that has clang look at each source file of a C++ target, for what
its annotations say about locks. Nothing is built of it."""

def _flags(ctx, context):
    flags = ["-std=c++17", "-Wno-everything", "-Werror=thread-safety"]
    flags += ["-D" + define for define in context.defines.to_list()]
    for flag, folders in [
        ("-iquote", context.quote_includes),
        ("-I", context.includes),
        ("-isystem", context.system_includes),
    ]:
        for folder in folders.to_list():
            flags += [flag, folder]
    return flags + ctx.rule.attr.copts

def _check(ctx, context, source):
    seen = ctx.actions.declare_file(source.path + ".locks")
    ctx.actions.run_shell(
        command = 'out=$1; shift; clang++ -fsyntax-only "$@" && touch "$out"',
        arguments = [seen.path] + _flags(ctx, context) + [source.path],
        inputs = depset([source], transitive = [context.headers]),
        outputs = [seen],
        mnemonic = "CheckLocks",
        progress_message = "Checking the locks of %s" % source.short_path,
        use_default_shell_env = True,
    )
    return seen

def _check_locks_impl(target, ctx):
    if CcInfo not in target or not hasattr(ctx.rule.attr, "srcs"):
        return []
    context = target[CcInfo].compilation_context
    return [OutputGroupInfo(check_locks = depset([
        _check(ctx, context, source)
        for attribute in ctx.rule.attr.srcs
        for source in attribute.files.to_list()
        if source.extension == "cc" and source.is_source
    ]))]

check_locks = aspect(implementation = _check_locks_impl)
