#!/usr/bin/python3 -B
"""Runs random programs of streams over grpcio and over penstock.grpc, and
compares their outcomes.

A stream has an order of its messages in both directions. The server keeps the
order, and the client sends each request at its turn or as soon as it can.
Clients of grpc.aio take part.
GRPC_SEED repeats a printed seed. SEEDS_SECONDS is the time, by default 5.
"""

import asyncio
import concurrent.futures
import contextlib
import json
import threading
import zlib

import run_pytest

import grpc

import fast_grpc
import penstock.grpc
from random_calls import (CODES, DETAILS, FAR, as_json, log_uniform, of_json,
                          pairs, random_metadata, seeds)

# A deadline that expires if the stream's handler waits for it, in seconds.
NEAR = 0.3
# Limits the bytes of a stream.
MOST_BYTES = 4 << 20
# The kinds of clients that leave the end to the server, if all messages are
# valid.
SERVER_ENDS = ("all", "deserializer")


def message(number, index, size):
    return bytes([(7 * number + index) % 256]) * size


def digest(data):
    return len(data), zlib.crc32(data)


def random_call(chance):
    """Draws the actions of both sides of a stream."""
    kind = chance.choice(("upload", "download", "chat", "chat"))
    ups = 1 if kind == "download" else log_uniform(chance, 64)
    downs = 1 if kind == "upload" else log_uniform(chance, 64)
    most = MOST_BYTES // (ups + downs + 1)
    order = ["u"] * ups + ["d"] * downs
    if kind == "chat":
        chance.shuffle(order)
    call = {
        "kind": kind,
        # The steps. Each is the direction of a message, and its size.
        "steps": [(way, log_uniform(chance, min(most, 1 << 20)))
                  for way in order],
        "initial": as_json(random_metadata(chance)),
        "sends_initial": chance.random() < 0.5,
        "trailing": as_json(random_metadata(chance)),
        "end": chance.choice(("return", "return", "abort", "raise", "code",
                              "bad", "wait")),
        # True if the handler first reads until the requests end.
        "drains": chance.random() < 0.7,
        "code": chance.choice(CODES).name,
        "details": chance.choice(DETAILS),
        "client": "all",
        "api": chance.choice(("sync", "sync", "sync", "aio")),
        "form": chance.choice(("plain", "future", "callback")),
        "in_turn": chance.random() < 0.5,
        "metadata": random_metadata(chance),
        "timeout": chance.choice((None, FAR)),
        "bad_at": chance.randrange(downs + 1),
    }
    if call["end"] == "wait":
        call["client"] = chance.choice(("cancel", "deadline", "drop"))
    elif kind != "upload" and downs and call["api"] == "sync":
        call["client"] = chance.choice(("all", "all", "all", "deserializer"))
    if kind != "download" and call["api"] == "sync" and call[
            "end"] == "wait" and chance.random() < 0.3:
        call["client"] = "iterator"
    if call["client"] == "deserializer":
        call["form"] = "plain"  # grpcio runs callbacks when the server ends
    if call["client"] == "deadline":
        call["timeout"] = NEAR
    if call["client"] == "drop" and (call["api"] == "aio" or
                                     call["form"] == "callback"):
        call["client"] = "cancel"
    return call


class Service(grpc.GenericRpcHandler):
    """Handlers that act as the metadata of their calls say, and record what
    they saw."""

    def __init__(self):
        self.seen = {}
        self._lock = threading.Lock()
        self._handlers = {
            "/test/upload": grpc.stream_unary_rpc_method_handler(
                lambda requests, context: self._last(requests, context),
                response_serializer=self._serialized),
            "/test/download": grpc.unary_stream_rpc_method_handler(
                lambda request, context: self._run(iter([request]), context),
                response_serializer=self._serialized),
            "/test/chat": grpc.stream_stream_rpc_method_handler(
                self._run, response_serializer=self._serialized)}

    def service(self, handler_call_details):
        return self._handlers.get(handler_call_details.method)

    @staticmethod
    def _serialized(response):
        if not isinstance(response, bytes):
            raise TypeError("no bytes")
        return response

    def _last(self, requests, context):
        response = b""
        for response in self._run(requests, context):
            pass
        return response

    def _run(self, requests, context):
        metadata = dict(context.invocation_metadata())
        call = json.loads(metadata["plan"])
        number = call["number"]
        ended = threading.Event()
        assert context.add_callback(ended.set)
        if call["sends_initial"]:
            context.send_initial_metadata(of_json(call["initial"]))
        context.set_trailing_metadata(of_json(call["trailing"]))
        seen = [sorted(pairs(context.invocation_metadata()))]
        ends_here = call["end"] != "wait"
        try:
            for index, (way, size) in enumerate(call["steps"]):
                if way == "u":
                    seen.append(digest(next(requests)))
                else:
                    yield message(number, index, size)
            if call["drains"] and ends_here:
                seen.append(len(list(requests)))
            yield from self._end(call, context, ended)
        finally:
            with self._lock:
                # Ignores what a handler saw if the client ended the call,
                # because the end may come before all messages.
                self.seen[number] = (
                    seen if call["client"] == "all" else
                    ("ended", ended.wait(20), context.is_active())
                    if call["client"] != "deserializer" else None)

    @staticmethod
    def _end(call, context, ended):
        code = grpc.StatusCode[call["code"]]
        if call["end"] == "abort":
            context.abort(code, call["details"])
        if call["end"] == "raise":
            raise ValueError(call["details"])
        if call["end"] == "code":
            context.set_code(code)
            context.set_details(call["details"])
        if call["end"] == "bad":
            yield "no bytes"
        if call["end"] == "wait":
            ended.wait(60)


