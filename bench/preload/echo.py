"""A gRPC echo server and client in Python, without Penstock. Messages are raw
bytes. Counterpart of echo_main.cc.

usage: echo.py sync|aio server, or echo.py sync|aio client ADDRESS SIZE CALLS
"""

import asyncio
import concurrent.futures
import sys
import time

import grpc

METHOD = "/penstock.bench.preload.Echo/Call"
UNLIMITED = [("grpc.max_receive_message_length", -1)]


class Sync(grpc.GenericRpcHandler):

    def service(self, call):
        return grpc.unary_unary_rpc_method_handler(lambda data, _: data)


class Aio(grpc.GenericRpcHandler):

    def service(self, call):
        async def echo(data, _):
            return data
        return grpc.unary_unary_rpc_method_handler(echo)


def serve():
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(1),
                         options=UNLIMITED)
    server.add_generic_rpc_handlers([Sync()])
    print("port", server.add_insecure_port("127.0.0.1:0"), flush=True)
    server.start()
    sys.stdin.read()
    server.stop(0).wait()


async def serve_aio():
    server = grpc.aio.server(options=UNLIMITED)
    server.add_generic_rpc_handlers([Aio()])
    print("port", server.add_insecure_port("127.0.0.1:0"), flush=True)
    await server.start()
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    await server.stop(0)


def measure(address, size, calls):
    data, times = b"x" * size, []
    with grpc.insecure_channel(address, options=UNLIMITED) as channel:
        call = channel.unary_unary(METHOD)
        for _ in range(calls // 10 + 1):
            call(data)
        for _ in range(calls):
            begin = time.perf_counter()
            answer = call(data)
            times.append(time.perf_counter() - begin)
            assert len(answer) == size
    return times


async def measure_aio(address, size, calls):
    data, times = b"x" * size, []
    async with grpc.aio.insecure_channel(address, options=UNLIMITED) as channel:
        call = channel.unary_unary(METHOD)
        for _ in range(calls // 10 + 1):
            await call(data)
        for _ in range(calls):
            begin = time.perf_counter()
            answer = await call(data)
            times.append(time.perf_counter() - begin)
            assert len(answer) == size
    return times


def main(api, role, address=None, size="0", calls="0"):
    if role == "server":
        serve() if api == "sync" else asyncio.run(serve_aio())
        return
    times = (measure(address, int(size), int(calls)) if api == "sync" else
             asyncio.run(measure_aio(address, int(size), int(calls))))
    print(*(f"{1e6 * each:.2f}" for each in times))


if __name__ == "__main__":
    main(*sys.argv[1:])
