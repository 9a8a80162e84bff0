"""The context of a call that a server has received over the data plane."""

import logging
import threading
import time
import urllib.parse

import grpc

from . import _identity, _reports, _wire

_LOGGER = logging.getLogger(__name__)

# The time that grpcio shows to handlers of calls without a deadline.
_NO_DEADLINE = float(2**63 - 1)
# The identity that gRPC shows for a connection without one.
NOBODY = _identity.Identity(
    {"security_level": [b"TSI_SECURITY_NONE"],
     "transport_security_type": [b"insecure"]}, None, None)


def peer_of(address):
    """Returns gRPC's form of a peer's address."""
    family = "ipv6" if address.startswith("[") else "ipv4"
    host, _, port = address.rpartition(":")
    return f"{family}:{urllib.parse.quote(host, safe='.')}:{port}"


def encoded(text):
    return text if isinstance(text, bytes) else text.encode("utf-8")


class Context(grpc.ServicerContext):
    """The context of a handler, and the answer to its unary call.
    Thread-safe."""

    def __init__(self, received, metadata, queue, identity=NOBODY):
        self._received = received
        self._identity = identity
        self._queue = queue       # runs callbacks after a cancellation
        self._metadata = metadata
        self._lock = threading.Lock()
        self._is_over = False     # answered or abandoned
        self._number = None       # of the report of a cancellation
        self._callbacks = []      # None once they have run
        self._initial = None
        self._trailing = None
        self._code = None
        self._details = None
        self.is_aborted = False
        self.on_over = None       # called with this object when it is over
        self.errors = []          # raised by this object

    # For the server.

    def finish(self, outcome_code, details, message=None):
        """Answers the call, unless it has been answered. A code and details
        that the handler has set replace the arguments."""
        with self._lock:
            if self._is_over:
                return
            self._is_over = True
            head = _wire.PLAIN_OK
            if message is None or not self._is_plain():
                head = self._head(outcome_code, details)
        self._send_end(head, message)
        self._run_callbacks()

    def _send_end(self, head, message):
        self._received.respond(head, b"" if message is None else message)

    def _is_plain(self):
        return not (self._initial or self._trailing or self._code or
                    self._details)

    def _head(self, outcome_code, details):
        code = outcome_code
        if self._code is not None:
            code = (self._code.value[0]
                    if isinstance(self._code, grpc.StatusCode) else 2)
        if self._details is not None:
            details = self._details
        if code == 0:
            details = b""  # gRPC sends none
        try:
            return _wire.encode_response(code, details, self._initial,
                                         self._trailing)
        except (TypeError, ValueError) as error:
            return _wire.encode_response(13, encoded(str(error)), (), ())

    def prove(self, tickets):
        """Answers a client that asks for the proof of a ticket."""
        proof = tickets.prove(self._received.message())
        if proof is None:
            return self.finish(16, b"the ticket is not known")
        return self.finish(0, b"", proof)

    def for_streams(self):
        """Returns the context of the same unary call for a handler of streams.
        This object is not used afterwards."""
        return UnaryStreamContext(self._received, self._metadata, self._queue,
                                  self._identity)

    def decline(self, head=_wire.DECLINED):
        """Asks the client to call over the real channel."""
        with self._lock:
            self._is_over = True
        self._send_end(head, None)
        self._run_callbacks()

    @property
    def is_over(self):
        return self._is_over

    def is_cancelled_by_client(self):
        """Returns true if the client has cancelled the call, or is gone."""
        self._watch()
        return self._received.is_cancelled()

    def _watch(self):
        with self._lock:
            if self._number is not None or self._is_over:
                return
            self._number = number = self._queue.add(self._on_cancelled)
        self._received.watch(number)

    def _on_cancelled(self):
        with self._lock:
            if self._is_over:
                return
            self._is_over = True
        self._run_callbacks()

    def _run_callbacks(self):
        with self._lock:
            callbacks, self._callbacks = self._callbacks, None
            if self._number is not None:
                self._queue.drop(self._number)
        _reports.run(callbacks or ())
        if self.on_over is not None:
            self.on_over(self)

    # For the handler.

    def is_active(self):
        self._watch()
        return not self._is_over and not self._received.is_cancelled()

    def time_remaining(self):
        remaining = self._received.time_remaining()
        return _NO_DEADLINE - time.time() if remaining is None else remaining

    def cancel(self, code=1, details=b"Cancelled on the server side"):
        """Ends the call, unless it has been answered. Ignores the code and the
        metadata that the handler has set."""
        with self._lock:
            if self._is_over:
                return
            self._is_over = True
        self._send_end(_wire.encode_response(code, details, (), ()), None)
        self._run_callbacks()

    def add_callback(self, callback):
        self._watch()
        with self._lock:
            if self._callbacks is None:
                return False
            self._callbacks.append(callback)
            return True

    def invocation_metadata(self):
        return self._metadata

    def peer(self):
        return peer_of(self._received.peer)

    def peer_identities(self):
        return self._identity.identities

    def peer_identity_key(self):
        return self._identity.identity_key

    def auth_context(self):
        return dict(self._identity.auth_context)

    def set_compression(self, compression):
        """Does nothing, because the data plane does not compress."""

    def disable_next_message_compression(self):
        """Does nothing, because the data plane does not compress."""

    def send_initial_metadata(self, initial_metadata):
        if not self.is_active():
            error = grpc.RpcError()
            self.errors.append(error)
            raise error
        with self._lock:
            if self._initial is not None:
                raise ValueError("Initial metadata no longer allowed!")
            self._initial = tuple(initial_metadata or ())
        self._send_initial()

    def _send_initial(self):
        """Does nothing, because the response carries the metadata."""

    def set_trailing_metadata(self, trailing_metadata):
        self._trailing = trailing_metadata

    def trailing_metadata(self):
        return self._trailing

    def abort(self, code, details):
        if code == grpc.StatusCode.OK:
            _LOGGER.error(
                "abort() called with StatusCode.OK; returning UNKNOWN")
            code, details = grpc.StatusCode.UNKNOWN, ""
        self._code = code
        self._details = encoded(details)
        self.is_aborted = True
        raise Exception()

    def abort_with_status(self, status):
        self._trailing = status.trailing_metadata
        self.abort(status.code, status.details)

    def set_code(self, code):
        self._code = code

    def code(self):
        return self._code

    def set_details(self, details):
        self._details = encoded(details)

    def details(self):
        return self._details


