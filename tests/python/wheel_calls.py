"""Calls a server of the same process until the calls go over shared memory, by
the blocking API and by asyncio. Prints the folders of the packages. The program
of the tests of wheels.
"""

import asyncio
import concurrent.futures
import time

import grpc
import penstock.grpc
import penstock.grpc.aio

LIMIT = 20
MESSAGES = (b"x", b"y" * 100_000)


class Echo(grpc.GenericRpcHandler):
    def service(self, handler_call_details):
        return grpc.unary_unary_rpc_method_handler(lambda request, _: request)


def until_fast():
    """Yields until calls use the data plane."""
    end = time.monotonic() + LIMIT
    while not any(line.startswith("to ") and "shm" in line
                  for line in penstock.grpc.describe_paths()):
        assert time.monotonic() < end, penstock.grpc.describe_paths()
        yield


def call():
    server = penstock.grpc.server(concurrent.futures.ThreadPoolExecutor(2),
                                  [Echo()])
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    with penstock.grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        method = channel.unary_unary("/a/b")
        for _ in until_fast():
            method(b"")
        for message in MESSAGES:
            assert method(message) == message
    server.stop(None)


async def call_by_asyncio():
    server = penstock.grpc.aio.server(
        concurrent.futures.ThreadPoolExecutor(2), [Echo()])
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with penstock.grpc.aio.insecure_channel(
            f"127.0.0.1:{port}") as channel:
        method = channel.unary_unary("/a/b")
        for _ in until_fast():
            await method(b"")
        for message in MESSAGES:
            assert await method(message) == message
    await server.stop(None)


call()
asyncio.run(call_by_asyncio())
print(penstock.__file__, grpc.__file__)
try:
    penstock.TensorClient
except ImportError as error:
    print(error)
