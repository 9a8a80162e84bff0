#!/usr/bin/python3 -B
"""Tests that the options grpc.keepalive_... hold for the data plane. A stopped
process stands for a peer that is gone."""

import contextlib
import math
import os
import signal
import subprocess
import sys
import threading

import run_pytest

import grpc
import pytest

import fast_grpc
import penstock.grpc
from penstock.grpc import _rules

LIMIT = 20
OPTIONS = [("grpc.keepalive_time_ms", 1000), ("grpc.keepalive_timeout_ms", 1000)]

SERVER = """
import sys, threading
import fast_grpc, penstock.grpc

def wait(request, context):
    print("begun", flush=True)
    threading.Event().wait()

with fast_grpc.serving(penstock.grpc, [fast_grpc.Handlers(
        {"wait": wait})]) as target:
    print(target, flush=True)
    sys.stdin.read()
"""

CLIENT = """
import sys
import fast_grpc, penstock.grpc

with penstock.grpc.insecure_channel(sys.argv[1]) as channel:
    fast_grpc.until_fast(channel)
    channel.unary_unary("/test/wait")(b"")
"""


@contextlib.contextmanager
def program(text, *arguments):
    folder = os.path.dirname(os.path.abspath(__file__))
    with subprocess.Popen(
            [sys.executable, "-B", "-c", text, *arguments], text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(
                [run_pytest.PACKAGES, folder])}) as process:
        try:
            yield process
        finally:
            process.kill()


def test_a_call_ends_after_its_server_was_stopped():
    with program(SERVER) as server:
        target = server.stdout.readline().strip()
        with penstock.grpc.insecure_channel(target, OPTIONS) as channel:
            fast_grpc.until_fast(channel)
            call = channel.unary_unary("/test/wait").future(b"")
            assert server.stdout.readline() == "begun\n"
            server.send_signal(signal.SIGSTOP)
            assert call.exception(LIMIT).code() is grpc.StatusCode.UNAVAILABLE


def test_a_handler_is_cancelled_after_its_client_was_stopped():
    begun, cancelled = threading.Event(), threading.Event()

    def wait(request, context):
        context.add_callback(cancelled.set)
        begun.set()
        cancelled.wait(LIMIT)
        return b""

    with fast_grpc.serving(penstock.grpc, [fast_grpc.Handlers({"wait": wait})],
                           options=OPTIONS) as target:
        with program(CLIENT, target) as client:
            assert begun.wait(LIMIT)
            client.send_signal(signal.SIGSTOP)
            assert cancelled.wait(LIMIT)


@pytest.mark.parametrize("options, expected", [
    ((), (30, 60, True)),
    ((("grpc.keepalive_time_ms", 20000),), (20, 60, True)),
    ((("grpc.keepalive_time_ms", 2**31 - 1),), (math.inf, 60, True)),
    ((("grpc.keepalive_timeout_ms", 5000),), (30, 5, True)),
    ((("grpc.keepalive_permit_without_calls", 0),), (30, 60, False)),
    # The shortest times.
    ((("grpc.keepalive_time_ms", 1), ("grpc.keepalive_timeout_ms", -1)),
     (1, 1, True)),
    # The last one holds. gRPC ignores values of other types.
    ((("grpc.keepalive_time_ms", 5000), ("grpc.keepalive_time_ms", 9000),
      ("grpc.keepalive_timeout_ms", "5000")), (9, 60, True)),
])
def test_options(options, expected):
    keepalive = _rules.keepalive(options)
    assert (keepalive.time, keepalive.timeout,
            keepalive.permits_without_calls) == expected


if __name__ == "__main__":
    run_pytest.main(__file__)
