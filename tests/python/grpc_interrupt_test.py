#!/usr/bin/python3 -B
"""penstock.grpc where Ctrl-C, or an error that is no Exception, ends a function
in its middle: no result, report or call is lost. Also calls that the server
declines, and unary calls of handlers for streams."""

import asyncio
import contextlib
import dis
import functools
import os
import sys
import threading
import types

import run_pytest

import grpc
import grpc.aio
import pytest

import fast_grpc
import penstock.grpc
import penstock.grpc.aio
from penstock.grpc import (_aio_server, _identity, _loops, _open_call,
                           _wire)

LIMIT = 20
_FOLDER = os.path.dirname(_loops.__file__)


class Odd(BaseException):
    """An error that `except Exception` does not catch."""


def failing_once(error):
    """Returns a deserializer that raises the error for its first message."""
    errors = [error]

    def deserialize(message):
        if errors:
            raise errors.pop()
        return message

    return deserialize


@contextlib.contextmanager
def fast_channel(interceptors=None, **functions):
    with fast_grpc.serving(penstock.grpc, [fast_grpc.Handlers(functions)],
                           interceptors=interceptors) as target:
        with penstock.grpc.insecure_channel(target) as channel:
            fast_grpc.until_fast(channel)
            yield channel


def start_unary(channel, deserialize):
    return channel.unary_unary(
        "/test/echo", response_deserializer=deserialize).future(b"x")


def start_upload(channel, deserialize):
    return channel.stream_unary(
        "/test/last", response_deserializer=deserialize).future(iter([b"x"]))


@contextlib.contextmanager
def echo_channel(gate=None):
    """Yields a channel to handlers that wait for the event `gate`."""
    def echo(request, context):
        del context
        assert gate is None or gate.wait(LIMIT)
        return request

    with fast_channel(
            echo=echo, last=grpc.stream_unary_rpc_method_handler(
                lambda requests, context: echo(list(requests)[-1], context))
    ) as channel:
        yield channel


@pytest.mark.parametrize("start", (start_unary, start_upload))
def test_a_result_outlives_an_interrupted_deserializer(start):
    with echo_channel() as channel:
        call = start(channel, failing_once(KeyboardInterrupt()))
        with pytest.raises(KeyboardInterrupt):
            call.result(LIMIT)
        assert call.result(LIMIT) == b"x"
        assert call.code() is grpc.StatusCode.OK


@pytest.mark.parametrize("start", (start_unary, start_upload))
def test_callbacks_run_although_the_deserializer_raises_anything(start):
    def fail(message):
        raise Odd()

    gate = threading.Event()
    with echo_channel(gate) as channel:
        for _ in range(2):  # the thread of callbacks outlives the first error
            gate.clear()
            called = threading.Event()
            call = start(channel, fail)
            call.add_done_callback(lambda call: called.set())
            gate.set()
            assert called.wait(LIMIT)


def test_a_callback_that_raises_anything_ends_no_other():
    def fail(call):
        raise Odd()

    gate, called = threading.Event(), threading.Event()
    with echo_channel(gate) as channel:
        call = channel.unary_unary("/test/echo").future(b"x")
        call.add_done_callback(fail)
        gate.set()
        call.result(LIMIT)
        gate.clear()
        other = channel.unary_unary("/test/echo").future(b"x")
        other.add_done_callback(lambda call: called.set())
        gate.set()
        assert called.wait(LIMIT)


def test_a_declined_call_begins_again_once():
    """The function that begins the call again, over grpcio, ends with an
    error."""
    begun = []

    class Declined:
        @staticmethod
        def report_decline(number):
            del number

        @staticmethod
        def outcome(as_view):
            del as_view
            return 0, b"", _wire.DECLINED, b""

        @staticmethod
        def wait(timeout):
            del timeout
            return True

        @staticmethod
        def is_done():
            return True

        @staticmethod
        def end(code, details):
            del code, details
            return False

    def begin(head):
        begun.append(head)
        raise Odd()

    with echo_channel() as channel:
        call = _open_call.FutureCall(
            Declined(), None, None, begin, channel._queue)
        with pytest.raises(Odd):
            call.result()
        assert call.code() is grpc.StatusCode.CANCELLED
        assert begun == [_wire.DECLINED]


@functools.lru_cache(maxsize=None)
def names_of(code):
    """Returns the names of a function's instructions, by offset."""
    return {each.offset: each.opname for each in dis.get_instructions(code)}


