"""Streams over the fast way, as the program sees them."""

import collections
import logging
import threading
import time

import grpc

from . import _calls, _reports, _wire

_LOGGER = logging.getLogger(__name__)


# Limit the requests that a stream keeps, and their bytes.
_MAX_KEPT, _MAX_KEPT_BYTES = 10000, 4 * 1024 * 1024


class Requests:
    """The iterator of a stream's requests. Keeps the first requests, so that a
    declined stream can begin again. Thread-safe."""

    def __init__(self, requests):
        self._requests = iter(requests)
        self._turn = threading.Lock()  # held while the program's iterator runs
        self._lock = threading.Lock()
        self._kept = collections.deque()  # None: too many, or not needed
        self._kept_bytes = 0
        self._begins_again = False
        self._error = None  # raised by the program's iterator

    def __iter__(self):
        return self

    def __next__(self):
        with self._turn:
            request = self._take()
            with self._lock:
                if self._kept is not None:
                    self._kept.append(request)
            return request

    def _take(self):
        if self._error is not None:
            raise self._error
        try:
            return next(self._requests)
        except BaseException as error:
            self._error = error
            raise

    def serialized(self, size):
        """Counts the bytes of a request."""
        self._kept_bytes += size
        if (self._kept_bytes > _MAX_KEPT_BYTES or
                len(self._kept or ()) > _MAX_KEPT):
            self.drop()

    def drop(self):
        """Keeps no requests any more, unless again() was called."""
        with self._lock:
            if not self._begins_again:
                self._kept = None

    def again(self):
        """Returns an iterator of all requests, or None if not all were kept."""
        with self._lock:
            if self._kept is None:
                return None
            self._begins_again = True
        return self._all()

    def _all(self):
        while True:
            if not self._kept:
                # The sender of the declined stream may be waiting for a
                # request, which is then kept.
                with self._turn:
                    if not self._kept:
                        try:
                            self._kept.append(self._take())
                        except StopIteration:
                            return
            yield self._kept.popleft()


def send_requests(stream, requests, serializer, max_bytes):
    """Sends the requests of an iterator, on a thread of its own, because the
    iterator may wait for responses."""

    def send():
        try:
            for request in requests:
                message = serialized(request, serializer)
                if message is None:
                    stream.end(13, "Exception serializing request!")
                    return
                if len(message) > max_bytes:
                    stream.end(8, _calls.too_large("CLIENT", message,
                                                   max_bytes))
                    return
                requests.serialized(len(message))
                if not stream.write(message, False):
                    return
        except Exception:  # pylint: disable=broad-except
            _LOGGER.exception("Exception iterating requests!")
            stream.end(2, "Exception iterating requests!")
            return
        stream.half_close()

    threading.Thread(target=send, name="penstock-requests", daemon=True).start()


def serialized(request, serializer):
    """Returns the message, or None if the serializer fails."""
    if serializer is not None:
        try:
            request = serializer(request)
        except Exception:  # pylint: disable=broad-except
            _LOGGER.exception("Exception serializing message!")
            return None
    return request if type(request) is bytes else None


