#!/usr/bin/python3 -B
"""Tests deserializers that take a memoryview. They get large messages of the
data plane without a copy, and all other messages as bytes."""

import asyncio
import gc

import run_pytest

import grpc
import grpc.aio
import pytest

import fast_grpc
import penstock.grpc
import penstock.grpc.aio
from fast_grpc import make_team  # noqa: F401  # pylint: disable=unused-import

LIMIT = 20
SHORT, LARGE = b"s" * 1000, bytes(range(256)) * 1000


@penstock.grpc.takes_memoryview
def keep(message):
    return message


def kind_of(team, message):
    """Returns the type in which a large or a short message arrives."""
    is_view = team.way == "fast" and message is LARGE
    return memoryview if is_view else bytes


def check(team, received, sent):
    assert type(received) is kind_of(team, sent)
    assert received == sent
    if type(received) is memoryview:
        assert received.readonly


def handlers(seen):
    """Returns handlers of all kinds, which note their requests and return
    them."""
    def unary(request, context):
        seen.append(request)
        return bytes(request)

    def stream(requests, context):
        for request in requests:
            yield unary(request, context)

    return {
        "uu": grpc.unary_unary_rpc_method_handler(unary, keep),
        "us": grpc.unary_stream_rpc_method_handler(
            lambda request, context: stream([request], context), keep),
        "su": grpc.stream_unary_rpc_method_handler(
            lambda requests, context: list(stream(requests, context))[-1], keep),
        "ss": grpc.stream_stream_rpc_method_handler(stream, keep)}


@pytest.mark.parametrize("message", (SHORT, LARGE))
def test_all_kinds_of_calls(team, message):
    seen = []
    channel = team.start(**handlers(seen))

    def method(kind, name):
        return getattr(channel, kind)("/test/" + name,
                                      response_deserializer=keep)

    unary = method("unary_unary", "uu")
    upload = method("stream_unary", "su")
    responses = [unary(message), unary.with_call(message)[0],
                 unary.future(message).result(LIMIT),
                 *method("unary_stream", "us")(message),
                 upload(iter([message])), upload.future(iter([message])).result(),
                 *method("stream_stream", "ss")(iter([message, message])),
                 # a unary call of a handler for streams
                 method("unary_unary", "ss")(message)]
    assert len(responses) == 9 and len(seen) == 9
    for each in responses + seen:
        check(team, each, message)


def test_a_deserializer_without_the_mark_gets_bytes(team):
    channel = team.start()
    kinds = []
    channel.unary_unary("/test/echo", response_deserializer=lambda message:
                        kinds.append(type(message)) or message)(LARGE)
    assert kinds == [bytes]


def test_views_outlive_their_call_channel_and_server():
    kept = []
    with fast_grpc.serving(penstock.grpc, [fast_grpc.Handlers(
            {"echo": lambda request, context: request})]) as target:
        with penstock.grpc.insecure_channel(target) as channel:
            fast_grpc.until_fast(channel)
            echo = channel.unary_unary("/test/echo", response_deserializer=keep)
            messages = [bytes([number]) * 200_000 for number in range(100)]
            kept = [echo(message) for message in messages]
    del channel, echo
    gc.collect()
    assert all(type(view) is memoryview for view in kept)
    assert kept == messages


def shared_memory():
    """Returns the bytes of shared memory that this process has in use."""
    with open("/proc/self/status", encoding="ascii") as status:
        for line in status:
            if line.startswith("RssShmem:"):
                return int(line.split()[1]) * 1024
    raise AssertionError("no RssShmem")


def test_memory_is_free_again_after_the_view():
    """The server is in this process, whose memory thus has both pools."""
    with fast_grpc.serving(penstock.grpc, [fast_grpc.Handlers(
            {"echo": lambda request, context: request})]) as target:
        with penstock.grpc.insecure_channel(target) as channel:
            fast_grpc.until_fast(channel)
            echo = channel.unary_unary("/test/echo", response_deserializer=keep)
            message = bytes(1 << 20)
            before = shared_memory()
            for _ in range(300):
                assert type(echo(message)) is memoryview
            assert shared_memory() < before + (100 << 20)
            kept = [echo(message) for _ in range(200)]
            assert len(kept) == 200 and shared_memory() > before + (150 << 20)


def test_handlers_of_asyncio():
    seen = []

    async def unary(request, context):
        seen.append(type(request))
        return bytes(request)

    async def stream(requests, context):
        async for request in requests:
            yield await unary(request, context)

    async def scene():
        server = penstock.grpc.aio.server(handlers=[fast_grpc.Handlers({
            "uu": grpc.unary_unary_rpc_method_handler(unary, keep),
            "ss": grpc.stream_stream_rpc_method_handler(stream, keep)})])
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        async with penstock.grpc.aio.insecure_channel(
                f"127.0.0.1:{port}") as channel:
            await fast_grpc.until_fast_aio(channel)
            # The client is grpcio's own code, which gets bytes.
            assert await channel.unary_unary("/test/uu", None, keep)(
                LARGE) == LARGE
            call = channel.stream_stream("/test/ss")(iter([LARGE, SHORT]))
            assert [each async for each in call] == [LARGE, SHORT]
        await server.stop(None)

    asyncio.run(asyncio.wait_for(scene(), LIMIT))
    assert seen == [memoryview, memoryview, bytes]


if __name__ == "__main__":
    run_pytest.main(__file__)