class StreamContext(Context):
    """The context of a handler whose call is a stream of messages."""

    def prove(self, tickets):
        del tickets
        self.finish(12, b"Method not found!")

    def write(self, message):
        """Sends a response. Returns false if the call accepts no more
        responses."""
        if self._is_over or not self._received.write(message):
            return False
        with self._lock:
            if self._initial is None:
                self._initial = ()  # none can be sent any more
        return True

    def read(self, as_view=False):
        """Returns the next request, or None after the last one."""
        return self._received.read(as_view)

    def _send_initial(self):
        try:
            head = _wire.encode_initial(self._initial)
        except (TypeError, ValueError):
            return  # the end of the stream says why
        self._has_sent_initial = True
        self._received.send_metadata(head)

    _has_sent_initial = False

    def _head(self, outcome_code, details):
        if self._has_sent_initial:
            self._initial = ()
        return super()._head(outcome_code, details)

    def _send_end(self, head, message):
        if message is not None:
            self._received.write(message)
        self._received.finish(head)


class UnaryStreamContext(Context):
    """The context of a handler for streams whose client makes a unary call:
    there is one request, and one response."""

    TOO_MANY = b"Too many responses for unary request"
    TOO_FEW = b"No message returned for unary request"

    _has_request = True
    _response = None

    def read(self, as_view=False):
        """Returns the request, and then None."""
        if not self._has_request:
            return None
        self._has_request = False
        return self._received.message(as_view)

    def write(self, message):
        """Stores the response. Returns false, and ends the call, if there
        already was a response."""
        if self._response is not None:
            self.finish(13, self.TOO_MANY)
        if self._is_over:
            return False
        self._response = message
        return True

    def finish(self, outcome_code, details, message=None):
        if outcome_code == 0 and message is None:
            message = self._response
            if message is None and self._code in (None, grpc.StatusCode.OK):
                outcome_code, details = 13, self.TOO_FEW
        super().finish(outcome_code, details, message)