class StreamCall(_calls.MultiThreadedRendezvous):
    """A call with a stream of responses, which it iterates over. With
    `is_unary_response`, a future of the one response instead."""

    def __init__(self, stream, deserializer, deadline, begin_again,
                 is_unary_response=False, requests=None):
        grpc.RpcError.__init__(self)
        self._stream = stream
        self._deserializer = deserializer
        self._deadline = deadline
        # Begins the call over the real channel, and returns it, or None if that
        # is impossible. Takes the head of the answer.
        self._begin_again = begin_again
        self._real = None  # the call after a declined one
        self._requests = requests  # whose first ones are kept, or None
        self._is_unary_response = is_unary_response
        self._lock = threading.RLock()
        self._initial = None
        self._outcome = None
        self._response = None
        self._cancelled = False
        self._callbacks = []
        self._is_reported = False

    # The end.

    def _settle(self):
        """Reads the outcome of a stream that has ended."""
        with self._lock:
            if self._outcome is not None or self._real is not None:
                return
            code, details, head = self._stream.outcome()
            outcome = _calls.outcome_of(code, details, head)
            if outcome is None:  # declined
                self._real = self._begin_again(head)
                if self._real is not None:
                    return
                outcome = _wire.Outcome(14, "the server is stopping", (), ())
            if self._is_unary_response and not outcome.code:
                outcome = self._take_response(outcome)
            self._outcome = outcome

    def _take_response(self, outcome):
        message = self._stream.read()
        if message is None:
            return _wire.Outcome(13, "No message returned for unary request",
                                 outcome.initial, outcome.trailing)
        outcome, self._response = _calls.deserialized(outcome, message,
                                                      self._deserializer)
        return outcome

    def _end_here(self, code, details):
        self._stream.end(code, details)
        self._stream.wait(-1.0)
        self._settle()

    def _real_call(self):
        """Returns the call over the real channel, or None without one."""
        if self._real is None and self._stream.is_done():
            self._settle()
        return self._real

    def _wait(self, timeout=None):
        if not self._stream.wait(-1.0 if timeout is None else
                                 float(max(timeout, 0))):
            raise grpc.FutureTimeoutError()
        self._settle()

    # Responses.

    def __iter__(self):
        return self

    def __next__(self):
        message = self._stream.read()
        if message is None:
            self._wait()
            if self._real is not None:
                return next(self._real)
            if self._outcome.code:
                raise self
            raise StopIteration()
        if self._requests is not None:
            self._requests.drop()
            self._requests = None
        if self._deserializer is None:
            return message
        try:
            response = self._deserializer(message)
        except Exception:  # pylint: disable=broad-except
            _LOGGER.exception("Exception deserializing message!")
            response = None
        if response is None:
            self._end_here(13, "Exception deserializing response!")
            raise self
        return response

    next = __next__

    # The call.

    def cancel(self):
        with self._lock:  # callbacks see that the call is cancelled
            if self._stream.end(1, "Locally cancelled by application!"):
                self._cancelled = True
                return True
        real = self._real_call()
        return False if real is None else real.cancel() is not False

    def is_active(self):
        if not self._stream.is_done():
            return True
        real = self._real_call()
        return real is not None and real.is_active()

    def time_remaining(self):
        if self._deadline is None:
            return None
        return max(self._deadline - time.time(), 0)

    def initial_metadata(self):
        with self._lock:
            if self._initial is not None:
                return self._initial
        head = self._stream.metadata()
        if head is None:
            self._wait()
            if self._real is not None:
                return self._real.initial_metadata()
            initial = self._outcome.initial
        else:
            try:
                initial = _wire.decode_request(head) if head else ()
            except ValueError:
                self._end_here(13, "the response is malformed")
                initial = ()
        with self._lock:
            self._initial = initial
        return initial

    def trailing_metadata(self):
        self._wait()
        if self._real is not None:
            return self._real.trailing_metadata()
        return self._outcome.trailing

    def code(self):
        self._wait()
        if self._real is not None:
            return self._real.code()
        return _calls.CODES[self._outcome.code]

    def details(self):
        self._wait()
        if self._real is not None:
            return self._real.details()
        return self._outcome.details

    def debug_error_string(self):
        return f"{self.code().name}: {self.details()} (over penstock.grpc)"

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
            if self._real is not None:
                return self._real.result()
            return self._response if self._is_unary_response else self
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
            if self._stream.is_done():
                return False
            self._callbacks.append(callback)
            if not self._is_reported:
                self._is_reported = True
                self._stream.report(_reports.add(self._on_end))
            return True

    def _on_end(self):
        self._settle()
        with self._lock:
            callbacks, self._callbacks = self._callbacks, []
        if self._real is not None:
            callbacks = [callback for callback in callbacks
                         if not self._real.add_callback(callback)]
        _reports.run(callbacks)

    def __repr__(self):
        if self.is_active():
            return f"<{type(self).__name__} object>"
        return (f"<{type(self).__name__} of RPC that terminated with:\n"
                f"\tstatus = {self.code()}\n"
                f'\tdetails = "{self.details()}"\n>')

    __str__ = __repr__

    def __del__(self):
        # The program has dropped a call that goes on, as grpcio's cancels it.
        stream = getattr(self, "_stream", None)
        if stream is not None and not self._is_reported:
            stream.end(1, "the call was dropped")
