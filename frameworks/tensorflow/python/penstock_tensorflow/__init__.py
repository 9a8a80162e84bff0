"""TensorFlow over Penstock: the protocol ``grpc+penstock``.

Nothing has to be imported for that: ``import tensorflow`` loads the plugin.
Name the protocol where ``grpc`` is named otherwise::

    tf.distribute.Server(cluster, "ps", 0, protocol="grpc+penstock")

This package tells what became of it.
"""

import ctypes
import importlib.util
import json
import pathlib
from typing import Any

__all__ = ["PROTOCOL", "built_for", "describe", "library_path"]

PROTOCOL = "grpc+penstock"


def library_path() -> pathlib.Path:
    """Where the plugin lies."""
    return pathlib.Path(__file__).with_name("libpenstock_tensorflow.so")


def describe() -> dict[str, Any]:
    """What the servers of this process have sent and received, and how.

    ``servers``: one entry for each ``tf.distribute.Server``, with

    - ``task``: its name;
    - ``routes``: the peers that it receives tensors from: ``address`` (of
      their gRPC), ``path`` ("shm", "verbs", "tcp", "grpc" for a peer without
      Penstock, "" for one that was not asked yet), ``detail``, ``reason`` (why
      there is no better path), ``calls`` (over Penstock), ``grpc_calls``,
      ``bytes_sent``, ``bytes_received``;
    - ``peers``: those that receive tensors from it, in the same words.

    ``held_bytes``: of other processes' memory, what tensors here lie in.
    ``registered_bytes``: of TensorFlow's memory, what RDMA devices may read
    without a copy (``PENSTOCK_TENSORFLOW_MEMORY=registered``).

    ``ImportError`` if TensorFlow has not loaded the plugin: it says why when
    it is imported.
    """
    library = _loaded()
    library.penstock_tensorflow_describe.restype = ctypes.c_void_p
    text = library.penstock_tensorflow_describe()
    try:
        return json.loads(ctypes.string_at(text))
    finally:
        library.penstock_tensorflow_free(ctypes.c_void_p(text))


def built_for() -> str:
    """The release of TensorFlow that the plugin was built for."""
    library = _loaded()
    library.penstock_tensorflow_built_for.restype = ctypes.c_char_p
    return library.penstock_tensorflow_built_for().decode()


def _loaded() -> ctypes.CDLL:
    # glibc's RTLD_NOLOAD: only a library that is loaded already.
    try:
        return ctypes.CDLL(str(library_path()), mode=0x4)
    except OSError as error:
        installed = importlib.util.find_spec("tensorflow") is not None
        raise ImportError(
            "TensorFlow has not loaded penstock_tensorflow: "
            + ("import tensorflow first, and look at what it says"
               if installed else "none is installed for this Python")
        ) from error
