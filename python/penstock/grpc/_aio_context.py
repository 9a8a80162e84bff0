"""The contexts of handlers of grpc.aio, for calls over the data plane.

The functions, errors and texts are those of grpcio's own contexts, of which
there is no class to inherit.
"""

import asyncio
import functools

import grpc
import grpc.aio
from grpc._cython import cygrpc

from .. import _rpc
from . import _calls, _context, _loops, _views, _wire

_ABORTED = "Locally aborted."
_FINISHED = "RPC already finished."


def _code_of(code):
    """Returns the number of a status code. Returns that of UNKNOWN for
    anything else."""
    number = code if isinstance(code, int) else code.value[0]
    return number if number in _calls.CODES else 2


def _checked(metadata):
    """Returns trailing metadata. Raises TypeError in the same cases as
    grpcio."""
    if not hasattr(metadata, "__iter__") or isinstance(metadata, dict):
        raise TypeError("Invalid trailing metadata type, expected "
                        f"Iterable[MetadatumType]: {metadata}")
    metadata = tuple(metadata)
    for entry in metadata:
        if not (isinstance(entry, tuple) and len(entry) == 2 and
                isinstance(entry[0], str) and
                isinstance(entry[1], (str, bytes))):
            raise TypeError("Invalid metadatum: expected a tuple of a key and a "
                            f"value: {entry!r}")
    return metadata


def serialized(response, serializer):
    """Returns the serialized message. An error of the serializer counts as an
    error of the handler."""
    message = response if serializer is None else serializer(response)
    if type(message) is not bytes:
        raise TypeError(f"Expected bytes, got {type(message).__name__}")
    return message


