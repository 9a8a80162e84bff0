"""Servers and clients of penstock.grpc, for its tests."""

import asyncio
import concurrent.futures
import contextlib
import time

import grpc
import pytest

import penstock.grpc


class Handlers(grpc.GenericRpcHandler):
    """Serves a dictionary of methods' names and handlers. A function is a
    handler of unary calls."""

    def __init__(self, functions):
        self._handlers = {
            "/test/" + name: grpc.unary_unary_rpc_method_handler(function)
            if callable(function) else function
            for name, function in functions.items()}

    def service(self, handler_call_details):
        return self._handlers.get(handler_call_details.method)


@contextlib.contextmanager
def serving(module, handlers, workers=4, interceptors=None, options=None):
    """Runs a server of `module`, grpc or penstock.grpc. Yields its address."""
    pool = concurrent.futures.ThreadPoolExecutor(workers)
    server = module.server(pool, handlers, interceptors=interceptors,
                           options=options)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        server.stop(None)
        pool.shutdown()


def path_of(target):
    """Returns the line of describe_paths() for a channel."""
    (line,) = (line for line in penstock.grpc.describe_paths()
               if line.startswith(f"to {target}: "))
    return line


def until_fast(channel, call=lambda: None, limit=20):
    """Makes calls until calls of the channel use the data plane."""
    end = time.monotonic() + limit
    while not channel._way.look():  # pylint: disable=protected-access
        assert time.monotonic() < end, channel.describe()
        call()
        time.sleep(0.001)


async def until_fast_aio(channel, limit=20):
    """Waits until calls of a grpc.aio channel use the data plane."""
    end = time.monotonic() + limit
    core = channel._channel  # pylint: disable=protected-access
    while not core.way.look():
        assert time.monotonic() < end, core.describe()
        await asyncio.sleep(0.001)


class Team:
    """A server and a channel, over grpcio or over the data plane."""

    def __init__(self, way, stack):
        self.way = way
        self.module = penstock.grpc if way == "fast" else grpc
        self._stack = stack

    def start(self, options=None, interceptors=None, workers=4, **functions):
        functions.setdefault("echo", lambda request, context: request)
        self.target = self._stack.enter_context(serving(
            self.module, [Handlers(functions)], workers=workers,
            interceptors=interceptors, options=options))
        return self.connect(options)

    def connect(self, options=None):
        channel = self._stack.enter_context(
            self.module.insecure_channel(self.target, options))
        if self.way == "fast":
            until_fast(channel)
        return channel


@pytest.fixture(params=("grpcio", "fast"), name="team")
def make_team(request):
    with contextlib.ExitStack() as stack:
        yield Team(request.param, stack)


def caught(function, *args, **kwargs):
    with pytest.raises(grpc.RpcError) as error:
        function(*args, **kwargs)
    return error.value
