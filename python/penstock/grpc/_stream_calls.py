"""Streams over the data plane, as the program sees them."""

import collections
import logging
import operator
import threading

from . import _calls, _open_call, _views, _wire

_LOGGER = logging.getLogger(__name__)


# Limit the number and the bytes of the requests that a stream stores in case it
# must be repeated.
_MAX_KEPT, _MAX_KEPT_BYTES = 10000, 4 * 1024 * 1024


class Requests:
    """The iterator of a stream's requests. Stores the first requests, so that a
    declined stream can be repeated. Thread-safe."""

    def __init__(self, requests):
        self._requests = requests
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
        """Stops storing requests, unless again() was called."""
        with self._lock:
            if not self._begins_again:
                self._kept = None

    def again(self):
        """Returns an iterator of all requests, or None if some were not
        stored."""
        with self._lock:
            if self._kept is None:
                return None
            self._begins_again = True
        return self._all()

    def _all(self):
        while True:
            if not self._kept:
                # Waits for the sender of the declined stream, which may be
                # waiting for a request of the program. The sender stores such a
                # request.
                with self._turn:
                    if not self._kept:
                        try:
                            self._kept.append(self._take())
                        except StopIteration:
                            return
            yield self._kept.popleft()


def send_requests(stream, requests, serializer, max_bytes):
    """Sends the requests of an iterator, on a separate thread, because the
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


class StreamCall(_open_call.OpenCall):
    """A call with a stream of responses, which is an iterator over the
    responses. With `is_unary_response`, a future of the single response
    instead."""

    def __init__(self, stream, deserializer, deadline, begin_again, queue,
                 is_unary_response=False, requests=None):
        self._requests = requests  # whose first ones are kept, or None
        self._is_unary_response = is_unary_response
        self._initial = None
        self._takes_view = _views.are_taken_by(deserializer)
        super().__init__(stream, deserializer, deadline, begin_again, queue)

    # The end.

    def _take(self):
        code, details, head = self._handle.outcome()
        outcome = _calls.outcome_of(code, details, head)
        if outcome is not None and not outcome.code and self._is_unary_response:
            outcome = self._take_response(outcome)
        return outcome, head

    def _take_response(self, outcome):
        message = _open_call.keep_result(
            self._kept, operator.methodcaller("read", self._takes_view),
            self._handle)
        if message is None:
            return _wire.Outcome(13, "No message returned for unary request",
                                 outcome.initial, outcome.trailing)
        outcome, self._response = _calls.deserialized(outcome, message,
                                                      self._deserializer)
        return outcome

    def _end_here(self, code, details):
        """Ends the call with an error that this side has found. Does nothing
        if the server has already ended the call."""
        self._handle.end(code, details)
        self._ended()
        with self._lock:
            self._outcome = self._outcome._replace(code=code, details=details,
                                                   trailing=())

    # Responses.

    def __iter__(self):
        return self

    def __next__(self):
        message = self._handle.read(self._takes_view)
        if message is None:
            real = self._ended()
            if real is not None:
                return next(real)
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

    def result(self, timeout=None):
        response = super().result(timeout)
        if self._is_unary_response or self._real is not None:
            return response
        return self

    def initial_metadata(self):
        with self._lock:
            if self._initial is not None:
                return self._initial
        head = self._handle.metadata()
        if head is None:
            initial = super().initial_metadata()
        else:
            try:
                initial = _wire.decode_request(head) if head else ()
            except ValueError:
                self._end_here(13, "the response is malformed")
                initial = ()
        with self._lock:
            self._initial = initial
        return initial
