"""Channels of grpc.aio that can use the data plane, Penstock's own transport.

A channel is grpcio's own object. A CoreChannel replaces the channel's
cygrpc.AioChannel, and begins each call.
"""

import logging
import weakref

import grpc
import grpc.aio
from grpc._cython import cygrpc

from . import _aio_call, _fast_channel, _loops, _rules, _wire

_LOGGER = logging.getLogger(__name__)
_OFFER = _wire.OFFER_METHOD.encode()

live = weakref.WeakSet()  # the CoreChannels of the process


class CoreChannel:
    """A cygrpc.AioChannel, and a data plane for the calls that can use it. Call
    all functions on the loop's thread."""

    def __init__(self, channel, target, options, reason, is_secure):
        self.real = channel._channel
        self.loop = channel._loop
        self._target = target
        self._is_closing = False
        host = None
        if reason is None:
            host, reason = _rules.host_of_target(target, options)
        if reason is not None:
            _LOGGER.info("calls to %s go over grpcio: %s", target, reason)
        self.way = _fast_channel.Way(_asking(weakref.ref(channel)), host,
                                     options, reason, is_secure)
        self.max_send_bytes = _rules.max_send_bytes(options)
        primary = _rules.option(options, "grpc.primary_user_agent", "")
        self.user_agent = _wire.user_agent(
            f"{primary} grpc-python-asyncio/{grpc.__version__} penstock".strip())
        self.plain_head = _wire.encode_request((), self.user_agent)
        live.add(self)

    def __getattr__(self, name):
        return getattr(self.real, name)

    def describe(self):
        """Returns a tuple for describe(): (target, path, detail, reason)."""
        return (self._target, *self.way.describe())

    def queue(self):
        return _loops.queue_of(self.loop)

    def _has_queue(self):
        """Stays with grpcio, and returns false, if the loop can have no queue."""
        try:
            self.queue()
        except (NotImplementedError, OSError, RuntimeError) as error:
            self.way.leave(str(error) or "the loop watches no descriptors")
            return False
        return True

    def call(self, method, deadline, credentials, wait_for_ready, *others):
        if (credentials is None and not self._is_closing and
                method != _OFFER and _wire.has_room_for(method)):
            client = self.way.client
            if client is None or client.is_over():
                client = self.way.look()
            if client is not None and self._has_queue():
                return _aio_call.Call(self, client, (
                    method, deadline, credentials, wait_for_ready, *others))
        return _aio_call.over_real(self, self.real.call(
            method, deadline, credentials, wait_for_ready, *others))

    def closing(self):
        self._is_closing = True
        self.real.closing()

    def close(self):
        self._is_closing = True
        self.way.close()
        self.real.close()


def _asking(reference):
    """Returns a function that asks the server for its data plane, for
    _fast_channel.Way. `reference` is a weak reference to the channel."""

    def ask(question, on_answer):
        channel = reference()
        method = channel.unary_unary(_wire.OFFER_METHOD)
        method._interceptors = ()  # not the program's interceptors
        task = channel._loop.create_task(_answered(method, question))
        task.add_done_callback(lambda done: on_answer(done.result))

    return ask


async def _answered(method, question):
    return await method(question, timeout=_fast_channel.OFFER_LIMIT)


def attach(channel, target, options, reason, is_secure=False):
    """Adds a data plane to a new channel of grpc.aio. Returns the channel."""
    if reason is None and not _is_known(channel):
        reason = "this grpcio is of a release that penstock.grpc does not know"
    if not _is_known(channel):
        _LOGGER.info("calls to %s go over grpcio: %s", target, reason)
        return channel
    channel._channel = CoreChannel(channel, target, tuple(options or ()), reason,
                                   is_secure)
    return channel


def _is_known(channel):
    """Returns true for a channel of grpcio's own class, whose parts this file
    can replace."""
    return (type(channel).__module__ == "grpc.aio._channel" and
            type(getattr(channel, "_channel", None)) is cygrpc.AioChannel and
            hasattr(channel, "_loop"))
