"""Puts penstock.grpc in place of grpcio's constructors, for grpcio's own tests.
A plugin of pytest, and a module for the processes that tests start; see
grpcio_suite.py.

A channel's calls take the fast way only when it is ready, and most of grpcio's
tests end before. Therefore each call waits here until the channel has its fast
way, or has decided to stay with grpcio. Counts the calls over the fast way.
"""

import time

import penstock.grpc
from penstock import _rpc
from penstock.grpc import _fast_channel

# How long a call waits for the fast way, in seconds.
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
            if client is not None or time.monotonic() > end or not (
                    self._is_asking or self._candidate):
                return client
            time.sleep(0.001)

    way.look = patient


def pytest_runtest_setup(item):
    item.fast_calls = _calls


def pytest_runtest_teardown(item):
    item.user_properties.append(("fast_calls", _calls - item.fast_calls))


penstock.grpc.install()
_wait_in(_fast_channel.Way)
for _name in ("call", "start", "open"):
    _count(_rpc.Client, _name)
