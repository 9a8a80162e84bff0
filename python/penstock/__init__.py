"""Exchanges tensors between processes, over shared memory, RDMA or TCP.

    with penstock.TensorClient("127.0.0.1:50051") as client:
        client.put({"x": numpy.ones(1000, "f4")})
        x = client.get(["x"])["x"].numpy()

A program may also use the package grpcio, which contains its own gRPC. These
classes accept none of its channels or credentials. penstock.grpc does: it speeds
up programs of grpcio's, and needs neither NumPy nor the gRPC of these classes.
The module of these classes is loaded when a program first uses a name.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._tensors import (  # noqa: F401
        ChannelCredentials, DeadlineExceeded, Entry, Error, FailedPrecondition,
        InvalidArgument, NotFound, PathReport, ResourceExhausted,
        ServerCredentials, Tensor, TensorClient, TensorServer, Unavailable,
        describe_paths, from_dlpack, ssl_channel_credentials,
        ssl_server_credentials, use_devices)

__all__ = [
    "ChannelCredentials", "DeadlineExceeded", "Entry", "Error",
    "FailedPrecondition", "InvalidArgument", "NotFound", "PathReport",
    "ResourceExhausted", "ServerCredentials", "Tensor", "TensorClient",
    "TensorServer", "Unavailable", "describe_paths", "from_dlpack",
    "ssl_channel_credentials", "ssl_server_credentials",
    "use_devices",
]


def __getattr__(name):
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(importlib.import_module("._tensors", __name__), name)
    except ModuleNotFoundError as error:
        if error.name != __name__ + "._tensors":
            raise
        raise ImportError(
            f"{name} is not in penstock-grpc, but in the wheel penstock and "
            "in python3-penstock") from error


def __dir__():
    return sorted({*globals(), *__all__})
