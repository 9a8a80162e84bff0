#!/usr/bin/python3 -B
"""Runs random programs of unary calls over grpcio and over penstock.grpc, and
compares their outcomes.

GRPC_SEED repeats a printed seed. SEEDS_SECONDS is the time, by default 5.
"""

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

# A deadline that expires before any answer, in seconds.
NEAR = 0.05
SIZES = (0, 1, 500, 16 << 10, 70_000, 1 << 20)


def random_call(chance):
    """Draws the actions of the handler, and the way in which the client
    calls."""
    handler = {
        "initial": as_json(random_metadata(chance)),
        "trailing": as_json(random_metadata(chance)),
        "size": chance.choice((log_uniform(chance, 1 << 20),
                               chance.choice(SIZES))),
        "end": chance.choice(("return",) * 6 + (
            "abort", "raise", "code", "none", "text", "wait")),
        "code": chance.choice(CODES).name,
        "details": chance.choice(DETAILS),
    }
    return {
        "method": chance.choice(("/test/any",) * 9 + ("/test/none",)),
        "handler": handler,
        "padding": log_uniform(chance, 1 << 18),
        "metadata": random_metadata(chance),
        "form": chance.choice(("blocking", "with_call", "future", "callback")),
        "timeout": NEAR if handler["end"] == "wait" and chance.random() < 0.5
                   else chance.choice((None, FAR)),
        "cancel": chance.random() < 0.5,
        "wait_for_ready": chance.choice((None, True)),
    }


class Service:
    """Handlers that act as their requests say, and count their runs."""

    def __init__(self):
        self.runs = 0
        self.ended = []
        self.seen = []
        self._lock = threading.Lock()

    def any(self, request, context):
        text, _, padding = request.partition(b"\0")
        wish = json.loads(text)
        with self._lock:
            self.runs += 1
            self.seen.append((wish["number"], len(padding), sorted(
                (key, value) for key, value in context.invocation_metadata()
                if key.startswith("x-"))))
        ended = threading.Event()
        assert context.add_callback(ended.set)
        if wish["initial"]:
            context.send_initial_metadata(of_json(wish["initial"]))
        context.set_trailing_metadata(of_json(wish["trailing"]))
        return self._end(wish, context, ended)

    def _end(self, wish, context, ended):
        end = wish["end"]
        code = grpc.StatusCode[wish["code"]]
        if end == "abort":
            context.abort(code, wish["details"])
        if end == "raise":
            raise ValueError(wish["details"])
        if end == "code":
            context.set_code(code)
            context.set_details(wish["details"])
        if end == "wait":
            is_ended = ended.wait(60)
            with self._lock:
                self.ended.append((wish["number"], is_ended,
                                   context.is_active()))
        if end == "none":
            return None
        if end == "text":
            return "no bytes"
        return bytes([wish["number"] % 256]) * wish["size"]


def serialized(response):
    """Serializes bytes, and fails for anything else."""
    if not isinstance(response, bytes):
        raise TypeError("no bytes")
    return response


class Handler(grpc.GenericRpcHandler):

    def __init__(self, service):
        self._handler = grpc.unary_unary_rpc_method_handler(
            service.any, response_serializer=serialized)

    def service(self, handler_call_details):
        if handler_call_details.method == "/test/any":
            return self._handler
        return None


def outcome_of(call, response):
    """Returns the outcome of a call as the program sees it. After a deadline
    or a cancellation, returns only the code."""
    code = call.code()
    if code in (grpc.StatusCode.DEADLINE_EXCEEDED,
                grpc.StatusCode.CANCELLED) and call.details() != "why":
        return code.name
    return (code.name, call.details(), sorted(pairs(call.initial_metadata())),
            pairs(call.trailing_metadata()),
            response and (len(response), zlib.crc32(response)))


def make_call(channel, call, number):
    wish = {**call["handler"], "number": number}
    request = json.dumps(wish).encode() + b"\0" + b"p" * call["padding"]
    method = channel.unary_unary(call["method"])
    kwargs = {"timeout": call["timeout"], "metadata": call["metadata"],
              "wait_for_ready": call["wait_for_ready"]}
    waits = wish["end"] == "wait" and call["method"] == "/test/any"
    form = call["form"]
    if waits and call["timeout"] != NEAR:
        form, call["cancel"] = "future", True  # only a cancellation ends it
    try:
        if form == "blocking":
            response = method(request, **kwargs)
            return ("OK", len(response), zlib.crc32(response))
        if form == "with_call":
            response, ended = method.with_call(request, **kwargs)
            return outcome_of(ended, response)
    except grpc.RpcError as error:
        return outcome_of(error, None)
    future = method.future(request, **kwargs)
    done = threading.Event()
    if form == "callback":
        future.add_done_callback(lambda ended: done.set())
    if waits and call["cancel"] and call["timeout"] != NEAR:
        assert future.cancel()
        return "CANCELLED", future.cancelled(), future.code().name
    if form == "callback":
        assert done.wait(60)
    error = future.exception()
    return outcome_of(future, None if error else future.result())


def run(module, program, options):
    """Runs a program: a list of calls for each thread. Returns its outcomes."""
    service = Service()
    with contextlib.ExitStack() as stack:
        target = stack.enter_context(fast_grpc.serving(
            module, [Handler(service)], workers=16, options=options))
        channel = stack.enter_context(module.insecure_channel(target, options))
        if module is penstock.grpc:
            fast_grpc.until_fast(channel)

        def run_thread(thread):
            return [make_call(channel, call, 1000 * thread + index)
                    for index, call in enumerate(program[thread])]

        with concurrent.futures.ThreadPoolExecutor(len(program)) as pool:
            outcomes = list(pool.map(run_thread, range(len(program))))
        is_fast = module is grpc or channel.describe()[1] != "grpcio"
    # Leaves out calls that are cancelled immediately, because they may or may
    # not reach their handlers.
    lucky = {1000 * thread + index for thread, calls in enumerate(program)
             for index, call in enumerate(calls)
             if call["handler"]["end"] == "wait"}
    seen = sorted(one for one in service.seen if one[0] not in lucky)
    return outcomes, seen, all(
        is_ended and not is_active
        for _, is_ended, is_active in service.ended), is_fast


def test_random_programs_have_equal_outcomes():
    options = [("grpc.max_receive_message_length", -1)]
    for seed, chance in seeds():
        program = [[random_call(chance) for _ in range(10)]
                   for _ in range(chance.choice((1, 2, 4)))]
        stock = run(grpc, program, options)
        fast = run(penstock.grpc, program, options)
        assert fast == stock, f"GRPC_SEED={seed}"
        assert fast[2] and fast[3]


if __name__ == "__main__":
    run_pytest.main(__file__)
