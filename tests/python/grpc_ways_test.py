#!/usr/bin/python3 -B
"""Tests which way the calls of penstock.grpc take: with stock peers,
identities, restarted servers, forks and exits."""

import concurrent.futures
import contextlib
import importlib
import itertools
import os
import socket
import subprocess
import sys
import threading
import time

import run_pytest

import grpc
import pytest

import fast_grpc
import penstock.grpc
from fast_grpc import caught


def echo_server(module, **kwargs):
    return fast_grpc.serving(module, [fast_grpc.Handlers(
        {"echo": lambda request, context: request})], **kwargs)


def test_a_stock_server_is_called_over_grpcio():
    with echo_server(grpc) as target:
        with penstock.grpc.insecure_channel(target) as channel:
            echo = channel.unary_unary("/test/echo")
            assert echo(b"x") == b"x"
            end = time.monotonic() + 20
            while "no data plane" not in fast_grpc.path_of(target):
                assert time.monotonic() < end
            assert echo(b"x") == b"x"


def test_a_stock_client_is_served_over_grpcio():
    with echo_server(penstock.grpc) as target:
        with grpc.insecure_channel(target) as channel:
            assert channel.unary_unary("/test/echo")(b"x") == b"x"


@pytest.mark.parametrize("make, reason", [
    (lambda target: penstock.grpc.insecure_channel(
        target, [("grpc.lb_policy_name", "round_robin")]), "lb_policy_name"),
    (lambda target: penstock.grpc.insecure_channel(
        target, compression=grpc.Compression.Gzip), "compresses"),
    (lambda target: penstock.grpc.secure_channel(
        target, grpc.local_channel_credentials()), "TLS alone"),
])
def test_some_channels_stay_with_grpcio(make, reason):
    with echo_server(penstock.grpc) as target:
        with make(target) as channel:
            assert reason in fast_grpc.path_of(target)
            if "TLS" not in reason:
                assert channel.unary_unary("/test/echo")(b"x") == b"x"


def test_an_identity_is_not_exchanged_for_a_token():
    pool = concurrent.futures.ThreadPoolExecutor(2)
    server = penstock.grpc.server(pool, [fast_grpc.Handlers({})])
    server.add_insecure_port("127.0.0.1:0")
    port = server.add_secure_port("127.0.0.1:0",
                                  grpc.local_server_credentials())
    server.start()
    with grpc.secure_channel(f"127.0.0.1:{port}",
                             grpc.local_channel_credentials()) as channel:
        error = caught(channel.unary_unary("/penstock.Rpc/Offer"), b"")
        assert error.code() is grpc.StatusCode.FAILED_PRECONDITION
    server.stop(None)


def test_a_limit_counts_the_calls_over_both_ways():
    begun, go = threading.Semaphore(0), threading.Event()

    def wait(request, context):
        begun.release()
        go.wait(20)
        return request

    def stream(request, context):
        yield wait(request, context)

    server = penstock.grpc.server(
        concurrent.futures.ThreadPoolExecutor(8),
        [fast_grpc.Handlers({"wait": wait, "echo": lambda request, context: request,
                             "stream": grpc.unary_stream_rpc_method_handler(
                                 stream)})], maximum_concurrent_rpcs=3)
    target = "127.0.0.1:%d" % server.add_insecure_port("127.0.0.1:0")
    server.start()
    with penstock.grpc.insecure_channel(target) as channel, \
            grpc.insecure_channel(target) as stock:
        fast_grpc.until_fast(channel)
        ways = (channel.unary_unary("/test/wait"), stock.unary_unary("/test/wait"))
        calls = [way.future(b"x") for way in ways]
        calls.append(channel.unary_stream("/test/stream")(b"x"))
        for _ in calls:
            assert begun.acquire(timeout=20)
        for way in ways:
            error = caught(way, b"y")
            assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
            assert error.details() == "Concurrent RPC limit exceeded!"
        go.set()
        assert [calls[0].result(), calls[1].result(), *calls[2]] == [b"x"] * 3
        # Expects that each call gives its place back soon after its answer.
        echo = channel.unary_unary("/test/echo")
        end = time.monotonic() + 20
        while server._real._state.active_rpc_count:
            assert time.monotonic() < end
            time.sleep(0.001)
        for _ in range(20):
            calls = [echo.future(b"%d" % number) for number in range(3)]
            answers = [call.result() for call in calls if not call.exception()]
            assert answers
        assert channel.describe()[1] != "grpcio"
    server.stop(None)


