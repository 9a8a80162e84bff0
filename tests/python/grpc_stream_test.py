#!/usr/bin/python3 -B
"""Tests streams of penstock.grpc against grpcio: each case runs over both, and
has the same outcome."""

import concurrent.futures
import itertools
import os
import threading

import run_pytest

import grpc
import pytest

import fast_grpc
from fast_grpc import caught, make_team  # noqa: F401  # pylint: disable=unused-import


def count(request, context):
    for index in range(int(request)):
        yield b"%d" % index


def total(requests, context):
    return b"%d" % sum(map(int, requests))


def echo(requests, context):
    for request in requests:
        yield request


def start(team, **more):
    return team.start(
        count=grpc.unary_stream_rpc_method_handler(count),
        total=grpc.stream_unary_rpc_method_handler(total),
        each=grpc.stream_stream_rpc_method_handler(echo), **more)


def stream(function):
    return grpc.stream_stream_rpc_method_handler(function)


def test_all_kinds_of_streams(team):
    channel = start(team)
    for length in (0, 1, 2, 3, 10, 200):
        numbers = [b"%d" % index for index in range(length)]
        assert list(channel.unary_stream("/test/count")(b"%d" % length)) == \
            numbers
        sum_of = channel.stream_unary("/test/total")
        expected = b"%d" % sum(range(length))
        assert sum_of(iter(numbers)) == expected
        response, call = sum_of.with_call(iter(numbers))
        assert response == expected and call.code() is grpc.StatusCode.OK
        assert sum_of.future(iter(numbers)).result() == expected
        assert list(channel.stream_stream("/test/each")(iter(numbers))) == \
            numbers


def test_messages_of_many_sizes(team):
    sizes = (0, 1, 100, 16384, 70000, 1 << 20, 3, 2 << 20, 0)
    messages = [os.urandom(size) for size in sizes]
    each = start(team).stream_stream("/test/each")
    assert list(each(iter(messages))) == messages


def test_ping_pong(team):
    each = start(team).stream_stream("/test/each")
    turns = threading.Semaphore(0)

    def requests():
        for index in range(50):
            yield b"%d" % index
            assert turns.acquire(timeout=20)

    for index, response in enumerate(each(requests())):
        assert response == b"%d" % index
        turns.release()
    assert index == 49


def test_serializers(team):
    each = start(team).stream_stream("/test/each", str.encode, bytes.decode)
    assert list(each(iter(["a", "ü"]))) == ["a", "ü"]


def test_metadata(team):
    go = threading.Event()

    def handler(requests, context):
        context.send_initial_metadata((("x-first", "1"), ("x-bin", b"\xff")))
        go.wait(20)
        yield b"response"
        context.set_trailing_metadata((("x-last", "2"),))

    call = start(team, slow=stream(handler)).stream_stream("/test/slow")(
        iter([]))
    assert ("x-first", "1") in call.initial_metadata()  # before any response
    assert ("x-bin", b"\xff") in call.initial_metadata()
    assert call.is_active()
    go.set()
    assert list(call) == [b"response"]
    assert ("x-last", "2") in call.trailing_metadata()
    assert call.code() is grpc.StatusCode.OK
    assert not call.is_active() and call.done()
    assert ("x-first", "1") in call.initial_metadata()


def abort_after_two(requests, context):
    yield b"1"
    yield b"2"
    context.set_trailing_metadata((("x-why", "so"),))
    context.abort(grpc.StatusCode.DATA_LOSS, "it is lost")


def raise_after_two(requests, context):
    yield b"1"
    yield b"2"
    raise ValueError("of the handler")


def set_code_after_two(requests, context):
    yield b"1"
    yield b"2"
    context.set_code(grpc.StatusCode.NOT_FOUND)
    context.set_details("there is none")


@pytest.mark.parametrize("handler, code, details", [
    (abort_after_two, "DATA_LOSS", "it is lost"),
    (raise_after_two, "UNKNOWN",
     "Exception iterating responses: of the handler"),
    (set_code_after_two, "NOT_FOUND", "there is none"),
])
def test_errors_come_behind_the_responses(team, handler, code, details):
    call = start(team, bad=stream(handler)).stream_stream("/test/bad")(iter([]))
    assert next(call) == b"1" and next(call) == b"2"
    error = caught(next, call)
    assert error.code() is grpc.StatusCode[code]
    assert error.details() == details
    if handler is abort_after_two:
        assert ("x-why", "so") in error.trailing_metadata()


@pytest.mark.parametrize("count", (2, 3, 20))
def test_responses_before_one_that_is_too_large_are_read(team, count):
    cancelled = threading.Event()

    def handler(request, context):
        context.add_callback(cancelled.set)
        for index in range(count):
            yield b"%d" % index
        yield b"x" * 5000

    channel = team.start(
        options=[("grpc.max_receive_message_length", 1000)],
        large=grpc.unary_stream_rpc_method_handler(handler))
    call = channel.unary_stream("/test/large")(b"")
    if team.way == "fast":  # the stream has ended before the first read
        assert cancelled.wait(20)
    for index in range(count):
        assert next(call) == b"%d" % index
    error = caught(next, call)
    assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