class Interruption:
    """Raises KeyboardInterrupt once while penstock.grpc runs `function` or what
    it calls, at the `when`-th place where Python may run a signal handler. Such
    places are the start of a function, the end of a call, and a jump
    backward."""

    _PLACES = ("CALL", "JUMP_BACKWARD")

    def __init__(self, when, function=_loops.Queue._run):
        self._left = when
        self._code = function.__code__
        self.has_come = False

    def _pass(self):
        self._left -= 1
        if self._left == 0:
            self.has_come = True
            raise KeyboardInterrupt()

    def _is_within(self, frame):
        while frame is not None:
            if frame.f_code is self._code:
                return True
            frame = frame.f_back
        return False

    def trace(self, frame, event, arg):
        del event, arg
        if (os.path.dirname(frame.f_code.co_filename) != _FOLDER or
                not self._is_within(frame)):
            return None
        frame.f_trace_opcodes = True
        names = names_of(frame.f_code)
        last = ""

        def local(frame, event, arg):
            nonlocal last
            del arg
            if event == "opcode":
                before, last = last, names[frame.f_lasti]
                if before.startswith(self._PLACES):
                    self._pass()
            return local

        self._pass()
        return local


def run_interrupted(loop, coroutine, *where):
    """Runs a task, and runs the loop again after the Interruption. Returns
    false if the task ended before."""
    task = loop.create_task(asyncio.wait_for(coroutine, LIMIT))
    interruption = Interruption(*where)
    sys.settrace(interruption.trace)
    try:
        loop.run_until_complete(task)
    except KeyboardInterrupt:
        assert interruption.has_come
    finally:
        sys.settrace(None)
    loop.run_until_complete(task)
    return interruption.has_come


def test_calls_of_a_loop_outlive_ctrl_c_at_any_place():
    """Ctrl-C ends a function that has taken reports and not yet run them."""
    async def answers(channel):
        assert await channel.unary_unary("/test/echo")(b"x") == b"x"
        last = channel.stream_unary("/test/last")(iter([b"1", b"2"]))
        assert await last == b"2"
        responses = channel.stream_stream("/test/all")(iter([b"y"]))
        assert [each async for each in responses] == [b"y"]

    async def connect(target):
        channel = penstock.grpc.aio.insecure_channel(target)
        await fast_grpc.until_fast_aio(channel)
        return channel

    loop = asyncio.new_event_loop()
    handlers = {"echo": lambda request, context: request,
                "last": grpc.stream_unary_rpc_method_handler(
                    lambda requests, context: list(requests)[-1]),
                "all": grpc.stream_stream_rpc_method_handler(
                    lambda requests, context: requests)}
    with fast_grpc.serving(penstock.grpc,
                           [fast_grpc.Handlers(handlers)]) as target:
        channel = loop.run_until_complete(connect(target))
        when = 1
        while run_interrupted(loop, answers(channel), when):
            when += 1
        assert when > 10
        loop.run_until_complete(channel.close())
    loop.close()


@contextlib.contextmanager
def interruptible_server(handlers):
    """Yields a loop with a server, and a function. The function returns a
    coroutine that calls another function with a channel, on a thread."""
    async def start():
        server = penstock.grpc.aio.server(
            handlers=[fast_grpc.Handlers(handlers)])
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        return server, port

    loop = asyncio.new_event_loop()
    server, port = loop.run_until_complete(start())
    with penstock.grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        async def in_thread(function, *arguments):
            await loop.run_in_executor(None, function, channel, *arguments)

        # There is no such method, so that no handler runs.
        missing = channel.unary_unary("/test/missing")

        def call():
            with contextlib.suppress(grpc.RpcError):
                missing(b"", timeout=LIMIT)

        loop.run_until_complete(in_thread(fast_grpc.until_fast, call))
        yield loop, in_thread
        loop.run_until_complete(server.stop(None))
    loop.close()


def test_received_calls_outlive_ctrl_c_at_any_place():
    """Ctrl-C ended a function that had taken a call and not begun it. The client
    got INTERNAL."""
    async def echo(request, context):
        return request

    async def repeat(requests, context):
        async for request in requests:
            yield request

    def calls(channel):
        assert channel.unary_unary("/test/echo")(b"x", timeout=LIMIT) == b"x"
        all_ = channel.stream_stream("/test/all")
        assert list(all_(iter([b"y"]), timeout=LIMIT)) == [b"y"]

    with interruptible_server({
            "echo": grpc.unary_unary_rpc_method_handler(echo),
            "all": grpc.stream_stream_rpc_method_handler(repeat)}) as (
                loop, in_thread):
        when = 1
        while run_interrupted(loop, in_thread(calls), when):
            when += 1
        assert when > 10