def test_the_question_takes_no_place():
    """Tests a limit of no calls, with which all calls are refused."""
    server = penstock.grpc.server(
        concurrent.futures.ThreadPoolExecutor(2), [fast_grpc.Handlers({})],
        maximum_concurrent_rpcs=1)
    target = "127.0.0.1:%d" % server.add_insecure_port("127.0.0.1:0")
    server.start()
    with grpc.insecure_channel(target) as stock:
        offer = stock.unary_unary("/penstock.Rpc/Offer")
        for _ in range(20):
            assert len([call.result() for call in
                        [offer.future(b"") for _ in range(10)]]) == 10
        assert server._real._state.active_rpc_count == 0
    server.stop(None)


def test_a_unary_call_of_a_streaming_handler_goes_over_grpcio():
    streams = fast_grpc.Handlers({"any": grpc.stream_stream_rpc_method_handler(
        lambda requests, context: requests)})
    with fast_grpc.serving(penstock.grpc, [streams]) as target:
        with penstock.grpc.insecure_channel(target) as channel:
            fast_grpc.until_fast(channel)
            call = channel.unary_unary("/test/any")
            assert call(b"x") == b"x"
            assert call.future(b"x").result() == b"x"


def test_a_server_that_comes_back_is_found_again():
    pool = concurrent.futures.ThreadPoolExecutor(2)

    def start(port):
        server = penstock.grpc.server(pool, [fast_grpc.Handlers(
            {"echo": lambda request, context: request})])
        port = server.add_insecure_port(f"127.0.0.1:{port}")
        server.start()
        return server, port

    server, port = start(0)
    with penstock.grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        echo = channel.unary_unary("/test/echo")
        fast_grpc.until_fast(channel)
        assert echo(b"x") == b"x"
        server.stop(None).wait()
        server, _ = start(port)
        fast_grpc.until_fast(
            channel, lambda: echo(b"y", wait_for_ready=True, timeout=20))
        assert echo(b"z") == b"z"
    server.stop(None)


@contextlib.contextmanager
def offering(address, host):
    """Runs a grpcio server whose offer has the address and the identity of
    another host. Yields its address, and a socket that listens at the offer's
    port."""
    trap = socket.create_server(("127.0.0.1", 0))
    offer = penstock.grpc._wire.encode_offer(penstock.grpc._wire.Offer(
        trap.getsockname()[1], b"secret", address, host))

    class Offers(grpc.GenericRpcHandler):

        def service(self, handler_call_details):
            if handler_call_details.method != "/penstock.Rpc/Offer":
                return None
            return grpc.unary_unary_rpc_method_handler(
                lambda request, context: offer)

    echo = fast_grpc.Handlers({"echo": lambda request, context: request})
    with trap, fast_grpc.serving(grpc, [Offers(), echo]) as target:
        yield target, trap


OWN_HOST = penstock.grpc._rules.host_identity()


@pytest.mark.parametrize("hosts, address, host, is_called", [
    # An offer that came through a forwarded port from another host.
    ("", "127.0.0.1", b"another host", False),
    ("", "0.0.0.0", b"another host", False),
    ("", "0.0.0.0", b"", False),
    ("", "192.0.2.1", OWN_HOST, False),
    ("1", "127.0.0.1", b"another host", False),
    ("1", "0.0.0.0", b"another host", True),
    ("", "127.0.0.1", OWN_HOST, True),
    ("", "0.0.0.0", OWN_HOST, True),
])
def test_the_token_stays_on_the_host(monkeypatch, hosts, address, host,
                                     is_called):
    monkeypatch.setenv("PENSTOCK_GRPC_HOSTS", hosts)
    with offering(address, host) as (target, trap):
        with penstock.grpc.insecure_channel(target) as channel:
            echo = channel.unary_unary("/test/echo")
            assert echo(b"x") == b"x"
            if is_called:
                trap.settimeout(20)
                trap.accept()[0].close()
                return
            end = time.monotonic() + 20
            while "host" not in channel.describe()[3]:
                assert time.monotonic() < end, channel.describe()
            assert echo(b"x") == b"x"
        trap.setblocking(False)
        with pytest.raises(BlockingIOError):
            trap.accept()


