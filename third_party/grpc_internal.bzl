"""grpc_internal_library: code that includes gRPC's internal headers."""

load("@system//:defs.bzl", "GRPC_STANDARD")
load("//third_party:cc.bzl", "UNOPTIMIZED")

# The flags of libgrpc's own build. Any other settings would change the layout
# of its structs or the linkage of its templates; see
# transport/grpc/internal/grpc_abi.h.
GRPC_COPTS = [
    "-std=" + GRPC_STANDARD,
    "-UNDEBUG",
]

# The flags for gRPC's own tests.
GRPC_TEST_COPTS = GRPC_COPTS + UNOPTIMIZED + ["-w"]

def grpc_internal_library(name, copts = [], deps = [], **kwargs):
    native.cc_library(
        name = name,
        copts = GRPC_COPTS + copts,
        deps = deps + ["@grpc_internal//:headers"],
        **kwargs
    )
