"""grpc.aio, with the data plane.

    import penstock.grpc.aio

    channel = penstock.grpc.aio.insecure_channel("localhost:50051")
    server = penstock.grpc.aio.server()

All other names are those of grpc.aio.
"""

import grpc as _grpc
import grpc.aio as _aio
from grpc.aio import *  # noqa: F401,F403  pylint: disable=wildcard-import,unused-wildcard-import

from . import _aio_channel, _aio_server, _rules

# grpcio's own functions, which install() replaces.
_real_insecure_channel = _aio.insecure_channel
_real_secure_channel = _aio.secure_channel
_real_server = _aio.server


def insecure_channel(target, options=None, compression=None, interceptors=None):
    """Creates a channel, as grpc.aio.insecure_channel() does."""
    reason = None
    if compression not in (None, _grpc.Compression.NoCompression):
        reason = "the channel compresses"
    return _aio_channel.attach(
        _real_insecure_channel(target, options, compression, interceptors),
        target, options, reason)


def secure_channel(target, credentials, options=None, compression=None,
                   interceptors=None):
    """Creates a channel, as grpc.aio.secure_channel() does."""
    reason = _rules.untrusted(credentials)
    if compression not in (None, _grpc.Compression.NoCompression):
        reason = "the channel compresses"
    return _aio_channel.attach(
        _real_secure_channel(target, credentials, options, compression,
                             interceptors), target, options, reason,
        is_secure=True)


def server(migration_thread_pool=None, handlers=None, interceptors=None,
           options=None, maximum_concurrent_rpcs=None, compression=None):
    """Creates a server, as grpc.aio.server() does."""
    if maximum_concurrent_rpcs is not None and maximum_concurrent_rpcs <= 0:
        raise ValueError("maximum_concurrent_rpcs should be a positive integer")

    def make_real(all_interceptors):
        # Puts the interceptor first that counts the calls over grpcio and the
        # data plane.
        return _real_server(migration_thread_pool, handlers, all_interceptors,
                            options, None, compression)

    return _aio_server.Server(make_real, migration_thread_pool, handlers,
                              interceptors, options, maximum_concurrent_rpcs)


def install():
    """Replaces the functions of grpc.aio by those of this module."""
    _aio.insecure_channel = insecure_channel
    _aio.secure_channel = secure_channel
    _aio.server = server


def describe():
    """Returns a list of (target, path, detail, reason) of the channels."""
    return [one.describe() for one in list(_aio_channel.live)]