def test_a_request_that_is_too_large_after_an_unread_response(team):
    answered = threading.Event()

    def requests():
        yield b"1"
        assert answered.wait(20)
        yield b"x" * 5000

    channel = start(team, options=[("grpc.max_send_message_length", 1000)])
    call = channel.stream_stream("/test/each")(requests())
    call.initial_metadata()
    answered.set()
    # Reads nothing before the end.
    assert call.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    error = caught(list, call)
    assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


def test_a_last_response_that_cannot_be_deserialized(team):
    def fail(data):
        raise ValueError(data)

    call = start(team).unary_stream("/test/count", response_deserializer=fail)(
        b"1")
    done = threading.Event()
    call.add_done_callback(lambda ended: done.set())
    done.wait(0.3)  # over the data plane, the end comes before the response
    error = caught(next, call)
    assert error.code() is grpc.StatusCode.INTERNAL
    assert error.details() == "Exception deserializing response!"
    assert caught(next, call) is error


def test_an_error_of_a_stream_with_one_response(team):
    def handler(requests, context):
        context.abort(grpc.StatusCode.ABORTED, "no")

    method = start(team, bad=grpc.stream_unary_rpc_method_handler(
        handler)).stream_unary("/test/bad")
    for form, kind in ((method, "_InactiveRpcError"),
                       (method.with_call, "_InactiveRpcError"),
                       (lambda requests: method.future(requests).result(),
                        "_MultiThreadedRendezvous")):
        error = caught(form, iter([]))
        assert error.code() is grpc.StatusCode.ABORTED
        assert error.details() == "no"
        assert isinstance(error, getattr(grpc._channel, kind))


def test_requests_that_are_no_iterator(team):
    for form in (start(team).stream_unary("/test/total"),
                 lambda requests: list(team.connect().stream_stream(
                     "/test/each")(requests))):
        error = caught(form, [b"1"])
        assert error.code() is grpc.StatusCode.UNKNOWN
        assert error.details() == "Exception iterating requests!"


def test_a_handler_that_has_only_what_its_kind_needs(team):
    class Handler(grpc.RpcMethodHandler):
        request_streaming = response_streaming = True
        request_deserializer = response_serializer = None

        def stream_stream(self, requests, context):
            return iter([b"x"])

    class Broken(grpc.RpcMethodHandler):
        request_streaming = response_streaming = True
        request_deserializer = response_serializer = None

    channel = start(team, good=Handler(), broken=Broken())
    assert list(channel.stream_stream("/test/good")(iter([]))) == [b"x"]
    if team.way == "fast":  # grpcio's server ends with such a call
        error = caught(list, channel.stream_stream("/test/broken")(iter([])))
        assert error.code() is grpc.StatusCode.INTERNAL
        assert list(channel.stream_stream("/test/good")(iter([]))) == [b"x"]


def test_an_iterator_of_requests_that_raises(team):
    def requests():
        yield b"1"
        raise ValueError("of the iterator")

    call = start(team).stream_stream("/test/each")(requests())
    error = caught(list, call)
    assert error.code() is grpc.StatusCode.UNKNOWN
    assert error.details() == "Exception iterating requests!"


def test_a_cancelled_stream(team):
    ended, sent = threading.Event(), threading.Event()

    def handler(requests, context):
        context.add_callback(ended.set)
        yield b"1"
        yield b"2"
        sent.set()
        ended.wait(20)
        assert not context.is_active()

    call = start(team, slow=stream(handler)).stream_stream("/test/slow")(
        iter([]))
    assert next(call) == b"1"
    assert sent.wait(20)
    assert call.cancel()  # drops the second response
    error = caught(next, call)
    assert error.code() is grpc.StatusCode.CANCELLED
    assert error.details() == "Locally cancelled by application!"
    assert call.cancelled()
    assert ended.wait(20)


def test_a_deadline(team):
    ended = threading.Event()

    def handler(requests, context):
        context.add_callback(ended.set)
        for request in requests:
            yield request

    def requests():
        ended.wait(20)
        yield b""

    call = start(team, slow=stream(handler)).stream_stream("/test/slow")(
        requests(), timeout=0.1)
    assert caught(next, call).code() is grpc.StatusCode.DEADLINE_EXCEEDED
    assert ended.wait(20)


def test_a_closed_channel_ends_its_streams(team):
    def handler(requests, context):
        yield b"1"
        for request in requests:
            yield request

    channel, turns = start(team, slow=stream(handler)), threading.Event()
    call = channel.stream_stream("/test/slow")(
        b"x" for _ in range(1) if turns.wait(20))
    assert next(call) == b"1"
    channel.close()
    error = caught(next, call)
    assert error.code() is grpc.StatusCode.CANCELLED
    assert "Channel closed!" in error.details()
    turns.set()


