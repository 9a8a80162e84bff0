"""grpc_internal_library: code that includes gRPC's internal headers."""

# libgrpc's own settings: any other would change the layout of its structs or
# the linkage of its templates (transport/grpc/grpc_abi.h says how).
GRPC_COPTS = [
    "-std=c++14",
    "-UNDEBUG",
]

def grpc_internal_library(name, deps = [], **kwargs):
    native.cc_library(
        name = name,
        copts = GRPC_COPTS,
        deps = deps + ["@grpc_internal//:headers"],
        **kwargs
    )
