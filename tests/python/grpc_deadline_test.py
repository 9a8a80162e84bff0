#!/usr/bin/python3 -B
"""Tests that a server enforces the deadlines of its calls by itself, while its
client is stopped."""

import os
import signal
import subprocess
import sys
import threading

import run_pytest

import grpc
import pytest

from fast_grpc import make_team  # noqa: F401  # pylint: disable=unused-import

# Calls until a handler stops this process.
CLIENT = """
import itertools, sys
import grpc, penstock.grpc
from fast_grpc import until_fast

way, target, kind = sys.argv[1:]
module = penstock.grpc if way == "fast" else grpc
with module.insecure_channel(target) as channel:
    if way == "fast":
        until_fast(channel)
    print("ready", flush=True)
    sys.stdin.readline()
    while True:
        try:
            if kind == "unary":
                channel.unary_unary("/test/unary")(b"", timeout=1)
            else:
                requests = itertools.repeat(b"x")
                list(channel.stream_stream("/test/" + kind)(requests, timeout=1))
        except grpc.RpcError:
            pass
"""


class Handlers:
    """Handlers of which the first stops the client, and waits until its call
    is cancelled."""

    def __init__(self):
        self.client = None
        self.cancelled = threading.Event()
        self.seen = []  # at the end of the first call
        self.has_seen = threading.Event()

    def _begin(self, context):
        context.add_callback(self.cancelled.set)
        self.client.send_signal(signal.SIGSTOP)

    def _end(self, context, outcome):
        self.seen.append((outcome, context.is_active(),
                          context.time_remaining() <= 0))
        self.has_seen.set()

    def unary(self, request, context):
        self._begin(context)
        self.cancelled.wait(20)
        self._end(context, None)
        return b""

    def reader(self, requests, context):
        self._begin(context)
        try:
            for _ in requests:
                pass
            outcome = "the last request"
        except grpc.RpcError:
            outcome = "an error"
        self._end(context, outcome)
        yield b""

    def writer(self, requests, context):
        self._begin(context)
        try:
            while True:
                yield b"x" * 100_000
        finally:
            self._end(context, None)


# Accepts two outcomes, because a stream of grpcio may end late here, or like a
# complete one.
@pytest.mark.parametrize("team, kind, outcome", [
    ("grpcio", "unary", None),
    ("fast", "unary", None),
    ("fast", "reader", "an error"),
    ("fast", "writer", None),
], indirect=["team"])
def test_a_deadline_passes_while_the_client_is_stopped(team, kind, outcome):
    handlers = Handlers()
    team.start(unary=handlers.unary, **{
        name: grpc.stream_stream_rpc_method_handler(getattr(handlers, name))
        for name in ("reader", "writer")})
    folder = os.path.dirname(os.path.abspath(__file__))
    with subprocess.Popen(
            [sys.executable, "-B", "-c", CLIENT, team.way, team.target, kind],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(
                [run_pytest.PACKAGES, folder])}) as client:
        handlers.client = client
        try:
            assert client.stdout.readline() == "ready\n"
            client.stdin.write("\n")
            client.stdin.flush()
            assert handlers.has_seen.wait(10)
            assert handlers.seen[0] == (outcome, False, True)
        finally:
            client.kill()


if __name__ == "__main__":
    run_pytest.main(__file__)