def test_a_server_at_all_addresses_has_its_data_plane_at_loopback():
    pool = concurrent.futures.ThreadPoolExecutor(2)
    server = penstock.grpc.server(pool, [fast_grpc.Handlers(
        {"echo": lambda request, context: request})])
    port = server.add_insecure_port("0.0.0.0:0")
    server.start()
    with grpc.insecure_channel(f"127.0.0.1:{port}") as stock:
        offer = penstock.grpc._wire.decode_offer(
            stock.unary_unary("/penstock.Rpc/Offer")(b""))
    assert offer.address == "127.0.0.1"
    with pytest.raises(ConnectionRefusedError):  # at another of its addresses
        socket.create_connection(("127.0.0.2", offer.port)).close()
    with penstock.grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        fast_grpc.until_fast(channel)
        assert channel.unary_unary("/test/echo")(b"x") == b"x"
    server.stop(None)


def test_a_server_that_stops_declines_to_its_successor():
    started, go = threading.Event(), threading.Event()
    noted = threading.Semaphore(0)

    def wait(requests, context):
        started.set()
        go.wait(20)
        yield b"old"

    def each(requests, context):
        for request in requests:
            yield request

    def start(port):
        server = penstock.grpc.server(
            concurrent.futures.ThreadPoolExecutor(4), [fast_grpc.Handlers({
                "echo": lambda request, context: request,
                "note": lambda request, context: noted.release() or b"",
                "note_all": grpc.stream_unary_rpc_method_handler(
                    lambda requests, context: noted.release() or b""),
                "wait": grpc.stream_stream_rpc_method_handler(wait),
                "count": grpc.unary_stream_rpc_method_handler(
                    lambda request, context: iter([b"1", b"2"])),
                "join": grpc.stream_unary_rpc_method_handler(
                    lambda requests, context: b"".join(requests)),
                "each": grpc.stream_stream_rpc_method_handler(each)})])
        port = server.add_insecure_port(f"127.0.0.1:{port}")
        server.start()
        return server, port

    old, port = start(0)
    channels = [penstock.grpc.insecure_channel(f"127.0.0.1:{port}")
                for _ in range(7)]
    for channel in channels:
        fast_grpc.until_fast(channel)
    call = channels[0].stream_stream("/test/wait")(iter([]))
    assert started.wait(20)
    stopped = old.stop(30)
    new, _ = start(port)
    many = [b"%d" % index for index in range(100)]
    turns = threading.Semaphore(1)

    def in_turn():
        for request in many:
            assert turns.acquire(timeout=20)
            yield request

    def responses(call):
        for response in call:
            yield response
            turns.release()

    # Makes the server decline the first call of each channel.
    ready = {"wait_for_ready": True, "timeout": 20}
    # Expects that calls begin again even if the program does not ask for their
    # results.
    futures = [channels[5].unary_unary("/test/note").future(b"", **ready),
               channels[6].stream_unary("/test/note_all").future(iter([]),
                                                                 **ready)]
    assert all(noted.acquire(timeout=15) for _ in futures)
    assert list(channels[0].unary_stream("/test/count")(b"", **ready)) == [
        b"1", b"2"]
    joined, answer = channels[1].stream_unary("/test/join").with_call(
        iter(many), **ready)
    assert joined == b"".join(many)
    assert answer.code() is grpc.StatusCode.OK and answer.done()
    done = threading.Event()
    future = channels[2].stream_unary("/test/join").future(iter(many), **ready)
    future.add_done_callback(lambda ended: done.set())
    assert future.result(20) == joined and done.wait(20)
    assert list(channels[3].stream_stream("/test/each")(
        iter(many), **ready)) == many
    assert list(responses(channels[4].stream_stream("/test/each")(
        in_turn(), **ready))) == many
    for channel in channels:
        assert channel.unary_unary("/test/echo")(b"x", **ready) == b"x"
    go.set()  # the open call of the old server ends well
    assert list(call) == [b"old"]
    assert stopped.wait(20)
    for channel in channels:
        channel.close()
    new.stop(None)


