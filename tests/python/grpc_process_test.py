#!/usr/bin/python3 -B
"""Tests processes of penstock.grpc: exits during calls, servers that die,
gevent, event loops in threads, and many streams at once."""

import asyncio
import concurrent.futures
import contextlib
import os
import subprocess
import sys
import threading

import run_pytest

import grpc
import pytest

import fast_grpc
import penstock.grpc
from fast_grpc import caught, make_team  # noqa: F401  # pylint: disable=unused-import

FOLDER = os.path.dirname(os.path.abspath(__file__))
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(
    [run_pytest.PACKAGES, FOLDER])}


def run(program, *arguments):
    """Runs a program until it ends, which must happen soon."""
    ended = subprocess.run(
        [sys.executable, "-B", "-c", program, *arguments], text=True,
        timeout=120, capture_output=True, env=ENVIRONMENT)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


CHILD = """
import concurrent.futures, os, sys
import fast_grpc, penstock.grpc
handlers = [fast_grpc.Handlers({"echo": lambda request, context: request})]
with fast_grpc.serving(penstock.grpc, handlers) as target:
    channel = penstock.grpc.insecure_channel(target)
    fast_grpc.until_fast(channel)
    echo = channel.unary_unary("/test/echo")
    assert echo(b"x") == b"x"
    %s
print("end")
"""


@pytest.mark.parametrize("rest", [
    "pass",
    # A call in progress when the program exits.
    "echo.future(b'x' * 3000000)",
    # A fork: the child's channel stays with grpcio.
    """
    child = os.fork()
    if not child:
        os._exit(0 if channel.describe()[1] == "grpcio" else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert echo(b"y") == b"y"
""",
])
def test_a_process_ends(rest):
    assert run(CHILD % rest) == "end\n"


CLIENT = """
import sys, threading
import grpc, fast_grpc, penstock.grpc
module = penstock.grpc if sys.argv[2] == "fast" else grpc
channel = module.insecure_channel(sys.argv[1])
if module is penstock.grpc:
    fast_grpc.until_fast(channel)
never = threading.Event()

def requests():
    yield b"x"
    never.wait()

wait = channel.unary_unary("/test/wait")
chat = channel.stream_stream("/test/chat")
def in_background(function, *arguments):
    threading.Thread(target=function, args=arguments, daemon=True).start()
%s
note = channel.unary_unary("/test/note")
note(b"")  # returns when the server has the call above
print("end")
"""


@pytest.mark.parametrize("call", [
    "call = wait.future(b'')",
    "call = wait.future(b''); call.add_done_callback(print)",
    "call = chat(requests())",
    "call = chat(requests()); in_background(list, call)",
    "in_background(wait, b'')",
])
def test_a_client_ends_with_a_call_under_way(team, call):
    begun, ended = threading.Event(), threading.Event()

    def wait(request, context):
        context.add_callback(ended.set)
        begun.set()
        ended.wait(30)
        return b""

    def chat(requests, context):
        context.add_callback(ended.set)
        begun.set()
        yield from requests

    team.start(wait=wait, chat=grpc.stream_stream_rpc_method_handler(chat),
               note=lambda request, context: begun.wait(20) and request)
    assert run(CLIENT % call, team.target, team.way).startswith("end\n")
    assert ended.wait(20)


SERVER = """
import concurrent.futures, os, signal, sys, threading, time
import grpc, fast_grpc, penstock.grpc
module = penstock.grpc if sys.argv[1] == "fast" else grpc

def chat(requests, context):
    for request in requests:
        yield request

server = module.server(concurrent.futures.ThreadPoolExecutor(60), [
    fast_grpc.Handlers({
        "echo": lambda request, context: request,
        "die": lambda request, context: os.kill(os.getpid(), signal.SIGKILL),
        "chat": grpc.stream_stream_rpc_method_handler(chat)})])
print("127.0.0.1:%d" % server.add_insecure_port("127.0.0.1:0"), flush=True)
server.start()
sys.stdin.read()
"""


@contextlib.contextmanager
def serving(team):
    """Runs a server in its own process, and yields the process and a channel."""
    with subprocess.Popen(
            [sys.executable, "-B", "-c", SERVER, team.way], text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env=ENVIRONMENT) as server:
        team.target = server.stdout.readline().strip()
        yield server, team.connect()


