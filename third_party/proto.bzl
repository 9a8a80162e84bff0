"""cc_grpc_proto: C++ code for one .proto file, by Debian's protoc."""

def cc_grpc_proto(name, src, grpc = True, deps = [], visibility = None):
    """Makes a cc_library from one .proto file.

    Args:
      name: of the library.
      src: the file; include it elsewhere as "<package>/<name>.pb.h".
      grpc: whether it declares services.
      deps: other cc_grpc_proto libraries that it imports; their .proto files
        are named "<dep>_proto".
      visibility: as usual.
    """
    base = src[:-len(".proto")]
    outs = [base + ".pb.h", base + ".pb.cc"]
    cmd = "protoc -I. --cpp_out=$(GENDIR) "
    if grpc:
        outs += [base + ".grpc.pb.h", base + ".grpc.pb.cc"]
        cmd += "--plugin=protoc-gen-grpc=/usr/bin/grpc_cpp_plugin --grpc_out=$(GENDIR) "
    native.filegroup(
        name = name + "_proto",
        srcs = [src] + [d + "_proto" for d in deps],
        visibility = visibility,
    )
    native.genrule(
        name = name + "_gen",
        srcs = [":" + name + "_proto"],
        outs = outs,
        cmd = cmd + native.package_name() + "/" + src,
    )
    native.cc_library(
        name = name,
        srcs = [o for o in outs if o.endswith(".cc")],
        hdrs = [o for o in outs if o.endswith(".h")],
        copts = ["-w"],
        deps = deps + ["@system//:grpc++"],
        visibility = visibility,
    )
