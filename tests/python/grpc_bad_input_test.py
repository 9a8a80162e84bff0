#!/usr/bin/python3 -B
"""Tests penstock.grpc with peers of other releases, unusual programs, and
channels that other classes wrap. Each must behave as with grpcio, or report why
it does not."""

import contextlib
import queue
import subprocess
import sys

import run_pytest

import grpc
import pytest

import fast_grpc
import penstock._rpc
import penstock.grpc
from fast_grpc import caught, make_team  # noqa: F401  # pylint: disable=unused-import
from penstock.grpc import _rules, _wire

LIMIT = 20


class Offering(grpc.GenericRpcHandler):
    """Answers the question for the data plane with given bytes."""

    def __init__(self, offer):
        self._handler = grpc.unary_unary_rpc_method_handler(
            lambda request, context: offer)

    def service(self, handler_call_details):
        return (self._handler if handler_call_details.method ==
                _wire.OFFER_METHOD else None)


@contextlib.contextmanager
def offering(offer):
    """Yields a channel to a server of grpcio's with a made-up data plane."""
    echo = fast_grpc.Handlers({"echo": lambda request, context: request})
    with fast_grpc.serving(grpc, [Offering(offer), echo]) as target:
        with penstock.grpc.insecure_channel(target) as channel:
            yield channel


def until_reason(channel, text):
    """Calls until the channel reports why it uses grpcio."""
    echo = channel.unary_unary("/test/echo")
    for _ in range(2000):
        assert echo(b"x", timeout=LIMIT) == b"x"
        _, path, _, reason = channel.describe()
        if text in (reason or ""):
            return path
    raise AssertionError(channel.describe())


@pytest.mark.parametrize("offer", (
    b"", b"\x02", b"\x01" + bytes(40), b"\xff" * 64,
    _wire.encode_offer(_wire.Offer(1, b"t" * 16, "127.0.0.1", b"h"))[:-1]))
def test_an_offer_of_another_release(offer):
    with offering(offer) as channel:
        assert until_reason(channel, "another release") == "grpcio"


def test_a_wrong_token():
    """Uses the data plane of another server, which has another token."""
    echo = fast_grpc.Handlers({"echo": lambda request, context: request})
    with fast_grpc.serving(penstock.grpc, [echo]) as other:
        with grpc.insecure_channel(other) as stock:
            offer = _wire.decode_offer(
                stock.unary_unary(_wire.OFFER_METHOD)(b""))
        wrong = offer._replace(token=bytes(len(offer.token)))
        with offering(_wire.encode_offer(wrong)) as channel:
            assert until_reason(channel, "cannot be reached") == "grpcio"


def test_a_port_where_nobody_listens():
    offer = _wire.Offer(1, b"t" * 16, "127.0.0.1", _rules.host_identity())
    with offering(_wire.encode_offer(offer)) as channel:
        assert until_reason(channel, "cannot be reached") == "grpcio"


def test_large_metadata(team):
    """Metadata of up to 8 KiB use the data plane. Larger metadata go to grpcio,
    whose release decides if it refuses them."""
    def size(request, context):
        return str(len(dict(context.invocation_metadata())["key"])).encode()

    call = team.start(size=size).unary_unary("/test/size")
    for length in (1, 4000, 7000):
        assert call(b"", metadata=(("key", "v" * length),)) == b"%d" % length
    assert caught(call, b"", metadata=(("key", "v" * (1 << 20)),)).code() is \
        grpc.StatusCode.RESOURCE_EXHAUSTED


class Wrapping(grpc.Channel):
    """A channel of the program's, around another one."""

    def __init__(self, channel):
        self._channel = channel

    def subscribe(self, callback, try_to_connect=False):
        self._channel.subscribe(callback, try_to_connect)

    def unsubscribe(self, callback):
        self._channel.unsubscribe(callback)

    def unary_unary(self, *args, **kwargs):
        return self._channel.unary_unary(*args, **kwargs)

    def unary_stream(self, *args, **kwargs):
        return self._channel.unary_stream(*args, **kwargs)

    def stream_unary(self, *args, **kwargs):
        return self._channel.stream_unary(*args, **kwargs)

    def stream_stream(self, *args, **kwargs):
        return self._channel.stream_stream(*args, **kwargs)

    def close(self):
        self._channel.close()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()


class Marking(grpc.UnaryUnaryClientInterceptor):
    def intercept_unary_unary(self, continuation, details, request):
        return continuation(details, request + b"+")


def test_a_channel_that_is_wrapped_twice(team):
    inner = team.start()
    channel = Wrapping(grpc.intercept_channel(Wrapping(inner), Marking()))
    echo = channel.unary_unary("/test/echo")
    assert echo(b"x") == b"x+"
    assert echo.future(b"y").result() == b"y+"
    channel.close()
    with pytest.raises(ValueError):
        echo(b"x")


def test_connectivity(team):
    channel = team.start()
    states = queue.SimpleQueue()
    channel.subscribe(states.put, try_to_connect=True)
    while states.get(timeout=LIMIT) is not grpc.ChannelConnectivity.READY:
        pass
    channel.unsubscribe(states.put)
    grpc.channel_ready_future(channel).result(LIMIT)


TAKES_FUNCTIONS_FIRST = """
import grpc
from grpc import insecure_channel, server
taken = insecure_channel, server
import penstock.grpc
penstock.grpc.install()
assert grpc.insecure_channel is penstock.grpc.insecure_channel
assert (insecure_channel, server) == taken
with insecure_channel("127.0.0.1:1") as channel:
    assert not isinstance(channel, penstock.grpc._fast_channel.Channel)
with grpc.insecure_channel("127.0.0.1:1") as channel:
    assert isinstance(channel, penstock.grpc._fast_channel.Channel)
"""


def test_a_program_that_takes_functions_of_grpcio_first():
    subprocess.run([sys.executable, "-B", "-c", TAKES_FUNCTIONS_FIRST],
                   check=True, timeout=3 * LIMIT)


def test_calls_that_no_thread_has_taken_end_when_the_server_closes():
    server = penstock._rpc.Server("127.0.0.1:0", b"t" * 16, -1)
    client = penstock._rpc.Client(f"127.0.0.1:{server.port}", b"t" * 16, -1)
    first = client.start("/test/first", b"\x01", b"", 20.0)
    queued = [client.start("/test/queued", b"\x01", b"", 20.0),
              client.open("/test/queued", b"\x01", 20.0, False)]
    taken = server.serve()
    assert taken.method == "/test/first"
    # The server answers this call itself, after the calls before it have come.
    assert client.call("hello", b"", b"", 20.0)[0] == 0
    server.close()
    for call in (first, *queued):
        assert call.wait(LIMIT) and call.outcome()[0] == 14, call.outcome()
    client.close()


if __name__ == "__main__":
    run_pytest.main(__file__)
