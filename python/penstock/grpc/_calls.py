"""Calls over the fast way, as the program sees them."""

import logging
import sys
import threading
import time

import grpc

try:
    from grpc import _channel
except ImportError:
    _channel = None

from . import _reports, _wire

CODES = {code.value[0]: code for code in grpc.StatusCode}
_LOGGER = logging.getLogger(__name__)


class _AnyError(grpc.RpcError, grpc.Call, grpc.Future):
    """The base of errors for a grpcio that has renamed its own classes."""


# The classes of grpcio's errors. Programs name them after `except`, because
# they have code() and details(), which grpc.RpcError lacks. The classes here
# override all public methods.
InactiveRpcError = getattr(_channel, "_InactiveRpcError", _AnyError)
MultiThreadedRendezvous = getattr(_channel, "_MultiThreadedRendezvous",
                                  _AnyError)


class _Outcome:
    """A call that has ended. Mixed into classes of grpc.Call."""

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
        return (f"{self._code.name}: {self._outcome.details} "
                "(over penstock.grpc)")

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

    def __repr__(self):
        name = type(self).__name__
        return (f"<{name} of RPC that terminated with:\n"
                f"\tstatus = {self.code()}\n"
                f'\tdetails = "{self.details()}"\n>')

    __str__ = __repr__


class EndedCall(_Outcome, grpc.Call):
    """The call of a response that with_call() has returned."""

    def __init__(self, outcome, deadline):
        self._set(outcome)
        self._deadline = deadline


class CallError(_Outcome, InactiveRpcError):
    """An error of a call that the program waited for."""

    def __init__(self, outcome):
        grpc.RpcError.__init__(self, outcome)
        self._set(outcome)

    def cancelled(self):
        return False

    def running(self):
        return False

    def done(self):
        return True

    def result(self, timeout=None):
        raise self

    def exception(self, timeout=None):
        return self

    def traceback(self, timeout=None):
        return traceback_of(self)

    def add_done_callback(self, fn):
        fn(self)


def traceback_of(error):
    try:
        raise error
    except grpc.RpcError:
        return sys.exc_info()[2]


def outcome_of(code, details, head):
    """Returns the Outcome of a call that _rpc has ended, or None if the server
    declined the call."""
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
    """Returns the outcome and the response. The deserializer's failure is an
    outcome, as with grpcio."""
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


class FutureCall(MultiThreadedRendezvous):
    """A call that goes on while the program does other things."""

    def __init__(self, call, deserializer, deadline, begin_again):
        grpc.RpcError.__init__(self)
        self._call = call
        self._deserializer = deserializer
        self._deadline = deadline
        # Begins the call over the real channel, and returns its future. Takes
        # the head of the answer.
        self._begin_again = begin_again
        self._lock = threading.RLock()
        self._real = None  # the future after a declined call
        self._outcome = None
        self._response = None
        self._cancelled = False
        self._callbacks = []
        self._is_reported = False

    def _settle(self):
        """Reads the outcome of a call that has ended, once."""
        with self._lock:
            if self._outcome is not None or self._real is not None:
                return
            code, details, head, message = self._call.outcome()
            outcome = outcome_of(code, details, head)
            if outcome is None:
                self._real = self._begin_again(head)
                return
            self._outcome, self._response = deserialized(
                outcome, message, self._deserializer)

    def _is_done(self):
        if not self._call.is_done():
            return False
        self._settle()
        return self._real is None or self._real.done()

    def _wait(self, timeout):
        """Waits for the end. Raises FutureTimeoutError after `timeout`."""
        begin = time.monotonic()
        if not self._call.wait(-1 if timeout is None else max(timeout, 0)):
            raise grpc.FutureTimeoutError()
        self._settle()
        if self._real is not None:
            if timeout is not None:
                timeout = max(timeout - (time.monotonic() - begin), 0)
            self._real.exception(timeout)

    def cancel(self):
        if self._real is not None:
            return self._real.cancel()
        with self._lock:  # callbacks see that the call is cancelled
            if not self._call.cancel():
                return False
            self._cancelled = True
        return True

    def cancelled(self):
        return self._cancelled or (self._real is not None and
                                   self._real.cancelled())

    def running(self):
        return not self._is_done()

    def done(self):
        return self._is_done()

    def result(self, timeout=None):
        if self._ends_well(timeout):
            return (self._response if self._real is None else
                    self._real.result())
        raise self

    def _ends_well(self, timeout):
        try:
            self._wait(timeout)
        except grpc.FutureCancelledError:
            pass
        if self.cancelled():
            raise grpc.FutureCancelledError()
        return self.code() is grpc.StatusCode.OK

    def exception(self, timeout=None):
        return None if self._ends_well(timeout) else self

    def traceback(self, timeout=None):
        if self._ends_well(timeout):
            return None
        return traceback_of(self)

    def code(self):
        self._wait_quietly()
        if self._real is not None:
            return self._real.code()
        return CODES[self._outcome.code]

    def _wait_quietly(self):
        try:
            self._wait(None)
        except grpc.FutureCancelledError:
            pass

    def details(self):
        return self._field("details", "details")

    def initial_metadata(self):
        return self._field("initial_metadata", "initial")

    def trailing_metadata(self):
        return self._field("trailing_metadata", "trailing")

    def _field(self, name, field):
        self._wait_quietly()
        if self._real is not None:
            return getattr(self._real, name)()
        return getattr(self._outcome, field)

    def debug_error_string(self):
        return f"{self.code().name}: {self.details()} (over penstock.grpc)"

    def is_active(self):
        return not self._is_done()

    def time_remaining(self):
        if self._deadline is None:
            return None
        return max(self._deadline - time.time(), 0)

    def add_done_callback(self, fn):
        if not self.add_callback(lambda: fn(self)):
            fn(self)

    def add_callback(self, callback):
        with self._lock:
            if self._is_done():
                return False
            self._callbacks.append(callback)
            if not self._is_reported:
                self._is_reported = True
                self._call.report(_reports.add(self._on_end))
            return True

    def _on_end(self):
        self._settle()
        with self._lock:
            if self._real is not None and not self._real.done():
                self._real.add_done_callback(lambda _: self._on_end())
                return
            callbacks, self._callbacks = self._callbacks, []
        _reports.run(callbacks)

    def __del__(self):
        # The program has dropped a call that goes on, as grpcio's cancels it.
        if (getattr(self, "_outcome", self) is None and self._real is None and
                not self._is_reported):
            self._call.cancel()

    def __repr__(self):
        if not self._is_done():
            return f"<{type(self).__name__} object>"
        return (f"<{type(self).__name__} of RPC that terminated with:\n"
                f"\tstatus = {self.code()}\n"
                f'\tdetails = "{self.details()}"\n>')

    __str__ = __repr__
