"""grpc.aio, over grpcio: the fast way has no asyncio yet.

Programs may write `penstock.grpc.aio` today, and will get the fast way when it
exists. Until then the functions here only note why calls go over grpcio.
"""

import logging
import weakref

import grpc.aio as _aio
from grpc.aio import *  # noqa: F401,F403  pylint: disable=wildcard-import,unused-wildcard-import

_LOGGER = logging.getLogger(__name__)
_REASON = "penstock.grpc has no asyncio yet"

# grpcio's own functions, which install() replaces.
_real_insecure_channel = _aio.insecure_channel
_real_secure_channel = _aio.secure_channel
_real_server = _aio.server

_targets = weakref.WeakKeyDictionary()  # of the channels of the process


def _noted(target, channel):
    _targets[channel] = target
    _LOGGER.info("calls to %s go over grpcio: %s", target, _REASON)
    return channel


def insecure_channel(target, *args, **kwargs):
    """Creates a channel, as grpc.aio.insecure_channel() does."""
    return _noted(target, _real_insecure_channel(target, *args, **kwargs))


def secure_channel(target, *args, **kwargs):
    """Creates a channel, as grpc.aio.secure_channel() does."""
    return _noted(target, _real_secure_channel(target, *args, **kwargs))


def server(*args, **kwargs):
    """Creates a server, as grpc.aio.server() does."""
    _LOGGER.info("a server uses grpcio only: %s", _REASON)
    return _real_server(*args, **kwargs)


def install():
    """Replaces the functions of grpc.aio by those of this module."""
    _aio.insecure_channel = insecure_channel
    _aio.secure_channel = secure_channel
    _aio.server = server


def describe():
    """Returns a list of (target, path, detail, reason) of the channels."""
    return [(target, "grpcio", "", _REASON)
            for target in list(_targets.values())]
