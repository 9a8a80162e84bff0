"""TensorFlow over Penstock: the protocol ``grpc+penstock``.

``import tensorflow`` loads the plugin; no other import is needed. Name the
protocol in place of ``grpc``::

    tf.distribute.Server(cluster, "ps", 0, protocol="grpc+penstock")

This package reports the state of the plugin.
"""

import ctypes
import importlib.util
import json
import pathlib
from typing import Any

__all__ = ["PROTOCOL", "built_for", "describe", "library_path"]

PROTOCOL = "grpc+penstock"


def library_path() -> pathlib.Path:
    """Returns the path of the plugin."""
    return pathlib.Path(__file__).with_name("libpenstock_tensorflow.so")


def describe() -> dict[str, Any]:
    """Returns the traffic of this process's servers, and the paths in use.

    ``servers``: one entry for each ``tf.distribute.Server``, with

    - ``task``: the name of the server's task;
    - ``routes``: the peers from which the server receives tensors:
      ``address`` (of the peer's gRPC), ``path`` ("shm", "verbs", "tcp", "grpc"
      for a peer without Penstock, "" for a peer that was not asked yet),
      ``detail``, ``reason`` (for not using a better path), ``calls`` (over
      Penstock), ``grpc_calls``, ``bytes_sent``, ``bytes_received``;
    - ``peers``: the peers that receive tensors from the server, with the same
      fields.

    ``held_bytes``: the size of other processes' memory that tensors of this
    process use in place.
    ``registered_bytes``: the size of TensorFlow's memory that RDMA devices may
    read without a copy (``PENSTOCK_TENSORFLOW_MEMORY=registered``).

    Raises ``ImportError`` if TensorFlow has not loaded the plugin. TensorFlow
    prints the reason when it is imported.
    """
    library = _loaded()
    library.penstock_tensorflow_describe.restype = ctypes.c_void_p
    text = library.penstock_tensorflow_describe()
    try:
        return json.loads(ctypes.string_at(text))
    finally:
        library.penstock_tensorflow_free(ctypes.c_void_p(text))


def built_for() -> str:
    """Returns the release of TensorFlow for which the plugin was built."""
    library = _loaded()
    library.penstock_tensorflow_built_for.restype = ctypes.c_char_p
    return library.penstock_tensorflow_built_for().decode()


def _loaded() -> ctypes.CDLL:
    # RTLD_NOLOAD of glibc: opens only a library that is already loaded.
    try:
        return ctypes.CDLL(str(library_path()), mode=0x4)
    except OSError as error:
        installed = importlib.util.find_spec("tensorflow") is not None
        raise ImportError(
            "TensorFlow has not loaded penstock_tensorflow: "
            + ("import tensorflow first, and read its messages"
               if installed else "none is installed for this Python")
        ) from error
