"""put_over_penstock: runs gRPC's own programs over Penstock."""

def put_over_penstock(name, src):
    """Rewrites gRPC's own `src` by put_over_penstock.py, and writes it to `name`.

    Args:
      name: the file that is made.
      src: its path in gRPC's source package.
    """
    native.genrule(
        name = name.replace(".", "_"),
        srcs = ["@grpc_internal//:" + src],
        outs = [name],
        cmd = "python3 -B $(location " + _PROGRAM + ") $(SRCS) $@",
        tools = [_PROGRAM],
    )

_PROGRAM = "//tests/grpc_end2end:put_over_penstock.py"
