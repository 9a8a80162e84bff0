#!/usr/bin/env python3
"""Measures calls of Python programs: grpcio, and penstock.grpc over it.

    PYTHONPATH=PACKAGE python3 bench/python/grpc_calls.py [--aio] [--rounds=N]

PACKAGE is the folder that has the built package penstock; see python/README.md.
Compares two modules, grpcio and penstock.grpc. Each has its own server process.
One process makes all calls: in each round some calls with one module, then as
many with the other. The handler returns the request. The last row is a stream
of 50 responses of 64 KiB. Prints for each size and module the 10th percentile
and the median of all calls, and the ratios. On a busy machine, the 10th
percentile shows the calls during which no process lost its core.
"""

import argparse
import asyncio
import concurrent.futures
import statistics
import subprocess
import sys
import time

import grpc
import grpc.aio

import penstock.grpc
import penstock.grpc.aio

OPTIONS = [("grpc.max_receive_message_length", -1),
           ("grpc.max_send_message_length", -1)]
SIZES = (8, 64 << 10, 1 << 20, 16 << 20)
STREAMED = [b"s" * (64 << 10)] * 50


async def echo(request, context):
    del context
    return request


async def stream(request, context):
    del request, context
    for message in STREAMED:
        yield message


class Handlers(grpc.GenericRpcHandler):

    def __init__(self, is_aio):
        unary, streaming = (echo, stream) if is_aio else (
            lambda request, context: request,
            lambda request, context: iter(STREAMED))
        self._handlers = {
            "/bench/echo": grpc.unary_unary_rpc_method_handler(unary),
            "/bench/stream": grpc.unary_stream_rpc_method_handler(streaming)}

    def service(self, handler_call_details):
        return self._handlers.get(handler_call_details.method)


def serve(module):
    """Runs a server, until the standard input ends."""
    server = module.server(concurrent.futures.ThreadPoolExecutor(4),
                           [Handlers(False)], options=OPTIONS)
    print(server.add_insecure_port("127.0.0.1:0"), flush=True)
    server.start()
    sys.stdin.read()
    server.stop(None)


async def serve_aio(module):
    server = module.server(handlers=[Handlers(True)], options=OPTIONS)
    print(server.add_insecure_port("127.0.0.1:0"), flush=True)
    await server.start()
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    await server.stop(None)


class Way:
    """A channel of grpc, penstock.grpc, or the aio module of one of them."""

    def __init__(self, module, port, is_aio):
        self._is_aio = is_aio
        self._channel = channel = module.insecure_channel(
            f"127.0.0.1:{port}", OPTIONS)
        self._echo = channel.unary_unary("/bench/echo")
        self._stream = channel.unary_stream("/bench/stream")

    async def call(self, message):
        """Makes a call, or a stream without a message. Returns the bytes that
        came."""
        if message is None:
            call = self._stream(b"")
            return sum([len(each) async for each in call] if self._is_aio else
                       map(len, call))
        answer = self._echo(message)
        return len(await answer if self._is_aio else answer)

    async def times_of(self, message, count):
        """Returns the times of calls in microseconds."""
        times = []
        for _ in range(count):
            begin = time.perf_counter()
            got = await self.call(message)
            times.append((time.perf_counter() - begin) * 1e6)
            assert got == (sum(map(len, STREAMED)) if message is None else
                           len(message))
        return times


async def await_fast_way(way):
    end = time.monotonic() + 20
    while not any(": grpcio" not in line and line.startswith("to ")
                  for line in penstock.grpc.describe_paths()):
        if time.monotonic() > end:
            sys.exit(f"no data plane: {penstock.grpc.describe_paths()}")
        await way.call(b"")


async def measure(ways, rounds):
    await await_fast_way(ways[1])
    print(f"grpcio {grpc.__version__}, Python {sys.version.split()[0]}, "
          f"{rounds} rounds", *penstock.grpc.describe_paths())
    print("           grpcio us       penstock us     times faster\n"
          "bytes         p10     p50     p10     p50    p10    p50")
    for size in (*SIZES, None):
        message = size and b"x" * size
        count = max(2, min(30, (8 << 20) // (size or 4 << 20)))
        times = [await way.times_of(message, 1) and [] for way in ways]
        for _ in range(rounds):
            for way, found in zip(ways, times):
                found += await way.times_of(message, count)
        p10s = [statistics.quantiles(found, n=10)[0] for found in times]
        p50s = [statistics.median(found) for found in times]
        print(f"{size or 'stream':<10} {p10s[0]:6.0f}  {p50s[0]:6.0f}  "
              f"{p10s[1]:6.0f}  {p50s[1]:6.0f}  {p10s[0] / p10s[1]:5.1f}  "
              f"{p50s[0] / p50s[1]:5.1f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--aio", action="store_true",
                        help="measures grpc.aio on both sides")
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--serve", type=int, help=argparse.SUPPRESS)
    flags = parser.parse_args()
    modules = ((grpc.aio, penstock.grpc.aio) if flags.aio else
               (grpc, penstock.grpc))
    if flags.serve is not None:
        module = modules[flags.serve]
        return asyncio.run(serve_aio(module)) if flags.aio else serve(module)
    servers = [subprocess.Popen(
        [sys.executable, __file__, *sys.argv[1:], f"--serve={index}"], text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE) for index in range(2)]
    ports = [int(server.stdout.readline()) for server in servers]

    async def run():
        await measure([Way(module, port, flags.aio)
                       for module, port in zip(modules, ports)], flags.rounds)

    asyncio.run(run())
    for server in servers:
        server.stdin.close()
        server.wait()


if __name__ == "__main__":
    main()