class Context(grpc.aio.ServicerContext):
    """The context of a handler, and the answer to its call. Call all functions
    on the loop's thread."""

    def __init__(self, received, metadata, queue, loop, max_send_bytes,
                 identity=_context.NOBODY):
        self._received = received
        self._identity = identity
        self.is_stream = isinstance(received, _rpc.ReceivedStream)
        self._metadata = metadata
        self._queue = queue
        self._loop = loop
        self._max_send_bytes = max_send_bytes
        self._initial = None
        self._has_sent_initial = False
        self._trailing = ()
        self.status_code = 0
        self._code = None
        self._details = ""
        self._waiters = []
        self._is_watched = False
        self._turns = _loops.Turns()
        self.callbacks = []
        self._has_request = True  # of a unary call: not read yet
        # The message that read_request() has read, until the handler begins. An
        # Ellipsis means that there was none yet.
        self.request = []
        self._written = []  # not empty after the only response of a stream
        self._response = None  # of a unary call's handler for streams
        self.handler = None
        self.abort_error = None
        self.is_over = False  # answered

    # For the server.

    def raise_for_termination(self):
        """Raises if the handler may not answer any more."""
        if self.abort_error is not None:
            raise self.abort_error
        if self.is_over:
            raise cygrpc.UsageError(_FINISHED)

    def finish(self, code, details, message=None):
        """Answers the call, unless it has been answered. If Ctrl-C interrupts
        this function, a second call continues."""
        if self.is_over:
            return
        head = _wire.PLAIN_OK
        if code or details or self._initial or self._trailing:
            head = self._head(code, details)
        self._send_end(head, message)

    def finish_well(self, message=None):
        """Answers with the code and the details that the handler has set."""
        if not self.is_stream and message is None and not self.status_code:
            message = self._response
            if message is None:
                return self.finish(13, _context.UnaryStreamContext.TOO_FEW)
        if message is not None and len(message) > self._max_send_bytes:
            return self.finish(8, _calls.too_large("SERVER", message,
                                                   self._max_send_bytes))
        self.finish(self.status_code, self._details,
                    None if self.status_code else message)

    def prove(self, message, tickets):
        """Answers a client that asks for the proof of a ticket. `message` is
        the question, or None for a stream."""
        proof = None if message is None else tickets.prove(message)
        if proof is None:
            return self.finish(16, "the ticket is not known")
        return self.finish(0, "", proof)

    def decline(self, head=_wire.DECLINED):
        """Asks the client to call over the real channel."""
        self._send_end(head, None)

    def _send_end(self, head, message):
        if not self.is_stream:
            self._received.respond(head, message or b"")
        else:
            if message is not None and not self._written:
                # Writes without waiting. There is room, because this is the
                # stream's only response. Ctrl-C cannot interrupt between
                # writing the message and remembering that.
                self._written.extend(map(self._received.write, (message,)))
            self._received.finish(head)
        self._wake()
        self.is_over = True

    def _head(self, code, details):
        initial = () if self._has_sent_initial else self._initial
        details = b"" if code == 0 else _context.encoded(details or "")
        try:
            return _wire.encode_response(code, details, initial, self._trailing)
        except (TypeError, ValueError) as error:
            return _wire.encode_response(13, _context.encoded(str(error)), (), ())

    async def _change(self):
        """Waits until a message may be read or written."""
        if not self._is_watched:
            self._received.report_change(self._queue.add(self._on_change))
            self._is_watched = True
        waiter = self._loop.create_future()
        self._waiters.append(waiter)
        await waiter

    def _on_change(self):
        self._is_watched = False
        self._wake()

    def _wake(self):
        _loops.wake(self._waiters)

    async def read_request(self):
        """Returns the only request's message, or None if the call was
        cancelled before. Returns the same message if called again, until the
        caller empties `request`."""
        self._has_request = False  # for read_message()
        as_view = _views.are_taken_by(self.handler.request_deserializer)
        read = (self._received.try_read if self.is_stream else
                self._received.message)
        while not self.is_over:
            if not self.request or self.request[0] is Ellipsis:
                # Ctrl-C cannot interrupt between reading and storing the
                # message, because no Python code runs in between.
                self.request[:] = map(read, (as_view,))
            if self.request[0] is not Ellipsis:
                return self.request[0]
            await self._change()
        return None

    async def read_message(self):
        """Returns the next request's message, or None after the last one."""
        as_view = _views.are_taken_by(self.handler.request_deserializer)
        if not self.is_stream:
            is_first, self._has_request = self._has_request, False
            return self._received.message(as_view) if is_first else None
        await self._turns.take()
        while True:
            if self.is_over:
                return None
            message = self._received.try_read(as_view)
            if message is not Ellipsis:
                return message
            await self._change()

    # For the handler.

    async def read(self):
        self.raise_for_termination()
        message = await self.read_message()
        self.raise_for_termination()
        if message is None:
            return cygrpc.EOF
        deserializer = self.handler.request_deserializer
        return message if deserializer is None else deserializer(message)

    async def write(self, message):
        await self._turns.take()
        self.raise_for_termination()
        message = serialized(message, self.handler.response_serializer)
        if len(message) > self._max_send_bytes:
            return self.finish(8, _calls.too_large("SERVER", message,
                                                   self._max_send_bytes))
        if not self.is_stream:
            return self._keep(message)
        while True:
            written = self._received.try_write(message)
            if written is False:
                raise cygrpc.ExecuteBatchError("the call has ended")
            if written is True:
                self._has_sent_initial = True
                return None
            await self._change()

    def _keep(self, response):
        """Stores the response of a handler for streams whose client makes a
        unary call. Raises if there already was a response."""
        if self._response is not None:
            self.finish(13, _context.UnaryStreamContext.TOO_MANY)
            raise cygrpc.ExecuteBatchError("the call has ended")
        self._response = response

    async def send_initial_metadata(self, initial_metadata):
        self.raise_for_termination()
        if self._has_sent_initial or self._initial is not None:
            raise cygrpc.UsageError("Send initial metadata failed: already sent")
        self._initial = tuple(initial_metadata)
        if not self.is_stream:
            return  # the response carries the metadata
        try:
            head = _wire.encode_initial(self._initial)
        except (TypeError, ValueError):
            return  # the end of the stream says why
        self._has_sent_initial = True
        self._received.send_metadata(head)

    async def abort(self, code, details="", trailing_metadata=()):
        if self.abort_error is not None:
            raise cygrpc.UsageError("Abort already called!")
        self.abort_error = cygrpc.AbortError(_ABORTED)
        if trailing_metadata or not self._trailing:
            self._trailing = _checked(trailing_metadata)
        self._details = details or self._details
        self._code = code
        self.status_code = _code_of(code)
        self.finish(self.status_code, self._details)
        raise self.abort_error

    async def abort_with_status(self, status):
        await self.abort(status.code, status.details, status.trailing_metadata)

    def set_trailing_metadata(self, trailing_metadata):
        self._trailing = _checked(trailing_metadata)

    def trailing_metadata(self):
        return self._trailing

    def invocation_metadata(self):
        return self._metadata

    def set_code(self, code):
        self.status_code = _code_of(code)
        self._code = code

    def code(self):
        return self._code

    def set_details(self, details):
        self._details = details

    def details(self):
        return self._details

    def set_compression(self, compression):
        """Does nothing to messages, because the data plane does not compress."""
        if self._has_sent_initial:
            raise RuntimeError("Compression setting must be specified before "
                               "sending initial metadata")

    def disable_next_message_compression(self):
        """Does nothing, because the data plane does not compress."""

    def peer(self):
        return _context.peer_of(self._received.peer)

    def peer_identities(self):
        return self._identity.identities

    def peer_identity_key(self):
        return self._identity.identity_key

    def auth_context(self):
        return dict(self._identity.auth_context)

    def time_remaining(self):
        return self._received.time_remaining()

    def add_done_callback(self, callback):
        self.callbacks.append(functools.partial(callback, self))

    def done(self):
        return self.is_over

    def cancelled(self):
        return self.status_code == 1


class SyncContext:
    """The context of a handler that is not a coroutine. The handler runs on a
    thread of the server's pool."""

    def __init__(self, context, loop):
        self._context = context
        self._loop = loop
        self.callbacks = []

    def __getattr__(self, name):
        return getattr(self._context, name)

    def _wait(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    def abort(self, code, details="", trailing_metadata=()):
        self._wait(self._context.abort(code, details, trailing_metadata))

    def abort_with_status(self, status):
        self.abort(status.code, status.details, status.trailing_metadata)

    def send_initial_metadata(self, metadata):
        self._wait(self._context.send_initial_metadata(metadata))

    def add_callback(self, callback):
        self.callbacks.append(callback)
