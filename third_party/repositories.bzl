"""Where each library outside the tree comes from.

Debian's packages hold all of them but one: gRPC's internal headers, which no
package ships. tools/setup takes those from gRPC's own Debian source package.
"""

def _grpc_source_impl(ctx):
    path = ctx.os.environ.get("PENSTOCK_GRPC_SOURCE", "")
    if not path:
        cache = ctx.os.environ.get("XDG_CACHE_HOME", "")
        if not cache:
            cache = ctx.os.environ.get("HOME", "/root") + "/.cache"
        path = cache + "/penstock/grpc-1.51.1"
    if not ctx.path(path + "/src/core").exists:
        fail("gRPC's headers are not in %s: run tools/setup first" % path)
    ctx.symlink(path + "/src", "src")
    ctx.symlink(path + "/test", "test")
    ctx.symlink(ctx.attr.build_file, "BUILD")

_grpc_source = repository_rule(
    implementation = _grpc_source_impl,
    attrs = {"build_file": attr.label(mandatory = True)},
    environ = ["PENSTOCK_GRPC_SOURCE", "XDG_CACHE_HOME", "HOME"],
    local = True,
)

def penstock_repositories():
    _grpc_source(
        name = "grpc_internal",
        build_file = "//third_party/grpc_internal:grpc_internal.BUILD",
    )
    native.new_local_repository(
        name = "system",
        path = "/usr/share/doc/libgrpc-dev",  # only a place to stand
        build_file = "//third_party/system:system.BUILD",
    )
    for stand_in in ["rules_cc", "remote_coverage_tools"]:
        native.local_repository(
            name = stand_in,
            path = "third_party/" + stand_in,
        )
