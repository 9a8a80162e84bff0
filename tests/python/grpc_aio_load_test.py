#!/usr/bin/python3 -B
"""Tests penstock.grpc.aio under load: limits, many clients, large heads,
closed loops, and memory of calls that the program keeps."""

import asyncio
import contextlib
import os
import time

import run_pytest

import grpc
import grpc.aio
import pytest

import fast_grpc
import penstock.grpc
import penstock.grpc.aio
from penstock import _rpc
from penstock.grpc import _limits, _wire

LIMIT = 20
MIB = 1 << 20


async def echo(request, context):
    del context
    return request


@contextlib.asynccontextmanager
async def pair(module, handlers, maximum=None):
    """Yields a channel to a server, over grpcio or over the data plane."""
    options = [("grpc.max_receive_message_length", -1)]
    server = module.server(handlers=[fast_grpc.Handlers(handlers)],
                           options=options, maximum_concurrent_rpcs=maximum)
    target = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    await server.start()
    async with module.insecure_channel(target, options) as channel:
        channel.target = target
        if module is penstock.grpc.aio:
            await fast_grpc.until_fast_aio(channel)
        yield channel
    await server.stop(None)


def run(scene):
    asyncio.run(asyncio.wait_for(scene, 3 * LIMIT))


async def until(condition):
    end = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < end
        await asyncio.sleep(0.001)


async def outcome(call):
    try:
        return await call
    except grpc.aio.AioRpcError as error:
        return error.code(), error.details()


async def client_of(channel):
    """Returns a client of the data plane that ignores the rules, as a hostile
    client would."""
    async with grpc.aio.insecure_channel(channel.target) as stock:
        offer = _wire.decode_offer(
            await stock.unary_unary(_wire.OFFER_METHOD)(b""))
    return _rpc.Client(f"127.0.0.1:{offer.port}", offer.token, -1)


def test_a_call_above_the_limit_ends_as_with_this_grpcio():
    async def scene(module):
        begun, go = [], asyncio.Event()

        async def wait(request, context):
            del context
            begun.append(request)
            await go.wait()
            return request

        handlers = {"wait": grpc.unary_unary_rpc_method_handler(wait)}
        async with pair(module, handlers, maximum=2) as channel:
            method = channel.unary_unary("/test/wait")
            calls = [asyncio.ensure_future(outcome(method(b"x")))
                     for _ in range(2)]
            await until(lambda: len(begun) == 2)
            third = asyncio.ensure_future(outcome(method(b"y")))
            await asyncio.wait(
                (third,), timeout=0.3 if _limits._lets_calls_wait() else LIMIT)
            early = third.done()
            if module is penstock.grpc.aio:
                assert early != _limits._lets_calls_wait()
            go.set()
            return early, await third, await asyncio.gather(*calls)

    async def both():
        expected = await scene(grpc.aio)
        assert await scene(penstock.grpc.aio) == expected

    run(both())


@pytest.mark.parametrize("waits", (False, True))
def test_places_go_to_the_calls_that_wait(waits):
    async def scene():
        limit = _limits.AioLimit(1)
        limit._waits = waits
        order = []

        async def call(name, gate):
            is_good = await limit.take()
            order.append((name, is_good))
            await gate.wait()

        gates = {name: asyncio.Event() for name in "abcd"}
        tasks = {}
        for name, gate in gates.items():
            tasks[name] = asyncio.ensure_future(call(name, gate))
            await asyncio.sleep(0)
        tasks["b"].cancel()  # while it waits
        for name in "acd":
            gates[name].set()
            await asyncio.wait((tasks[name],))
        assert order == ([("a", True), ("c", True), ("d", True)] if waits else
                         [("a", True), ("b", False), ("c", False),
                          ("d", False)])
        assert await asyncio.ensure_future(limit.take())

    run(scene())


def test_a_place_given_to_a_cancelled_call_goes_to_the_next():
    async def scene():
        limit = _limits.AioLimit(1)
        limit._waits = True
        assert await asyncio.ensure_future(limit.take())
        first = asyncio.ensure_future(limit.take())
        holder = asyncio.ensure_future(asyncio.sleep(0))
        await holder
        second = asyncio.ensure_future(limit.take())
        await asyncio.sleep(0)
        assert await asyncio.wait_for(second, LIMIT)
        assert first.done()

    async def cancelled():
        limit = _limits.AioLimit(1)
        limit._waits = True
        assert await limit.take()
        first = asyncio.ensure_future(limit.take())
        second = asyncio.ensure_future(limit.take())
        await asyncio.sleep(0)
        limit._give_back(asyncio.current_task())  # to the first one
        first.cancel()
        assert await asyncio.wait_for(second, LIMIT)
        assert first.cancelled()

    run(scene())
    run(cancelled())