def test_a_handler_runs_once_with_ctrl_c_at_any_place_of_its_task():
    """Ctrl-C ended a task before or after the handler. The client got
    UNKNOWN."""
    runs = []

    async def echo(request, context):
        runs.append(request)
        return request

    def calls(channel):
        for call, request in ((channel.unary_unary, b"x"),
                              (channel.stream_unary, iter([b"x"]))):
            runs.clear()
            assert call("/test/echo")(request, timeout=LIMIT) == b"x"
            assert runs == [b"x"]

    with interruptible_server({"echo": grpc.unary_unary_rpc_method_handler(
            echo, request_deserializer=bytes, response_serializer=bytes)}) as (
                loop, in_thread):
        when = 1
        while run_interrupted(loop, in_thread(calls), when,
                              _aio_server._Call.run):
            when += 1
        assert when > 10


class Question:
    """A received call that asks for the proof of a ticket. Like _rpc's, gives
    its message once."""

    method = _identity.PROVE_METHOD
    metadata = _wire.encode_request(())

    def __init__(self):
        self._messages = [b"question"]
        self.answers = []

    def message(self, as_view=False):
        del as_view
        return self._messages.pop() if self._messages else b""

    def respond(self, head, message):
        self.answers.append((head, message))


def test_a_question_is_read_once_with_ctrl_c_at_any_place():
    """Ctrl-C ended a function that had read the question. The second run read
    an empty message, and refused the client."""
    loop = asyncio.new_event_loop()
    tickets = types.SimpleNamespace(
        prove=lambda message: b"proof" if message == b"question" else None)
    calls = []
    plane = _aio_server._DataPlane(
        types.SimpleNamespace(report=lambda number: None,
                              take_some=lambda most: [calls.pop()] if calls
                              else []),
        types.SimpleNamespace(tickets=tickets), None, None, 1, loop, None)
    when = 1
    interruption = None
    while interruption is None or interruption.has_come:
        question = Question()
        calls.append(question)
        interruption = Interruption(when, _aio_server._DataPlane._accept_some)
        sys.settrace(interruption.trace)
        try:
            plane._accept_some()
        except KeyboardInterrupt:
            assert interruption.has_come
        finally:
            sys.settrace(None)
        plane._accept_some()
        assert set(question.answers) == {(_wire.PLAIN_OK, b"proof")}, when
        when += 1
    assert when > 10
    loop.close()


def test_a_callback_that_ran_the_loop_and_met_ctrl_c_runs_again():
    """Packages for notebooks run the loop within a callback."""
    loop = asyncio.new_event_loop()
    queue = _loops.Queue(loop)
    runs = []

    def callback():
        runs.append(1)
        if len(runs) == 1:
            queue._run_some()
            raise KeyboardInterrupt()

    queue._reported.append((next(queue._order), queue.add(callback)))
    with pytest.raises(KeyboardInterrupt):
        queue._run_some()
    queue._run_some()
    assert len(runs) == 2
    loop.close()
    queue.close()


class Counting(grpc.ServerInterceptor):
    """Counts the calls."""

    def __init__(self):
        self.calls = 0

    def intercept_service(self, continuation, details):
        self.calls += 1
        return continuation(details)


class AioCounting(Counting, grpc.aio.ServerInterceptor):
    async def intercept_service(self, continuation, details):
        self.calls += 1
        return await continuation(details)


# Unary calls of handlers for streams.

# The methods, and their outcomes.
_STREAMS = {
    "any": (lambda requests, context: requests, b"x"),
    "none": (lambda requests, context: iter(()), grpc.StatusCode.INTERNAL),
    "two": (lambda requests, context: iter([b"a", b"b"]),
            grpc.StatusCode.INTERNAL),
    "code": (lambda requests, context: context.set_code(
        grpc.StatusCode.NOT_FOUND) or iter(()), grpc.StatusCode.NOT_FOUND)}
_STREAM_HANDLERS = {
    name: grpc.stream_stream_rpc_method_handler(behavior)
    for name, (behavior, _) in _STREAMS.items()}


def outcome_of(call):
    try:
        return call()
    except grpc.RpcError as error:
        return error.code()


def test_unary_calls_of_handlers_for_streams():
    counting = Counting()
    with fast_channel([counting], **_STREAM_HANDLERS) as channel:
        counting.calls = 0
        for name, (_, outcome) in _STREAMS.items():
            call = channel.unary_unary("/test/" + name)
            assert outcome_of(lambda: call(b"x")) == outcome, name
            assert outcome_of(call.future(b"x").result) == outcome, name
        # A call that is repeated over grpcio would be counted twice.
        assert counting.calls == 2 * len(_STREAMS)


