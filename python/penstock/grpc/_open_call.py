"""A call that continues while the program does other things."""

import operator
import time
import weakref
import threading

import grpc

from . import _calls, _reports, _views, _wire


def keep_result(kept, function, handle):
    """Appends function(handle) to the list `kept`, unless it is already there.
    Ctrl-C cannot interrupt between the call and the append, because no Python
    code runs in between."""
    if not kept:
        kept.extend(map(function, (handle,)))
    return kept[0]


def _settle_of(reference):
    """Returns a callback that settles a call. The callback does nothing if the
    program has dropped the call."""

    def settle():
        call = reference()
        if call is not None:
            call.settle()

    return settle


class OpenCall(_calls.MultiThreadedRendezvous):
    """A call, and the future of its end. The base of calls with one response
    and with a stream of responses.

    A call that its server declines is made again over the real channel. `_real`
    is then the call over the real channel. Thread-safe.
    """

    def __init__(self, handle, deserializer, deadline, begin_again, queue):
        grpc.RpcError.__init__(self)
        self._handle = handle  # the call of _rpc
        self._deserializer = deserializer
        self._deadline = deadline
        # A function that makes the call again over the real channel. Takes the
        # head of the server's answer. Returns the call, or None if that is
        # impossible.
        self._begin_again = begin_again
        self._queue = queue
        self._lock = threading.RLock()
        self._real = None
        self._outcome = None
        self._response = None
        # Results that the handle returns only once, for _take().
        self._kept = []
        self._cancelled = False
        self._callbacks = []
        self._is_reported = False
        # Registers a callback, so that a declined call begins again even if
        # the program does not ask for its result.
        self._number = queue.add(_settle_of(weakref.ref(self)))
        handle.report_decline(self._number)

    # The end.

    def _take(self):
        """Returns the Outcome of the ended call, and the head of the answer.
        The Outcome is None if the server has declined the call. Reads the
        response."""
        raise NotImplementedError()

    def settle(self):
        """Reads the outcome of a call that has ended. If Ctrl-C or the
        deserializer interrupts this function, a later call continues."""
        with self._lock:
            if self._outcome is not None or self._real is not None:
                return
            self._queue.drop(self._number)
            outcome, head = self._take()
            if outcome is None:
                outcome = self._settle_declined(head)
            if self._real is None:
                self._outcome = outcome
            self._kept = None

    def _settle_declined(self, head):
        """Begins the call over the real channel, at most once. Returns the
        outcome if that fails. Call it with the lock."""
        begin, self._begin_again = self._begin_again, None
        if begin is None:
            return _wire.Outcome(1, "interrupted", (), ())
        try:
            self._real = begin(head)
        except ValueError:  # the program has closed the channel
            return _wire.Outcome(1, "Channel closed!", (), ())
        return _wire.Outcome(14, "the server is stopping", (), ())

    def _real_call(self):
        """Returns the call over the real channel, or None if there is none."""
        if self._real is None and self._handle.is_done():
            self.settle()
        return self._real

    def _wait(self, timeout=None):
        """Waits until the call over the data plane has ended. Raises
        FutureTimeoutError after `timeout`."""
        if not self._handle.wait(-1.0 if timeout is None else
                                 float(max(timeout, 0))):
            raise grpc.FutureTimeoutError()
        self.settle()

    def _ended(self):
        """Waits for the end. Returns the call over the real channel, or None
        if there is none."""
        self._wait()
        return self._real

    # The call.

    def cancel(self):
        with self._lock:  # callbacks see that the call is cancelled
            if self._handle.end(1, "Locally cancelled by application!"):
                self._cancelled = True
                self.settle()
                return True
        real = self._real_call()
        return False if real is None else real.cancel() is not False

    def is_active(self):
        if not self._handle.is_done():
            return True
        real = self._real_call()
        return real is not None and real.is_active()

    def time_remaining(self):
        if self._deadline is None:
            return None
        return max(self._deadline - time.time(), 0)

    def initial_metadata(self):
        real = self._ended()
        return self._outcome.initial if real is None else \
            real.initial_metadata()

    def trailing_metadata(self):
        real = self._ended()
        return self._outcome.trailing if real is None else \
            real.trailing_metadata()

    def code(self):
        real = self._ended()
        return _calls.CODES[self._outcome.code] if real is None else real.code()

    def details(self):
        real = self._ended()
        return self._outcome.details if real is None else real.details()

    def debug_error_string(self):
        return _calls.debug_text(self.code(), self.details())

    # The future.

    def cancelled(self):
        real = self._real_call()
        return self._cancelled if real is None else real.cancelled()

    def running(self):
        return self.is_active()

    def done(self):
        return not self.is_active()

    def _ends_well(self, timeout):
        begin = time.monotonic()
        self._wait(timeout)
        if self._real is not None:
            if timeout is not None:
                timeout = max(timeout - (time.monotonic() - begin), 0)
            return self._real.exception(timeout) is None
        if self._cancelled:
            raise grpc.FutureCancelledError()
        return not self._outcome.code

    def result(self, timeout=None):
        if self._ends_well(timeout):
            return self._response if self._real is None else self._real.result()
        raise self

    def exception(self, timeout=None):
        return None if self._ends_well(timeout) else self

    def traceback(self, timeout=None):
        if self._ends_well(timeout):
            return None
        return _calls.traceback_of(self)

    def add_done_callback(self, fn):
        if not self.add_callback(lambda: fn(self)):
            fn(self)

    def add_callback(self, callback):
        with self._lock:
            real = self._real_call()
            if real is not None:
                return real.add_callback(callback)
            if self._handle.is_done():
                return False
            self._callbacks.append(callback)
            if not self._is_reported:
                self._is_reported = True
                self._handle.report(self._queue.add(self._on_end))
            return True

    def _on_end(self):
        try:
            self.settle()
        finally:  # the deserializer may raise anything
            with self._lock:
                callbacks, self._callbacks = self._callbacks, []
            if self._real is not None:
                callbacks = [callback for callback in callbacks
                             if not self._real.add_callback(callback)]
            _reports.run_all(callbacks)

    def __repr__(self):
        if self.is_active():
            return f"<{type(self).__name__} object>"
        return _calls.text_of(self)

    __str__ = __repr__

    def __del__(self):
        if getattr(self, "_number", None) is None:  # not made completely
            return
        self._queue.drop(self._number)
        # Cancels a call that the program drops before the call's end, as grpcio
        # does.
        if not self._is_reported:
            self._handle.end(1, "Cancelled upon garbage collection!")


class FutureCall(OpenCall):
    """A call with one response, and the response's future."""

    def _take(self):
        code, details, head, message = keep_result(
            self._kept, operator.methodcaller(
                "outcome", _views.are_taken_by(self._deserializer)),
            self._handle)
        outcome = _calls.outcome_of(code, details, head)
        if outcome is not None:
            outcome, self._response = _calls.deserialized(
                outcome, message, self._deserializer)
        return outcome, head
