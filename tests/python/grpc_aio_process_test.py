#!/usr/bin/python3 -B
"""Tests processes of penstock.grpc.aio: forks, servers that die, and exits with
calls under way."""

import asyncio
import contextlib
import gc
import os
import signal
import subprocess
import sys
import time
import weakref

import run_pytest

import grpc
import grpc.aio
import pytest

import fast_grpc
import penstock.grpc.aio

FOLDER = os.path.dirname(os.path.abspath(__file__))
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(
    [run_pytest.PACKAGES, FOLDER])}

SERVER = """
import asyncio, sys
import grpc, fast_grpc, penstock.grpc.aio

async def echo(request, context):
    return request

async def wait(request, context):
    await asyncio.sleep(60)

async def repeat(requests, context):
    async for request in requests:
        yield request

async def main():
    server = penstock.grpc.aio.server(handlers=[fast_grpc.Handlers({
        "echo": grpc.unary_unary_rpc_method_handler(echo),
        "wait": grpc.unary_unary_rpc_method_handler(wait),
        "repeat": grpc.stream_stream_rpc_method_handler(repeat)})])
    port = server.add_insecure_port("127.0.0.1:" + sys.argv[1])
    await server.start()
    print(port, flush=True)
    await server.wait_for_termination()

asyncio.run(main())
"""


@contextlib.contextmanager
def served(port=0):
    """Runs a server in its own process. Yields the process and the server's
    address."""
    with subprocess.Popen([sys.executable, "-B", "-c", SERVER, str(port)],
                          stdout=subprocess.PIPE, text=True,
                          env=ENVIRONMENT) as process:
        try:
            yield process, f"127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.kill()


FORK = """
import asyncio, os, signal, sys
import fast_grpc, penstock.grpc.aio

async def call():
    async with penstock.grpc.aio.insecure_channel(sys.argv[1]) as channel:
        await fast_grpc.until_fast_aio(channel)
        assert await channel.unary_unary("/test/echo")(b"x") == b"x"
        stream = channel.stream_stream("/test/repeat")()
        await stream.write(b"y")
        assert await stream.read() == b"y"
        stream.cancel()
        assert channel._channel.describe()[1] != "grpcio"

if sys.argv[2] == "after":
    asyncio.run(call())
child = os.fork()
if not child:
    signal.alarm(60)
    asyncio.run(call())
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
asyncio.run(call())
print("end")
"""


@pytest.mark.parametrize("when", ("before", "after"))
def test_a_forked_child_makes_its_own_channel(when):
    """Tests a child that is forked before or after its parent's first call."""
    with served() as (_, target):
        ended = subprocess.run(
            [sys.executable, "-B", "-c", FORK, target, when], text=True,
            timeout=120, capture_output=True, env=ENVIRONMENT)
    assert (ended.returncode, ended.stdout) == (0, "end\n"), ended.stderr


OLD_CHANNEL = """
import asyncio, os, sys
import fast_grpc, penstock.grpc.aio

async def main():
    channel = penstock.grpc.aio.insecure_channel(sys.argv[1])
    await fast_grpc.until_fast_aio(channel)
    child = os.fork()
    if not child:
        os._exit(0 if channel._channel.describe()[1:] == (
            "grpcio", "", "the process was forked") else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert await channel.unary_unary("/test/echo")(b"x") == b"x"
    assert channel._channel.describe()[1] != "grpcio"
    await channel.close()

asyncio.run(main())
print("end")
"""


def test_a_forked_child_leaves_its_parents_channel_alone():
    with served() as (_, target):
        ended = subprocess.run(
            [sys.executable, "-B", "-c", OLD_CHANNEL, target], text=True,
            timeout=120, capture_output=True, env=ENVIRONMENT)
    assert (ended.returncode, ended.stdout) == (0, "end\n"), ended.stderr


def test_a_closed_channel_needs_no_collection():
    """Tests that grpcio's threads end with the last channel, which a fork
    requires."""
    async def scene(target):
        async with penstock.grpc.aio.insecure_channel(target) as channel:
            await fast_grpc.until_fast_aio(channel)
            assert await channel.unary_unary("/test/echo")(b"x") == b"x"
            call = channel.stream_stream("/test/repeat")(iter([b"x", b"y"]))
            assert [one async for one in call] == [b"x", b"y"]
            return weakref.ref(channel._channel)

    with served() as (_, target):
        gc.collect()
        gc.disable()
        try:
            reference = asyncio.run(scene(target))
            # Waits, because another thread may still be in the call's last
            # report.
            deadline = time.monotonic() + 5
            while reference() is not None and time.monotonic() < deadline:
                time.sleep(0.01)
            assert reference() is None
        finally:
            gc.enable()


def test_a_server_that_dies_ends_its_calls():
    """Tests that a channel finds the server that replaces a dead one."""
    async def ended(awaitable):
        with pytest.raises(grpc.aio.AioRpcError) as error:
            await asyncio.wait_for(awaitable, 20)
        return error.value.code()

    async def scene():
        with contextlib.ExitStack() as stack:
            process, target = stack.enter_context(served())
            async with penstock.grpc.aio.insecure_channel(target) as channel:
                await fast_grpc.until_fast_aio(channel)
                waiting = channel.unary_unary("/test/wait")(b"")
                streams = [channel.stream_stream("/test/repeat")()
                           for _ in range(50)]
                for stream in streams:
                    await stream.write(b"x")
                    assert await stream.read() == b"x"
                process.send_signal(signal.SIGKILL)
                process.wait()
                codes = await asyncio.gather(
                    ended(waiting), *(ended(one.read()) for one in streams))
                assert set(codes) == {grpc.StatusCode.UNAVAILABLE}
                stack.enter_context(served(target.rpartition(":")[2]))
                assert await channel.unary_unary("/test/echo")(
                    b"x", wait_for_ready=True, timeout=30) == b"x"
                await fast_grpc.until_fast_aio(channel)
                assert await channel.unary_unary("/test/echo")(b"y") == b"y"

    asyncio.run(asyncio.wait_for(scene(), 100))


EXIT = """
import asyncio, sys
import fast_grpc, penstock.grpc.aio

async def main():
    channel = penstock.grpc.aio.insecure_channel(sys.argv[1])
    await fast_grpc.until_fast_aio(channel)
    calls = [channel.unary_unary("/test/wait")(b"x" * 1000000)]
    stream = channel.stream_stream("/test/repeat")()
    await stream.write(b"x")
    assert await stream.read() == b"x"
    calls.append(stream)
    print("end", flush=True)
    %s

asyncio.run(main())
"""


@pytest.mark.parametrize("rest", ("return", "sys.exit(0)",
                                  "await channel.close()"))
def test_a_process_ends_with_calls_under_way(rest):
    with served() as (_, target):
        begin = time.monotonic()
        ended = subprocess.run(
            [sys.executable, "-B", "-c", EXIT % rest, target], text=True,
            timeout=50, capture_output=True, env=ENVIRONMENT)
        assert time.monotonic() - begin < 40
    assert (ended.returncode, ended.stdout) == (0, "end\n"), ended.stderr


if __name__ == "__main__":
    run_pytest.main(__file__)