def test_a_server_dies_with_streams_under_way(team):
    go = threading.Event()

    def requests():
        yield b"x"
        go.wait(60)

    with serving(team) as (server, channel):
        chat = channel.stream_stream("/test/chat")
        calls = [chat(requests()) for _ in range(50)]
        try:
            for call in calls:
                assert next(call) == b"x"
            future = channel.unary_unary("/test/die").future(b"x")
            assert future.code() is grpc.StatusCode.UNAVAILABLE
            for call in calls:
                assert caught(next, call).code() is grpc.StatusCode.UNAVAILABLE
            server.wait(timeout=30)
        finally:
            go.set()
        assert caught(channel.unary_unary("/test/echo"), b"").code() is \
            grpc.StatusCode.UNAVAILABLE
        if team.way == "fast":
            assert channel.describe()[1] == "grpcio"


def test_500_streams_at_once(team):
    def chat(requests, context):
        yield from requests

    class Turns:
        """An iterator of requests that the test gives one by one."""

        def __init__(self):
            self._given = threading.Semaphore(0)
            self._left = 3

        def give(self):
            self._given.release()

        def __iter__(self):
            return self

        def __next__(self):
            assert self._given.acquire(timeout=60)
            self._left -= 1
            if self._left < 0:
                raise StopIteration()
            return b"%d" % self._left

    method = team.start(workers=510, chat=grpc.stream_stream_rpc_method_handler(
        chat)).stream_stream("/test/chat")
    turns = [Turns() for _ in range(500)]
    calls = [method(one) for one in turns]
    for expected in (b"2", b"1", b"0"):
        for one in turns:
            one.give()
        assert {next(call) for call in calls} == {expected}
    for one in turns:
        one.give()
    assert all(list(call) == [] for call in calls)
    assert {call.code() for call in calls} == {grpc.StatusCode.OK}


def test_event_loops_in_two_threads_next_to_blocking_calls(team):
    def count(request, context):
        yield from (b"1", b"2")

    channel = team.start(count=grpc.unary_stream_rpc_method_handler(count))
    barrier = threading.Barrier(3, timeout=30)

    async def calls():
        async with team.module.aio.insecure_channel(team.target) as own:
            for _ in range(20):
                assert await own.unary_unary("/test/echo")(b"x") == b"x"
                call = own.unary_stream("/test/count")(b"")
                assert [response async for response in call] == [b"1", b"2"]

    def run_loop():
        barrier.wait()
        asyncio.run(calls())

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        loops = [pool.submit(run_loop) for _ in range(2)]
        barrier.wait()
        for _ in range(200):
            assert channel.unary_unary("/test/echo")(b"y") == b"y"
            assert list(channel.unary_stream("/test/count")(b"")) == [b"1",
                                                                     b"2"]
        for loop in loops:
            loop.result(60)


GEVENT = """
import sys
%s
import gevent
import grpc.experimental.gevent
grpc.experimental.gevent.init_gevent()
import concurrent.futures
import fast_grpc, penstock.grpc

def count(request, context):
    yield from (b"1", b"2")

server = penstock.grpc.server(concurrent.futures.ThreadPoolExecutor(4), [
    fast_grpc.Handlers({"echo": lambda request, context: request,
                        "count": grpc.unary_stream_rpc_method_handler(count)})])
port = server.add_insecure_port("127.0.0.1:0")
server.start()
target = sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:%%d" %% port
channel = penstock.grpc.insecure_channel(target)

def work():
    for _ in range(10):
        assert channel.unary_unary("/test/echo")(b"x", timeout=30) == b"x"
        assert list(channel.unary_stream("/test/count")(b"")) == [b"1", b"2"]
    return True

jobs = [gevent.spawn(work) for _ in range(10)]
gevent.joinall(jobs, timeout=40)
assert all(job.value for job in jobs), jobs
print(*penstock.grpc.describe_paths())
server.stop(None)
"""


@pytest.mark.parametrize("patch", [
    "from gevent import monkey; monkey.patch_all()", ""])
def test_gevent(patch):
    pytest.importorskip("gevent", reason="no gevent here: pip install gevent")

    def count(request, context):
        yield from (b"1", b"2")

    handlers = [fast_grpc.Handlers({
        "echo": lambda request, context: request,
        "count": grpc.unary_stream_rpc_method_handler(count)})]
    # A server of this process, because greenlets cannot serve themselves in
    # threads that are not patched.
    with fast_grpc.serving(penstock.grpc, handlers) as target:
        said = run(GEVENT % patch, target)
    assert "grpcio: the process uses gevent" in said


if __name__ == "__main__":
    run_pytest.main(__file__)
