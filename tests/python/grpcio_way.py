"""Replaces grpcio's constructors by those of penstock.grpc, for grpcio's own
tests. A plugin of pytest, and a module for the processes that tests start; see
grpcio_suite.py.

A channel's calls use the data plane only when it is ready, and most of grpcio's
tests end before that. Therefore each call waits here until the channel has its data
plane, or has decided to stay with grpcio. Counts the calls over the data plane.
"""

import asyncio
import time

import penstock.grpc
from penstock import _rpc
from penstock.grpc import _aio_call, _aio_channel, _fast_channel

# The time that a call waits for the data plane, in seconds.
_LIMIT = 5.0

_calls = 0


def _count(owner, name):
    real = getattr(owner, name)

    def counting(*args):
        global _calls
        _calls += 1
        return real(*args)

    setattr(owner, name, counting)


def _wait_in(way):
    look = way.look

    def patient(self):
        end = time.monotonic() + _LIMIT
        while True:
            client = look(self)
            if client is not None or time.monotonic() > end or (
                    not _is_deciding(self)):
                return client
            time.sleep(0.001)

    way.look = patient


def _is_deciding(way):
    return way._is_asking or way._candidate


async def _awaited_client(way):
    end = time.monotonic() + _LIMIT
    while True:
        client = _look(way)
        if client is not None or time.monotonic() > end or (
                not _is_deciding(way)):
            return client
        await asyncio.sleep(0.001)


def _begin_later(core, method, deadline, credentials, *others):
    arguments = (method, deadline, credentials, *others)
    if credentials is None and not core._is_closing and (
            method != _aio_channel._OFFER):
        return _aio_call.Call(core, None, arguments)
    return core.real.call(*arguments)


def _wait_before(name):
    real = getattr(_aio_call.Call, name)

    async def patient(self, *args):
        if self._status is None:
            self._client = await _awaited_client(self._channel.way)
        return await real(self, *args)

    setattr(_aio_call.Call, name, patient)


def _begin_if_fast(self, *args):
    return self._client and _begin(self, *args)


def pytest_runtest_setup(item):
    item.fast_calls = _calls


def pytest_runtest_teardown(item):
    item.user_properties.append(("fast_calls", _calls - item.fast_calls))


penstock.grpc.install()
_look = _fast_channel.Way.look
_wait_in(_fast_channel.Way)
_aio_channel.CoreChannel.call = _begin_later
_begin, _aio_call.Call._begin = _aio_call.Call._begin, _begin_if_fast
for _name in ("unary_unary", "initiate_unary_stream", "stream_unary",
              "initiate_stream_stream"):
    _wait_before(_name)
for _name in ("call", "start", "open"):
    _count(_rpc.Client, _name)