@pytest.mark.parametrize("method, head", [
    (b"/test/\xff", b"\x01"),      # not UTF-8
    (b"/test/echo", b""),          # no version
    (b"/test/echo", b"\x02"),      # another version
    (b"/test/echo", b"\x01\xff"),  # cut
    (b"/test/echo", b"\x01\x01\x00\x01\x00\x00\x00\xffx"),  # a bad key
])
def test_a_hostile_client_ends_its_own_call_only(method, head):
    with echo_server(penstock.grpc) as target:
        with grpc.insecure_channel(target) as stock:
            port, token, *_ = penstock.grpc._wire.decode_offer(
                stock.unary_unary("/penstock.Rpc/Offer")(b""))
        client = penstock._rpc.Client(f"127.0.0.1:{port}", token, -1)
        code, _, answer, _ = client.call(method, head, b"", 20.0)
        assert code == 0
        assert penstock.grpc._wire.decode_response(answer).code == 13
        stream = client.open(method, head, 20.0, False)
        assert stream.wait(20.0)
        code, _, answer = stream.outcome()
        assert penstock.grpc._wire.decode_response(answer).code == 13
        code, _, answer, message = client.call("/test/echo", b"\x01", b"x", 20.0)
        assert (code, message) == (0, b"x")
        client.close()


def test_a_stranger_without_the_token_is_refused():
    with echo_server(penstock.grpc) as target:
        with grpc.insecure_channel(target) as stock:
            port, token, *_ = penstock.grpc._wire.decode_offer(
                stock.unary_unary("/penstock.Rpc/Offer")(b""))
        client = penstock._rpc.Client(f"127.0.0.1:{port}", token[::-1], -1)
        code, message, _, _ = client.call("/test/echo", b"\x01", b"x", 20.0)
        assert code == 14 and b"token" in message
        assert client.is_over() and not client.is_ready()


def test_calls_leave_no_callbacks_behind():
    def handler(request, context):
        context.is_active()
        context.add_callback(lambda: None)
        return request

    with fast_grpc.serving(penstock.grpc, [fast_grpc.Handlers({
            "unary": handler,
            "stream": grpc.unary_stream_rpc_method_handler(
                lambda request, context: iter([handler(request, context)])),
            "endless": grpc.unary_stream_rpc_method_handler(
                lambda request, context: itertools.repeat(request)),
    })]) as target:
        with penstock.grpc.insecure_channel(target) as channel:
            fast_grpc.until_fast(channel)
            for _ in range(10):
                assert channel.unary_unary("/test/unary")(b"x") == b"x"
                assert list(channel.unary_stream("/test/stream")(b"x")) == [
                    b"x"]
            end = time.monotonic() + 20
            for _ in range(10):  # the handler notices that nobody reads
                call = channel.unary_stream("/test/endless")(b"x")
                next(call)
                call.cancel()
            while any(map(len, penstock.grpc._reports._queues)) or any(
                    getattr(server._plane, "_contexts", None)
                    for server in penstock.grpc._two_ways.live):
                assert time.monotonic() < end


def test_names_of_grpcio_are_here_too():
    assert penstock.grpc.StatusCode is grpc.StatusCode
    assert "StatusCode" in dir(penstock.grpc)
    # Expects grpcio's private modules, because programs write `except
    # grpc._channel._InactiveRpcError`.
    for name in ("_channel", "_server", "_common", "experimental"):
        module = importlib.import_module("grpc." + name)
        assert getattr(penstock.grpc, name) is module
    with pytest.raises(AttributeError):
        penstock.grpc.nothing  # pylint: disable=pointless-statement