@contextlib.asynccontextmanager
async def fast_aio_channel(interceptors=None, **handlers):
    server = penstock.grpc.aio.server(
        handlers=[fast_grpc.Handlers(handlers)], interceptors=interceptors)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with penstock.grpc.aio.insecure_channel(
            f"127.0.0.1:{port}") as channel:
        await fast_grpc.until_fast_aio(channel)
        yield channel
    await server.stop(None)


def test_unary_calls_of_asynchronous_handlers_for_streams():
    async def echo(requests, context):
        async for request in requests:
            yield request

    async def two(requests, context):
        await context.write(b"a")
        await context.write(b"b")

    handlers = {**_STREAM_HANDLERS,
                "any": grpc.stream_stream_rpc_method_handler(echo),
                "two": grpc.stream_stream_rpc_method_handler(two)}

    async def scene():
        counting = AioCounting()
        async with fast_aio_channel([counting], **handlers) as channel:
            for name, (_, outcome) in _STREAMS.items():
                try:
                    found = await channel.unary_unary("/test/" + name)(b"x")
                except grpc.aio.AioRpcError as error:
                    found = error.code()
                assert found == outcome, name
            assert counting.calls == len(_STREAMS)

    asyncio.run(asyncio.wait_for(scene(), LIMIT))


class Refusing(grpc.ServerInterceptor):
    def intercept_service(self, continuation, details):
        def refuse(request, context):
            context.abort(grpc.StatusCode.UNAUTHENTICATED, "no")

        return grpc.unary_unary_rpc_method_handler(refuse)


class AioRefusing(Refusing, grpc.aio.ServerInterceptor):
    async def intercept_service(self, continuation, details):
        async def refuse(request, context):
            await context.abort(grpc.StatusCode.UNAUTHENTICATED, "no")

        return grpc.unary_unary_rpc_method_handler(refuse)


def test_a_refused_call_runs_no_code_of_a_generic_handler(monkeypatch):
    lookups = []
    monkeypatch.setattr(fast_grpc.Handlers, "service",
                        lambda self, details: lookups.append(details.method))
    with fast_channel([Refusing()]) as channel:
        error = fast_grpc.caught(channel.unary_unary("/test/any"), b"x")
        assert error.code() is grpc.StatusCode.UNAUTHENTICATED

    async def scene():
        async with fast_aio_channel([AioRefusing()]) as channel:
            with pytest.raises(grpc.aio.AioRpcError) as error:
                await channel.unary_unary("/test/any")(b"x")
            assert error.value.code() is grpc.StatusCode.UNAUTHENTICATED

    asyncio.run(asyncio.wait_for(scene(), LIMIT))
    assert not lookups


def test_an_odd_error_of_a_callback_keeps_none_from_running():
    go, done = threading.Event(), threading.Event()

    def wait(request, context):
        assert go.wait(LIMIT)
        return request

    def fail(call):
        raise Odd("of a callback")

    with fast_channel(wait=grpc.unary_unary_rpc_method_handler(
            wait)) as channel:
        call = channel.unary_unary("/test/wait").future(b"x")
        call.add_done_callback(fail)
        call.add_done_callback(lambda call: done.set())
        go.set()
        assert done.wait(LIMIT)


def test_a_call_that_its_loop_drops_ends_quietly():
    async def forever(details):
        await asyncio.sleep(LIMIT)

    ends = []
    context = types.SimpleNamespace(
        is_stream=True, finish=lambda *outcome: ends.append(outcome))
    plane = types.SimpleNamespace(handlers=types.SimpleNamespace(
        interceptors=(), find_soon=forever))

    async def scene():
        call = _aio_server._Call(  # pylint: disable=protected-access
            None, types.SimpleNamespace(method="/a/b"), context, plane)
        call.task = asyncio.current_task()
        task = call.run()
        task.send(None)
        task.close()

    asyncio.run(scene())
    assert not ends


def test_an_odd_error_of_an_asynchronous_handler_ends_its_call():
    async def fail(request, context):
        raise Odd("of the handler")

    async def scene():
        handler = grpc.unary_unary_rpc_method_handler(fail)
        async with fast_aio_channel(fail=handler) as channel:
            with pytest.raises(grpc.aio.AioRpcError) as error:
                await channel.unary_unary("/test/fail")(b"x")
            assert error.value.code() is grpc.StatusCode.UNKNOWN
            assert "of the handler" in error.value.details()

    asyncio.run(asyncio.wait_for(scene(), LIMIT))


if __name__ == "__main__":
    run_pytest.main(__file__)