def test_a_handler_that_takes_no_more_requests(team):
    def handler(requests, context):
        yield next(requests)

    method = start(team, one=stream(handler)).stream_stream("/test/one")
    assert list(method(itertools.repeat(b"x" * 1000))) == [b"x" * 1000]


def test_a_receiver_that_does_not_read_holds_the_sender_back(team):
    sent, go = [], threading.Event()

    def handler(requests, context):
        go.wait(20)
        for request in requests:
            yield b"%d" % len(request)

    def requests():
        for _ in range(40):
            sent.append(1)
            yield b"x" * 1_000_000

    call = start(team, slow=stream(handler)).stream_stream("/test/slow")(
        requests())
    seen = -1
    for _ in range(100):  # until the sender stops
        if seen == len(sent) > 0:
            break
        seen = len(sent)
        go.wait(0.1)
    assert len(sent) < 40
    go.set()
    assert list(call) == [b"1000000"] * 40


def test_callbacks_of_streams(team):
    method = start(team).stream_unary("/test/total")
    future, done = method.future(iter([b"1", b"2"])), threading.Event()
    future.add_done_callback(lambda ended: done.set())
    assert done.wait(20)
    assert future.result() == b"3" and future.exception() is None
    assert future.code() is grpc.StatusCode.OK


def test_a_unary_method_called_as_a_stream(team):
    channel = start(team)
    assert list(channel.unary_stream("/test/echo")(b"x")) == [b"x"]
    assert channel.stream_unary("/test/echo")(iter([b"y"])) == b"y"
    error = caught(channel.stream_unary("/test/none"), iter([b"y"]))
    assert error.code() is grpc.StatusCode.UNIMPLEMENTED


def test_interceptors(team):
    class Counting(grpc.StreamStreamClientInterceptor,
                   grpc.UnaryStreamClientInterceptor):
        calls = 0

        def intercept_stream_stream(self, continuation, details, requests):
            self.calls += 1
            return continuation(details, requests)

        def intercept_unary_stream(self, continuation, details, request):
            self.calls += 1
            return continuation(details, request)

    counting = Counting()
    channel = grpc.intercept_channel(start(team), counting)
    assert list(channel.stream_stream("/test/each")(iter([b"x"]))) == [b"x"]
    assert list(channel.unary_stream("/test/count")(b"2")) == [b"0", b"1"]
    assert counting.calls == 2


@pytest.mark.parametrize("grace", [None, 0])
def test_a_server_that_stops_does_not_complete_an_upload(team, grace):
    got, go = threading.Event(), threading.Event()
    seen, ended = [], threading.Event()

    def upload(requests, context):
        try:
            for request in requests:
                seen.append(request)
                got.set()
            seen.append("complete")
        except grpc.RpcError:
            seen.append("error")
            raise
        finally:
            ended.set()
        return b""

    def requests():
        yield b"1"
        go.wait(20)

    pool = concurrent.futures.ThreadPoolExecutor(4)
    server = team.module.server(pool, [fast_grpc.Handlers({
        "upload": grpc.stream_unary_rpc_method_handler(upload)})])
    team.target = "127.0.0.1:%d" % server.add_insecure_port("127.0.0.1:0")
    server.start()
    future = team.connect().stream_unary("/test/upload").future(requests())
    assert got.wait(20)
    server.stop(grace)
    assert ended.wait(20)
    go.set()
    if team.way == "fast":  # grpcio itself has this race
        assert seen == [b"1", "error"]
    assert future.code() is not grpc.StatusCode.OK


def test_a_stream_ends_after_its_last_response_was_read(team):
    counts = start(team).unary_stream("/test/count")
    call = counts(b"5")
    ended = threading.Event()
    assert call.add_callback(ended.set)
    assert next(call) == b"0"
    assert not ended.wait(0.2)
    assert call.is_active() and not call.done()
    assert list(call) == [b"1", b"2", b"3", b"4"]
    assert call.code() is grpc.StatusCode.OK
    assert ended.wait(20) and call.done()


def test_a_stream_with_unread_responses_is_cancelled(team):
    counts = start(team).unary_stream("/test/count")
    call = counts(b"5")
    assert next(call) == b"0"
    assert not call.done()
    call.cancel()
    assert call.code() is grpc.StatusCode.CANCELLED
    call = counts(b"5", timeout=0.5)
    assert next(call) == b"0"
    assert call.code() is grpc.StatusCode.DEADLINE_EXCEEDED


def test_many_streams_at_once(team):
    each = start(team, workers=40).stream_stream("/test/each")
    calls = [each(iter([b"%d" % index] * 20)) for index in range(30)]
    for index, call in enumerate(calls):
        assert list(call) == [b"%d" % index] * 20


if __name__ == "__main__":
    run_pytest.main(__file__)
