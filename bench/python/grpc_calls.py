#!/usr/bin/env python3
"""Measures unary calls of Python programs: grpcio, and penstock.grpc over it.

    PYTHONPATH=PACKAGE python3 bench/python/grpc_calls.py [--rounds=N]

PACKAGE is the folder that has the built package penstock; see python/README.md.
One process serves both ways, and one calls: in each round some calls over one
way, then as many over the other. The handler returns the request. Prints for
each size and way the 10th percentile and the median of all calls, and the
ratios. On a machine with other work, the 10th percentile has the calls during
which no process lost its core.
"""

import argparse
import concurrent.futures
import statistics
import subprocess
import sys
import time

import grpc

import penstock.grpc

OPTIONS = [("grpc.max_receive_message_length", -1),
           ("grpc.max_send_message_length", -1)]
METHOD = "/bench/echo"
SIZES = (8, 64 << 10, 1 << 20, 16 << 20)


class Echo(grpc.GenericRpcHandler):

    def service(self, handler_call_details):
        if handler_call_details.method != METHOD:
            return None
        return grpc.unary_unary_rpc_method_handler(
            lambda request, context: request)


def serve():
    """Runs a server of each way, until the standard input ends."""
    servers = []
    for module in (grpc, penstock.grpc):
        server = module.server(concurrent.futures.ThreadPoolExecutor(4),
                               [Echo()], options=OPTIONS)
        print(server.add_insecure_port("127.0.0.1:0"), flush=True)
        server.start()
        servers.append(server)
    sys.stdin.read()
    for server in servers:
        server.stop(None)


def times_of_calls(call, message, count):
    """Returns the times of calls in microseconds."""
    times = []
    for _ in range(count):
        begin = time.perf_counter()
        answer = call(message)
        times.append((time.perf_counter() - begin) * 1e6)
        assert len(answer) == len(message)
    return times


def await_fast_way(channel, call):
    end = time.monotonic() + 20
    while channel.describe()[1] == "grpcio":
        if time.monotonic() > end:
            sys.exit(f"no fast way: {channel.describe()}")
        call(b"")


def measure(ports, rounds):
    stock = grpc.insecure_channel(f"127.0.0.1:{ports[0]}", OPTIONS)
    fast = penstock.grpc.insecure_channel(f"127.0.0.1:{ports[1]}", OPTIONS)
    calls = [channel.unary_unary(METHOD) for channel in (stock, fast)]
    await_fast_way(fast, calls[1])
    print(f"grpcio {grpc.__version__}, {fast.describe()[1]}, Python "
          f"{sys.version.split()[0]}, {rounds} rounds")
    print("           grpcio us       penstock us     times faster\n"
          "bytes         p10     p50     p10     p50    p10    p50")
    for size in SIZES:
        message = b"x" * size
        count = max(2, min(30, (8 << 20) // size))
        times = [[], []]
        for call in calls:
            call(message)  # warms up
        for _ in range(rounds):
            for call, found in zip(calls, times):
                found += times_of_calls(call, message, count)
        p10s = [statistics.quantiles(found, n=10)[0] for found in times]
        p50s = [statistics.median(found) for found in times]
        print(f"{size:<10} {p10s[0]:6.0f}  {p50s[0]:6.0f}  {p10s[1]:6.0f}  "
              f"{p50s[1]:6.0f}  {p10s[0] / p10s[1]:5.1f}  "
              f"{p50s[0] / p50s[1]:5.1f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    flags = parser.parse_args()
    if flags.serve:
        return serve()
    with subprocess.Popen([sys.executable, __file__, "--serve"], text=True,
                          stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as server:
        ports = [int(server.stdout.readline()) for _ in range(2)]
        measure(ports, flags.rounds)
        server.stdin.close()


if __name__ == "__main__":
    main()
