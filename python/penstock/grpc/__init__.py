"""gRPC for Python programs with any grpcio, over shared memory, RDMA or TCP.

    import penstock.grpc

    channel = penstock.grpc.insecure_channel("localhost:50051")
    server = penstock.grpc.server(concurrent.futures.ThreadPoolExecutor())

The objects are grpc.Channel and grpc.Server of the grpcio that is installed.
Each has a real channel or server of grpcio's, and a data plane next to it. The
real one keeps the port, TLS, the peer's identity and peers without Penstock. A
client asks its server through the real channel for the data plane. Calls take
the real channel until the data plane is ready, and whenever only grpcio can
make them. describe_paths() says which of the two carries the calls, and why.

All other names are grpcio's: `import penstock.grpc as grpc` is a replacement
for `import grpc`.
"""

import grpc as _grpc

from . import _fast_channel, _fast_server, _rules, _two_ways, aio
from ._views import takes_memoryview

__all__ = ["aio", "describe_paths", "insecure_channel", "install",
           "secure_channel", "server", "takes_memoryview"]

# grpcio's own functions, which install() replaces.
_real_insecure_channel = _grpc.insecure_channel
_real_secure_channel = _grpc.secure_channel
_real_server = _grpc.server


def __getattr__(name):
    return getattr(_grpc, name)


def __dir__():
    return sorted({*globals(), *dir(_grpc)})


def insecure_channel(target, options=None, compression=None):
    """Creates a channel, as grpc.insecure_channel() does."""
    reason = None
    if compression not in (None, _grpc.Compression.NoCompression):
        reason = "the channel compresses"
    real = _real_insecure_channel(target, options=options,
                                  compression=compression)
    reason = reason or _rules.foreign(_real_insecure_channel, real)
    return _fast_channel.Channel(target, real, options, reason)


def secure_channel(target, credentials, options=None, compression=None):
    """Creates a channel, as grpc.secure_channel() does."""
    reason = _rules.untrusted(credentials)
    if compression not in (None, _grpc.Compression.NoCompression):
        reason = "the channel compresses"
    real = _real_secure_channel(target, credentials, options=options,
                                compression=compression)
    reason = reason or _rules.foreign(_real_secure_channel, real)
    return _fast_channel.Channel(target, real, options, reason, is_secure=True)


def server(thread_pool, handlers=None, interceptors=None, options=None,
           maximum_concurrent_rpcs=None, compression=None, xds=False):
    """Creates a server, as grpc.server() does."""
    reason = "xDS chooses the server's settings" if xds else None

    def make_real(all_interceptors):
        # Passes keyword arguments, because a package that wraps grpc.server
        # looks for their names.
        real = _real_server(thread_pool, handlers=handlers,
                            interceptors=all_interceptors, options=options,
                            maximum_concurrent_rpcs=maximum_concurrent_rpcs,
                            compression=compression, xds=xds)
        return real, _rules.foreign(_real_server, real)

    return _fast_server.Server(make_real, thread_pool, handlers, interceptors,
                          options, reason)


def install():
    """Replaces the functions of grpcio in this process by those of penstock:
    grpc.insecure_channel, grpc.secure_channel, grpc.server, and the functions
    of grpc.aio. Code that has taken a function before, as `from grpc import
    server` does, keeps grpcio's. To run an unmodified program: penstock run
    PROGRAM, or python3 -m penstock.grpc PROGRAM [ARGUMENTS...]"""
    _grpc.insecure_channel = insecure_channel
    _grpc.secure_channel = secure_channel
    _grpc.server = server
    aio.install()


def describe_paths():
    """Returns one line for each channel of the process, and for each client of
    its servers: the path of its calls, or why its calls go over grpcio."""
    channels = [channel.describe() for channel in list(_fast_channel.live)]
    clients = [one for server in list(_two_ways.live)
               for one in server.describe()]
    return sorted([_line(f"to {peer}", *path)
                   for peer, *path in channels + aio.describe()] +
                  [_line(f"from {peer}", *path) for peer, *path in clients])


def _line(peer, path, detail, reason):
    text = f"{peer}: {path}"
    if detail:
        text += f" ({detail})"
    return f"{text}: {reason}" if reason else text
