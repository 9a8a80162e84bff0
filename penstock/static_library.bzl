"""static_library: one archive of a cc_library and all its dependencies."""

# All objects are merged into one, so that a program that links the archive also
# gets registrations to which no code refers. Symbols that the version script
# does not name become local. --force-group-allocation dissolves the groups of
# inline functions. Otherwise the linker could keep a group of this archive,
# which has no global names, and drop the program's own copy. The notes of the
# probes are removed, because gold cannot link them into a program from which it
# drops unused probes.
_COMMAND = """
set -eu
sed -nE 's/^ +(_Z.*);$/\\1/p' "$1" > "$2.names"
ld.bfd -r --force-group-allocation --whole-archive "${@:3}" -o "$2.o"
objcopy --wildcard --keep-global-symbols="$2.names" \
  --remove-section=.note.stapsdt --remove-section=.rela.note.stapsdt "$2.o"
rm -f "$2"
ar rcsD "$2" "$2.o"
rm "$2.names" "$2.o"
"""

def _static_library_impl(ctx):
    archives = [
        library.pic_static_library or library.static_library
        for inputs in ctx.attr.dep[CcInfo].linking_context.linker_inputs.to_list()
        for library in inputs.libraries
    ]
    output = ctx.actions.declare_file(ctx.attr.name)
    arguments = ctx.actions.args()
    arguments.add(ctx.file.exports)
    arguments.add(output)
    arguments.add_all([archive for archive in archives if archive])
    ctx.actions.run_shell(
        outputs = [output],
        inputs = [ctx.file.exports] + [a for a in archives if a],
        command = _COMMAND,
        arguments = [arguments],
        mnemonic = "StaticLibrary",
        use_default_shell_env = True,
    )
    return [DefaultInfo(
        files = depset([output]),
        runfiles = ctx.runfiles([output]),
    )]

static_library = rule(
    implementation = _static_library_impl,
    doc = "Its only global names are those that a version script exports.",
    attrs = {
        "dep": attr.label(mandatory = True, providers = [CcInfo]),
        "exports": attr.label(mandatory = True, allow_single_file = [".map"]),
    },
)
