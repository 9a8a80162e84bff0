"""Calls over the data plane, as the program sees them."""

import json
import logging
import sys
import time

import grpc

try:
    from grpc import _channel
except ImportError:
    _channel = None

from . import _wire

CODES = {code.value[0]: code for code in grpc.StatusCode}
_LOGGER = logging.getLogger(__name__)


class _AnyError(grpc.RpcError, grpc.Call, grpc.Future):
    """The base class of errors if grpcio has renamed its own classes."""


# The classes of grpcio's errors. Programs catch them by name, because they
# have code() and details(), which grpc.RpcError lacks. The classes here
# override all public methods.
InactiveRpcError = getattr(_channel, "_InactiveRpcError", _AnyError)
MultiThreadedRendezvous = getattr(_channel, "_MultiThreadedRendezvous",
                                  _AnyError)


class _Outcome:
    """A call that has ended. A mixin for classes of grpc.Call."""

    _deadline = None

    def _set(self, outcome):
        self._outcome = outcome
        self._code = CODES[outcome.code]

    def code(self):
        return self._code

    def details(self):
        return self._outcome.details

    def initial_metadata(self):
        return self._outcome.initial

    def trailing_metadata(self):
        return self._outcome.trailing

    def debug_error_string(self):
        return debug_text(self._code, self._outcome.details)

    def is_active(self):
        return False

    def time_remaining(self):
        if self._deadline is None:
            return None
        return max(self._deadline - time.time(), 0)

    def cancel(self):
        return False

    def add_callback(self, callback):
        del callback
        return False

    def cancelled(self):
        return False

    def running(self):
        return False

    def done(self):
        return True

    def add_done_callback(self, fn):
        fn(self)

    def __repr__(self):
        return text_of(self)

    __str__ = __repr__


class EndedCall(_Outcome, grpc.Call, grpc.Future):
    """The call of a response that with_call() has returned."""

    def __init__(self, outcome, deadline, response):
        self._set(outcome)
        self._deadline = deadline
        self._response = response

    def result(self, timeout=None):
        return self._response

    def exception(self, timeout=None):
        return None

    def traceback(self, timeout=None):
        return None


class CallError(_Outcome, InactiveRpcError):
    """An error of a call that the program waited for."""

    def __init__(self, outcome):
        grpc.RpcError.__init__(self, outcome)
        self._set(outcome)

    def result(self, timeout=None):
        raise self

    def exception(self, timeout=None):
        return self

    def traceback(self, timeout=None):
        return traceback_of(self)


def debug_text(code, details):
    """Returns the text for debugging of a call that has ended."""
    if code is grpc.StatusCode.OK:
        return ""
    return (f"{code.name}:{details} {{grpc_status:{code.value[0]}, "
            f"grpc_message:{json.dumps(details)}}} (over penstock.grpc)")


def text_of(call):
    """Returns the text of a call that has ended."""
    return (f"<{type(call).__name__} of RPC that terminated with:\n"
            f"\tstatus = {call.code()}\n"
            f'\tdetails = "{call.details()}"\n>')


def traceback_of(error):
    try:
        raise error
    except grpc.RpcError:
        return sys.exc_info()[2]


def outcome_of(code, details, head):
    """Returns the Outcome of a call that the module _rpc has ended. Returns
    None if the server declined the call."""
    if code == 0:
        try:
            return _wire.decode_response(head)
        except ValueError:
            code, details = 13, b"the response is malformed"
    return _wire.Outcome(code, details.decode("utf-8", "replace"), (), ())


def outcome_from(call):
    """Returns the Outcome of a call that has ended."""
    return _wire.Outcome(call.code().value[0], call.details(),
                         call.initial_metadata(), call.trailing_metadata())


def too_large(side, message, limit):
    """Returns grpcio's text for a message above grpc.max_send_message_length."""
    return (f"{side}: Sent message larger than max ({len(message)} vs. "
            f"{limit})")


def deserialized(outcome, message, deserializer):
    """Returns the outcome and the response. An error of the deserializer
    becomes an outcome, as with grpcio."""
    if outcome.code or deserializer is None:
        return outcome, message
    try:
        response = deserializer(message)
    except Exception:  # pylint: disable=broad-except
        _LOGGER.exception("Exception deserializing message!")
        response = None
    if response is not None:
        return outcome, response
    return _wire.Outcome(13, "Exception deserializing response!",
                         outcome.initial, ()), None