def test_the_module_links_no_grpc():
    folder = os.path.dirname(penstock.__file__)
    linked = subprocess.run(["ldd", os.path.join(folder, "_rpc.so")], text=True,
                            capture_output=True, check=True).stdout
    assert "libgrpc" not in linked and "libprotobuf" not in linked
    exported = subprocess.run(
        ["nm", "-D", "--defined-only", os.path.join(folder, "_rpc.so")],
        text=True, capture_output=True, check=True).stdout.split("\n")
    # nm shows local symbols in lower case.
    assert [line.split()[-1] for line in exported
            if line and line.split()[-2].isupper()] == ["PyInit__rpc"]


WRAPPED = """
import concurrent.futures, sys
import grpc

calls = []
own_server, own_channel = grpc.server, grpc.insecure_channel

class Counting(grpc.ServerInterceptor):
    def intercept_service(self, continuation, details):
        calls.append(details.method)
        return continuation(details)

def server(*args, **kwargs):
    kwargs["interceptors"] = [*kwargs.get("interceptors", ()), Counting()]
    return own_server(*args, **kwargs)

class CountingClient(grpc.UnaryUnaryClientInterceptor):
    def intercept_unary_unary(self, continuation, details, request):
        calls.append("client")
        return continuation(details, request)

def insecure_channel(*args, **kwargs):
    return grpc.intercept_channel(own_channel(*args, **kwargs),
                                  CountingClient())

grpc.server, grpc.insecure_channel = server, insecure_channel
import fast_grpc, penstock.grpc
handlers = [fast_grpc.Handlers({"echo": lambda request, context: request})]
with fast_grpc.serving(penstock.grpc, handlers) as target:
    with penstock.grpc.insecure_channel(target) as channel:
        assert channel.unary_unary("/test/echo")(b"x") == b"x"
        assert "wrapped" in channel.describe()[3], channel.describe()
    with own_channel(target) as stock:
        try:
            stock.unary_unary("/penstock.Rpc/Offer")(b"")
        except grpc.RpcError as error:
            assert "wrapped" in error.details()
        else:
            assert False
assert calls == ["client", "/test/echo"], calls
print("end")
"""


def test_what_other_packages_wrap_stays_with_grpcio():
    folder = os.path.dirname(os.path.abspath(__file__))
    ended = subprocess.run(
        [sys.executable, "-B", "-c", WRAPPED], text=True, timeout=60,
        capture_output=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(
            [run_pytest.PACKAGES, folder])})
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == "end\n"


UNMODIFIED = """
import concurrent.futures, sys
import grpc

class Echo(grpc.GenericRpcHandler):

    def service(self, handler_call_details):
        return grpc.unary_unary_rpc_method_handler(
            lambda request, context: request)

server = grpc.server(concurrent.futures.ThreadPoolExecutor(2), [Echo()])
port = server.add_insecure_port("127.0.0.1:0")
server.start()
channel = grpc.insecure_channel(f"127.0.0.1:{port}")
assert channel.unary_unary("/a/b")(b"x") == b"x"
print(type(channel).__module__, type(server).__module__, *sys.argv[1:])
server.stop(None)
"""


def test_an_unmodified_program(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(UNMODIFIED)
    for start in (["-m", "penstock.grpc", str(program)],
                  ["-m", "penstock.grpc", "-m", "program"]):
        ended = subprocess.run(
            [sys.executable, "-B", *start, "-v", "1"], text=True, timeout=60,
            capture_output=True, env={**os.environ, "PYTHONPATH":
                                      f"{run_pytest.PACKAGES}:{tmp_path}"})
        assert ended.returncode == 0, ended.stderr
        assert ended.stdout == \
            "penstock.grpc._fast_channel penstock.grpc._fast_server -v 1\n"


if __name__ == "__main__":
    run_pytest.main(__file__)