class Interrupted(asyncio.Future):
    """A future whose waiter gets Ctrl-C when it goes on."""

    def __await__(self):
        yield from super().__await__()
        raise KeyboardInterrupt


def test_cancelled_calls_that_waited_are_forgotten():
    async def cancelled():
        limit = _limits.AioLimit(1)
        limit._waits = True
        assert await limit.take()
        calls = [asyncio.ensure_future(limit.take()) for _ in range(100)]
        await asyncio.sleep(0)
        assert len(limit._waiters) == 100
        for call in calls:
            call.cancel()
        await asyncio.wait(calls)
        await asyncio.sleep(0)  # the callbacks of the last call
        assert not limit._waiters
    run(cancelled())


def test_ctrl_c_while_a_call_waits_loses_no_place():
    loop = asyncio.new_event_loop()
    gate = loop.create_future()
    futures = iter((Interrupted(loop=loop), loop.create_future()))
    loop.create_future = lambda: next(futures)
    limit = _limits.AioLimit(1)
    limit._waits = True

    async def hold():
        await limit.take()
        await gate

    first = loop.create_task(hold())
    second = loop.create_task(limit.take())
    third = loop.create_task(limit.take())
    loop.run_until_complete(asyncio.sleep(0))
    gate.set_result(None)
    with pytest.raises(KeyboardInterrupt):
        loop.run_until_complete(third)
    assert isinstance(second.exception(), KeyboardInterrupt)
    del loop.create_future
    assert loop.run_until_complete(asyncio.wait_for(third, LIMIT))
    assert first.done()
    loop.close()


def test_large_heads_end_their_calls_only():
    """Tests heads of calls that would take long to parse."""
    entry = _wire._ENTRY.pack(1, 0) + b"k"

    async def scene():
        async with pair(penstock.grpc.aio, {"echo": echo}) as channel:
            client = await client_of(channel)
            for head in (b"\x01" + entry * 30000, b"\x01" + entry * 2000,
                         b"\x01" + _wire._ENTRY.pack(1, 100000) + b"k" +
                         b"v" * 100000):
                for call in (client.start("/test/echo", head, b"", 20.0),
                             client.open("/test/echo", head, 20.0, False)):
                    await until(call.is_done)
                    code, _, answer, *_ = call.outcome()
                    assert code == 0
                    assert _wire.decode_response(answer).code == 13
            client.close()
            assert await channel.unary_unary("/test/echo")(b"x") == b"x"

    run(scene())


