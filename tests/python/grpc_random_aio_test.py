#!/usr/bin/python3 -B
"""Runs random programs of grpc.aio over grpcio and over penstock.grpc, and
compares their outcomes.

Servers and clients are of grpc.aio. Handlers are coroutines, asynchronous
generators, or functions for threads. GRPC_SEED repeats a printed seed.
SEEDS_SECONDS is the time, by default 5.
"""

import asyncio
import contextlib
import json
import threading
import zlib

import run_pytest

import grpc
import grpc.aio
from grpc._cython import cygrpc

import fast_grpc
import penstock.grpc
import penstock.grpc.aio
from random_calls import (CODES, DETAILS, FAR, as_json, log_uniform, of_json,
                          pairs, random_metadata, seeds)

# A deadline that expires if the handler waits, in seconds.
NEAR = 0.3
MOST_BYTES = 2 << 20
KINDS = ("unary_unary", "unary_stream", "stream_unary", "stream_stream")


def message(number, index, size):
    return bytes([(7 * number + index) % 256]) * size


def digest(data):
    return len(data), zlib.crc32(data)


def random_call(chance):
    """Draws the actions of both sides of a call."""
    kind = chance.choice(KINDS)
    ups = log_uniform(chance, 32) if kind.startswith("stream") else 1
    downs = log_uniform(chance, 32) if kind.endswith("stream") else 1
    most = MOST_BYTES // (ups + downs + 1)
    end = chance.choice(("return",) * 4 + ("abort", "raise", "code", "wait"))
    call = {
        "kind": kind,
        "ups": [log_uniform(chance, most) for _ in range(ups)],
        "downs": [log_uniform(chance, most) for _ in range(downs)],
        "initial": as_json(random_metadata(chance)),
        "sends_initial": chance.random() < 0.5,
        "trailing": as_json(random_metadata(chance)),
        "end": end,
        # The kind of handler. "writes" calls write() and read(); the other
        # kinds return or yield.
        "handler": chance.choice(("async", "async", "writes", "thread")),
        "code": chance.choice(CODES).name,
        "details": chance.choice(DETAILS),
        "form": chance.choice(("await", "steps")),
        "metadata": random_metadata(chance),
        "timeout": chance.choice((None, FAR)),
        "client": "all",
        "method": chance.choice((kind,) * 19 + ("none",)),
    }
    if end == "wait":
        call["handler"] = chance.choice(("async", "writes"))
        call["client"] = chance.choice(("cancel", "cancel task", "deadline"))
        if call["client"] == "deadline":
            call["timeout"] = NEAR
    if kind.startswith("stream"):
        # grpcio gives writes after the end several outcomes.
        call["method"] = kind
    if call["handler"] == "writes" and not kind.endswith("stream"):
        call["handler"] = "async"
    return call


class Service(grpc.GenericRpcHandler):
    """Handlers that act as the metadata of their calls say, and record what
    they saw."""

    def __init__(self):
        self.seen = {}
        self._lock = threading.Lock()

    def service(self, handler_call_details):
        kind = handler_call_details.method.rpartition("/")[2]
        if kind not in KINDS:
            return None
        plan = json.loads(dict(handler_call_details.invocation_metadata)["plan"])
        make = getattr(grpc, kind + "_rpc_method_handler")
        name = f"_{plan['handler']}_{kind.split('_')[1]}"
        return make(getattr(self, name)(plan))

    def _note(self, plan, what):
        with self._lock:
            self.seen.setdefault(plan["number"], []).append(what)

    def _begin(self, plan, context):
        self._note(plan, sorted(pairs(context.invocation_metadata())))
        context.set_trailing_metadata(of_json(plan["trailing"]))

    def _set_code(self, plan, context):
        if plan["end"] == "raise":
            raise ValueError(plan["details"])
        if plan["end"] == "code":
            context.set_code(grpc.StatusCode[plan["code"]])
            context.set_details(plan["details"])

    @contextlib.contextmanager
    def _noting_the_end(self, plan):
        try:
            yield
        finally:
            self._note(plan, "ended")

    async def _before(self, plan, request, context):
        """Reads all requests."""
        self._begin(plan, context)
        if plan["sends_initial"]:
            await context.send_initial_metadata(of_json(plan["initial"]))
        if isinstance(request, bytes):
            return self._note(plan, digest(request))
        if plan["handler"] == "writes":
            while True:
                one = await context.read()
                if one is grpc.aio.EOF:
                    return None
                self._note(plan, digest(one))
        async for one in request:
            self._note(plan, digest(one))
        return None

    async def _after(self, plan, context):
        if plan["end"] == "abort":
            await context.abort(grpc.StatusCode[plan["code"]], plan["details"])
        if plan["end"] == "wait":
            await asyncio.sleep(60)
        self._set_code(plan, context)

    def _async_unary(self, plan):
        async def behavior(request, context):
            with self._noting_the_end(plan):
                await self._before(plan, request, context)
                await self._after(plan, context)
                return message(plan["number"], 0, plan["downs"][0])
        return behavior

    def _async_stream(self, plan):
        async def behavior(request, context):
            with self._noting_the_end(plan):
                await self._before(plan, request, context)
                for index, size in enumerate(plan["downs"]):
                    yield message(plan["number"], index, size)
                await self._after(plan, context)
        return behavior

    def _writes_stream(self, plan):
        async def behavior(request, context):
            with self._noting_the_end(plan):
                await self._before(plan, request, context)
                for index, size in enumerate(plan["downs"]):
                    await context.write(message(plan["number"], index, size))
                await self._after(plan, context)
        return behavior

    def _thread_before(self, plan, request, context):
        self._begin(plan, context)
        for one in [request] if isinstance(request, bytes) else request:
            self._note(plan, digest(one))

    def _thread_after(self, plan, context):
        if plan["end"] == "abort":
            context.abort(grpc.StatusCode[plan["code"]], plan["details"])
        self._set_code(plan, context)

    def _thread_unary(self, plan):
        def behavior(request, context):
            self._thread_before(plan, request, context)
            self._thread_after(plan, context)
            return message(plan["number"], 0, plan["downs"][0])
        return behavior

    def _thread_stream(self, plan):
        def behavior(request, context):
            self._thread_before(plan, request, context)
            for index, size in enumerate(plan["downs"]):
                yield message(plan["number"], index, size)
            self._thread_after(plan, context)
        return behavior