class Client:
    """One call of the blocking API."""

    def __init__(self, channel, call, number):
        self._call = call
        self._number = number
        self._received = []
        self._turns = threading.Condition()
        self._is_over = False
        self._kind = call["kind"]
        make = {"upload": channel.stream_unary, "download": channel.unary_stream,
                "chat": channel.stream_stream}[self._kind]
        self._method = make("/test/" + self._kind,
                            response_deserializer=self._deserialized)
        self._parsed = 0

    def _deserialized(self, data):
        if (self._call["client"] == "deserializer" and
                self._parsed == self._call["bad_at"]):
            raise ValueError("a bad response")
        self._parsed += 1
        return data

    def _requests(self):
        downs = 0
        for index, (way, size) in enumerate(self._call["steps"]):
            if way == "d":
                downs += 1
                continue
            # Waits for the responses that must come before the next request,
            # if there are any.
            if self._call["in_turn"] and self._kind == "chat":
                with self._turns:
                    if not self._turns.wait_for(
                            lambda: len(self._received) >= downs or
                            self._is_over, 60):
                        raise TimeoutError()
            yield message(self._number, index, size)
        if self._call["client"] == "iterator":
            raise ValueError("no more requests")
        # Half-closes the call, unless the client ends the call itself.
        if self._call["client"] not in SERVER_ENDS:
            with self._turns:
                self._turns.wait_for(lambda: self._is_over, 60)

    def _arguments(self):
        plan = json.dumps({**self._call, "number": self._number,
                           "metadata": None})
        return {"timeout": self._call["timeout"],
                "metadata": [("plan", plan), *self._call["metadata"]]}

    def run(self):
        """Returns the outcome of the call as the program sees it."""
        try:
            if self._kind == "upload":
                return self._upload()
            return self._stream()
        finally:
            self._end()

    def _end(self):
        with self._turns:
            self._is_over = True
            self._turns.notify_all()

    def _upload(self):
        arguments = self._arguments()
        if self._call["client"] in ("all", "deadline", "iterator") and \
                self._call["form"] == "plain":
            try:
                response, call = self._method.with_call(self._requests(),
                                                        **arguments)
                return self._outcome(call, [digest(response)])
            except grpc.RpcError as error:
                return self._outcome(error, [])
        future = self._method.future(self._requests(), **arguments)
        done = threading.Event()
        if self._call["form"] == "callback":
            future.add_done_callback(lambda ended: done.set())
        if self._call["client"] == "drop":
            return "dropped"
        if self._call["client"] == "cancel":
            assert future.cancel()
            return self._outcome(future, [])
        if self._call["form"] == "callback":
            assert done.wait(60)
        error = future.exception()
        return self._outcome(future,
                             [] if error else [digest(future.result())])

    def _stream(self):
        first = (message(self._number, 0, self._call["steps"][0][1])
                 if self._kind == "download" else self._requests())
        call = self._method(first, **self._arguments())
        done = threading.Event()
        if self._call["form"] == "callback":
            call.add_done_callback(lambda ended: done.set())
        ends = self._call["client"] in ("cancel", "drop")
        wanted = sum(way == "d" for way, _ in self._call["steps"])
        wanted = min(wanted, self._call["bad_at"]) if ends else -1
        while len(self._received) != wanted:
            try:
                response = next(call)
            except StopIteration:
                break
            except grpc.RpcError as error:
                assert error is call or wanted < 0
                break
            with self._turns:
                self._received.append(digest(response))
                self._turns.notify_all()
        self._end()
        received = list(self._received)
        if self._call["client"] == "drop":
            return "dropped", received
        if ends:
            assert call.cancel() and not call.is_active()
            received += [digest(response) for response in _rest(call)]
        if self._call["form"] == "callback":
            assert done.wait(60)
        return self._outcome(call, received)

    def _outcome(self, call, received):
        code = call.code().name
        client = self._call["client"]
        if client in ("deadline", "iterator"):
            return code, client == "deadline" or call.details()
        if client in ("cancel", "deserializer"):
            return code, call.details(), received
        return (code, call.details(), received,
                sorted(pairs(call.initial_metadata())),
                pairs(call.trailing_metadata()))