def test_heads_within_the_limits_of_grpc_are_read():
    most = [("k", "")] * (_wire._MAX_METADATA_BYTES // 33)
    head = _wire.encode_request(most, _wire.user_agent("u" * 1024))
    assert len(_wire.decode_request(head)) == len(most) + 1
    most = [("k", "")] * (_wire._MAX_ANSWER_BYTES // 33)
    head = _wire.encode_response(0, b"", most, most)
    assert len(_wire.decode_response(head).initial) == len(most)
    large = [("k", "v" * (_wire._MAX_ANSWER_BYTES - 33))]
    head = _wire.encode_response(2, b"d" * 9999, large, large)
    assert len(_wire.decode_response(head).trailing) == 1
    assert _wire.decode_request(_wire.encode_initial(large))
    for head in (_wire.encode_request(most * 3), b"\x01" + b"x" * 50000):
        if head is not None:
            with pytest.raises(ValueError):
                _wire.decode_request(head)
    with pytest.raises(ValueError):
        _wire.decode_response(_wire.PLAIN_OK + b"x" * 50000)


def test_a_crowd_of_calls_does_not_stop_the_loop():
    async def scene():
        begun = []

        async def count(request, context):
            del context
            begun.append(1)
            return request

        handlers = {"count": grpc.unary_unary_rpc_method_handler(count)}
        async with pair(penstock.grpc.aio, handlers) as channel:
            client = await client_of(channel)
            head = _wire.encode_request(())
            calls = [client.start("/test/count", head, b"", 20.0)
                     for _ in range(1000)]
            # Keeps the loop busy until the heads have arrived.
            time.sleep(0.3)  # pylint: disable=async-blocking
            most = before = 0
            while len(begun) < len(calls):
                await asyncio.sleep(0)
                most = max(most, len(begun) - before)
                before = len(begun)
            assert most <= 64
            await until(lambda: all(call.is_done() for call in calls))
            client.close()

    run(scene())


def test_a_crowd_of_ends_does_not_stop_the_loop():
    async def scene():
        async with pair(penstock.grpc.aio, {"echo": echo}) as channel:
            queue = channel._channel.queue()
            run_numbers = []
            numbers = [queue.add(lambda: run_numbers.append(1))
                       for _ in range(1000)]
            client = await client_of(channel)
            head = _wire.encode_request(())
            for number in numbers:
                client.start("/test/none", head, b"", 20.0).report(number)
            most = before = 0
            while len(run_numbers) < len(numbers):
                await asyncio.sleep(0)
                most = max(most, len(run_numbers) - before)
                before = len(run_numbers)
            assert most <= 128
            client.close()

    run(scene())


def descriptors():
    """Returns the number of the process's eventfds."""
    count = 0
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            count += "eventfd" in os.readlink(f"/proc/self/fd/{name}")
    return count


def test_closed_loops_keep_no_descriptors():
    async def scene():
        async with pair(penstock.grpc.aio, {"echo": echo}) as channel:
            assert await channel.unary_unary("/test/echo")(b"x") == b"x"

    loops = []  # a program, or grpcio, may keep them

    def run_again():
        loop = asyncio.new_event_loop()
        loops.append(loop)
        loop.run_until_complete(asyncio.wait_for(scene(), LIMIT))
        loop.close()

    run_again()
    before = descriptors()
    for _ in range(30):
        run_again()
    assert descriptors() < before + 15  # grpcio closes its own later


def shared_megabytes():
    """Returns the size of the shared memory that this process uses."""
    with open("/proc/self/status", encoding="ascii") as file:
        (line,) = (line for line in file if line.startswith("RssShmem"))
    return int(line.split()[1]) // 1024


def test_kept_calls_keep_no_shared_memory():
    """Tests that neither calls of a client nor calls without an answer from
    their handler keep memory."""
    async def scene():
        begun, go = [], asyncio.Event()

        async def wait(request, context):
            del context
            begun.append(1)
            del request
            await go.wait()
            return b""

        handlers = {"wait": grpc.unary_unary_rpc_method_handler(wait),
                    "echo": grpc.unary_unary_rpc_method_handler(echo)}
        async with pair(penstock.grpc.aio, handlers) as channel:
            method = channel.unary_unary("/test/echo")
            await method(b"x" * (8 * MIB))
            before = shared_megabytes()
            kept = []
            for _ in range(20):
                kept.append(method(b"x" * (8 * MIB)))
                await kept[-1]
            assert shared_megabytes() < before + 80
            before = shared_megabytes()
            for number in range(20):
                kept.append(channel.unary_unary("/test/wait")(
                    b"x" * (8 * MIB)))
                kept[-1].add_done_callback(lambda call: None)
                await until(lambda: len(begun) == number + 1)
            assert shared_megabytes() < before + 80
            go.set()
            await asyncio.gather(*kept[20:])

    run(scene())


def test_five_hundred_streams_at_once():
    async def repeat(requests, context):
        del context
        async for request in requests:
            yield request

    async def scene():
        handlers = {"repeat": grpc.stream_stream_rpc_method_handler(repeat)}
        async with pair(penstock.grpc.aio, handlers) as channel:
            calls = [channel.stream_stream("/test/repeat")()
                     for _ in range(500)]

            async def talk(number, call):
                for turn in range(3):
                    request = b"%d %d" % (number, turn) * (1 + number)
                    await call.write(request)
                    assert await call.read() == request
                await all_talked()
                await call.done_writing()
                assert await call.read() is grpc.aio.EOF
                return await call.code()

            talked = []
            everybody = asyncio.Event()

            async def all_talked():
                talked.append(1)
                if len(talked) == len(calls):
                    everybody.set()
                await everybody.wait()

            codes = await asyncio.gather(*(
                talk(number, call) for number, call in enumerate(calls)))
            assert set(codes) == {grpc.StatusCode.OK}
            assert channel._channel.describe()[1] != "grpcio"

    run(scene())


if __name__ == "__main__":
    run_pytest.main(__file__)