def begin(channel, call, number):
    """Begins a call. Returns the call, and the requests that are not given."""
    plan = json.dumps({**call, "number": number, "metadata": None, "ups": None})
    arguments = {"timeout": call["timeout"],
                 "metadata": [("plan", plan), *call["metadata"]]}
    kind = call["kind"]
    method = getattr(channel, kind)("/test/" + call["method"])
    requests = [message(number, index, size)
                for index, size in enumerate(call["ups"])]
    if kind.startswith("unary"):
        return method(requests[0], **arguments), []
    if call["form"] == "steps":
        return method(**arguments), requests

    async def all_requests():
        for request in requests:
            yield request

    return method(all_requests(), **arguments), []


async def converse(began, call, requests, received):
    """Sends the requests and receives the responses."""
    if call["kind"].startswith("stream") and call["form"] == "steps":
        for request in requests:
            await began.write(request)
        await began.done_writing()
    if call["kind"].endswith("unary"):
        received.append(digest(await began))
    elif call["form"] == "steps":
        while True:
            response = await began.read()
            if response is grpc.aio.EOF:
                return
            received.append(digest(response))
    else:
        async for response in began:
            received.append(digest(response))


async def run_call(channel, call, number, service):
    """Makes a call. Returns the outcome as the program sees it."""
    began, requests = begin(channel, call, number)
    received = []
    talk = asyncio.ensure_future(converse(began, call, requests, received))
    if call["client"].startswith("cancel"):
        if number % 2:  # else perhaps before the handler runs
            while number not in service.seen and not talk.done():
                await asyncio.sleep(0.001)
        (began if call["client"] == "cancel" else talk).cancel()
    error = None
    try:
        await talk
    except asyncio.CancelledError:
        error = "CancelledError"
    except (asyncio.InvalidStateError, cygrpc.ExecuteBatchError):
        # grpcio's errors of writes after the end. The second one is that of
        # done_writing() if the server ends the call at that moment.
        error = None
    except grpc.aio.AioRpcError as raised:
        error = raised.code().name
    if call["client"] == "cancel task":
        began.cancel()  # the task may not have begun
    code = (await began.code()).name
    if call["client"] != "all":
        return code, began.done(), began.cancelled()
    sent = [digest(message(number, index, size))
            for index, size in enumerate(call["downs"])]
    assert received == sent[:len(received)]
    if code != "OK":
        received = []  # grpcio may lose the last responses before an error
    # Ignores initial metadata, because grpc.aio loses them for some calls
    # without responses.
    return (code, await began.details(), error if error != code else "error",
            received, bool(received) and
            sorted(pairs(await began.initial_metadata())),
            pairs(await began.trailing_metadata()))


async def run_program(module, program):
    """Runs the calls of a program at the same time. Returns the outcomes, and
    the records of the handlers."""
    options = [("grpc.max_receive_message_length", -1)]
    service = Service()
    server = module.server(handlers=[service], options=options)
    target = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    await server.start()
    async with module.insecure_channel(target, options) as channel:
        if module is penstock.grpc.aio:
            await fast_grpc.until_fast_aio(channel)
        outcomes = await asyncio.gather(*(
            run_call(channel, call, number, service)
            for number, call in enumerate(program)))
        if module is penstock.grpc.aio:
            assert channel._channel.describe()[1] != "grpcio"
    # Waits for the handlers of cancelled calls, which end soon if they have
    # begun.
    waiting = {number for number, call in enumerate(program)
               if call["end"] == "wait" and call["method"] != "none"}
    for number in waiting & set(service.seen):
        for _ in range(2000):
            if "ended" in service.seen[number]:
                break
            await asyncio.sleep(0.01)
        else:
            raise AssertionError(("a handler did not end", program[number]))
    await server.stop(None)
    return outcomes, {number: service.seen.get(number)
                      for number in range(len(program))
                      if number not in waiting}


def run(module, program):
    return asyncio.run(asyncio.wait_for(run_program(module, program), 120))


def test_random_programs_of_asyncio_have_equal_outcomes():
    for seed, chance in seeds():
        program = [random_call(chance)
                   for _ in range(chance.choice((1, 4, 16)))]
        stock = run(grpc.aio, program)
        fast = run(penstock.grpc.aio, program)
        for number, call in enumerate(program):
            assert fast[0][number] == stock[0][number], (
                f"GRPC_SEED={seed}", call)
        assert fast[1] == stock[1], f"GRPC_SEED={seed}"


if __name__ == "__main__":
    run_pytest.main(__file__)
