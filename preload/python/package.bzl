"""Defines package_folder(), which brings the files of a Python package together,
built ones and sources, in this folder."""

def _package_folder(ctx):
    copies = []
    for file in ctx.files.srcs:
        name = file.short_path[file.short_path.index("penstock/"):]
        copy = ctx.actions.declare_file(name)
        ctx.actions.symlink(output = copy, target_file = file)
        copies.append(copy)
    files = depset(copies)
    return [DefaultInfo(files = files, runfiles = ctx.runfiles(copies))]

package_folder = rule(
    implementation = _package_folder,
    attrs = {"srcs": attr.label_list(allow_files = True)},
)
