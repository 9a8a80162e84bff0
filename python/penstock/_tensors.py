"""The public names of the package penstock, with the extension module."""

import numpy as _numpy

try:
    from . import _penstock
except ImportError as error:
    raise ImportError("penstock's extension module fits one release of a "
                      "distribution, with its Python, gRPC and abseil; here "
                      f"it does not load: {error}") from error

if not _penstock._knows_numpy_2 and (
        _numpy.lib.NumpyVersion(_numpy.__version__) >= "2.0.0b1"):
    # Supports only NumPy 1 with a pybind11 before release 2.12.
    raise ImportError(f"penstock needs numpy 1, and {_numpy.__version__} is at "
                      f"{_numpy.__path__[0]}: pip install 'numpy<2'")

from ._errors import (DeadlineExceeded, Error, FailedPrecondition,
                      InvalidArgument, NotFound, ResourceExhausted,
                      Unavailable)
from ._penstock import (ChannelCredentials, PathReport, ServerCredentials,
                        Tensor, TensorClient, TensorServer, describe_paths,
                        from_dlpack, ssl_channel_credentials,
                        ssl_server_credentials, use_devices)
from ._types import Entry

__all__ = [
    "ChannelCredentials", "DeadlineExceeded", "Entry", "Error",
    "FailedPrecondition", "InvalidArgument", "NotFound", "PathReport",
    "ResourceExhausted", "ServerCredentials", "Tensor", "TensorClient",
    "TensorServer", "Unavailable", "describe_paths", "from_dlpack",
    "ssl_channel_credentials", "ssl_server_credentials",
    "use_devices",
]

for _name in __all__:
    globals()[_name].__module__ = "penstock"