def _rest(call):
    """Yields the responses until the call fails."""
    try:
        yield from call
    except grpc.RpcError:
        pass


async def run_aio(module, target, options, call, number):
    """Makes a call of grpc.aio. Returns the outcome as the program sees it."""
    plan = json.dumps({**call, "number": number, "metadata": None})
    arguments = {"timeout": call["timeout"],
                 "metadata": [("plan", plan), *call["metadata"]]}

    async def requests():
        for index, (way, size) in enumerate(call["steps"]):
            if way == "u":
                yield message(number, index, size)
        if call["client"] != "all":
            await asyncio.sleep(60)

    async with module.aio.insecure_channel(target, options) as channel:
        if module is penstock.grpc:
            await fast_grpc.until_fast_aio(channel)
        kind = call["kind"]
        if kind == "upload":
            began = channel.stream_unary("/test/upload")(requests(),
                                                         **arguments)
        elif kind == "download":
            began = channel.unary_stream("/test/download")(
                message(number, 0, call["steps"][0][1]), **arguments)
        else:
            began = channel.stream_stream("/test/chat")(requests(), **arguments)
        received = []
        if call["client"] == "cancel":
            began.cancel()
        try:
            if kind == "upload":
                received.append(digest(await began))
            else:
                async for response in began:
                    received.append(digest(response))
        except (grpc.RpcError, asyncio.CancelledError):
            pass
        code = (await began.code()).name
        if call["client"] != "all":
            return code
        # Ignores initial metadata, because grpc.aio loses them for some calls
        # without responses.
        return (code, await began.details(), received, bool(received) and
                sorted(pairs(await began.initial_metadata())),
                pairs(await began.trailing_metadata()))


def run(module, program, options):
    """Runs a program: a list of calls for each thread. Returns its outcomes."""
    service = Service()
    with contextlib.ExitStack() as stack:
        target = stack.enter_context(fast_grpc.serving(
            module, [service], workers=16, options=options))
        channel = stack.enter_context(module.insecure_channel(target, options))
        if module is penstock.grpc:
            fast_grpc.until_fast(channel)

        def run_call(call, number):
            if call["api"] == "aio":
                return asyncio.run(run_aio(module, target, options, call,
                                           number))
            return Client(channel, call, number).run()

        def run_thread(thread):
            return [run_call(call, 1000 * thread + index)
                    for index, call in enumerate(program[thread])]

        with concurrent.futures.ThreadPoolExecutor(len(program)) as pool:
            outcomes = list(pool.map(run_thread, range(len(program))))
        is_fast = module is grpc or channel.describe()[1] != "grpcio"
    # Leaves out calls that their clients end, possibly before their handlers
    # run.
    certain = {1000 * thread + index for thread, calls in enumerate(program)
               for index, call in enumerate(calls) if call["client"] == "all"}
    broken = {number: seen for number, seen in service.seen.items()
              if number not in certain and seen not in (
                  None, ("ended", True, False))}
    return (outcomes, {number: service.seen.get(number) for number in certain},
            broken), is_fast


def test_random_programs_of_streams_have_equal_outcomes():
    options = [("grpc.max_receive_message_length", -1)]
    for seed, chance in seeds():
        program = [[random_call(chance) for _ in range(6)]
                   for _ in range(chance.choice((1, 2, 4)))]
        stock, _ = run(grpc, program, options)
        fast, is_fast = run(penstock.grpc, program, options)
        assert is_fast
        for thread, calls in enumerate(program):
            for index, call in enumerate(calls):
                assert fast[0][thread][index] == stock[0][thread][index], (
                    f"GRPC_SEED={seed}", call["api"], call)
        assert fast[1:] == stock[1:], f"GRPC_SEED={seed}"
        assert not fast[2], f"GRPC_SEED={seed}"


if __name__ == "__main__":
    run_pytest.main(__file__)
