"""Calls of grpc.aio over the data plane.

grpcio's own classes of calls stay between the program and the objects here, and
provide tasks, iterators, interceptors and errors. These classes use an object
of cygrpc._AioCall, which a Call replaces.
"""

import asyncio
import operator
import time

from grpc._cython import cygrpc

from . import _calls, _loops, _open_call, _wire

# Limits the bytes of requests that a stream stores in case it must be repeated
# over grpcio.
_MAX_KEPT_BYTES = 4 * 1024 * 1024
_PLAIN = _wire.Outcome(0, "", (), ())
_CANCELLED = 1


def _status_of(outcome):
    code = _calls.CODES[outcome.code]
    return cygrpc.AioRpcStatus(outcome.code, outcome.details,
                               tuple(outcome.trailing),
                               _calls.debug_text(code, outcome.details))


class Call:
    """A call that may use the data plane, with the functions of cygrpc._AioCall.

    Becomes an _OverReal if only grpcio can make the call, or if the server
    declines the call. Functions that were waiting then continue over grpcio.
    Call all functions on the loop's thread.
    """

    def __init__(self, channel, client, arguments):
        # The status and the callbacks, which grpcio's classes read.
        self._status = None
        self._initial_metadata = None
        self._channel = channel
        self._client = client
        # The arguments of cygrpc.AioChannel.call(): the method, the deadline
        # and others.
        self._arguments = arguments
        self._handle = None  # the call of _rpc
        self._sent = b""  # the head of that call
        self._is_locally_cancelled = False
        self._is_unary = False
        self._has_unary_response = False
        self._response = None
        self._read = []  # the response, as soon as it has been read
        self._done_callbacks = []
        self._waiters = []
        self._is_watched = False  # _on_change() will run
        self._is_declined = False
        self._kept = _Kept()
        self._turns = _loops.Turns()

    # The outcome.

    def _set_status(self, status):
        self._status = status
        self._tell_end()

    def _tell_end(self):
        """Wakes all that wait for the end. If Ctrl-C has interrupted an earlier
        call of this function, continues that call's work."""
        self._kept.drop()
        self._set_initial_metadata(())
        self._wake()
        # Removes all callbacks, which breaks the reference cycle with grpcio's
        # object of the call. Otherwise a closed channel, and with it grpcio's
        # threads, would live until the next garbage collection.
        while self._done_callbacks:
            self._done_callbacks.pop(0)()

    def _set_initial_metadata(self, metadata):
        if self._initial_metadata is None:
            self._initial_metadata = metadata

    def add_done_callback(self, callback):
        if self._status is not None:
            callback()
        else:
            self._done_callbacks.append(callback)

    def time_remaining(self):
        deadline = self._arguments[1]
        return None if deadline is None else max(0, deadline - time.time())

    def cancel(self, details):
        self._is_locally_cancelled = True
        self._set_status(cygrpc.AioRpcStatus(_CANCELLED, details, None, None))
        if self._handle is not None:
            self._handle.end(_CANCELLED, details)

    def done(self):
        return self._status is not None

    def cancelled(self):
        return self._status is not None and self._status.code() == _CANCELLED

    def is_ok(self):
        return self._status is not None and self._status.code() == 0

    def is_locally_cancelled(self):
        return self._is_locally_cancelled

    def set_internal_error(self, text):
        self._set_status(cygrpc.AioRpcStatus(13, "Internal error from Core", (),
                                             text))

    async def status(self):
        while self._status is None:
            await self._change()
            if self._is_real():
                return await self._real.status()
        return self._status

    async def initial_metadata(self):
        while self._initial_metadata is None and not self._take_metadata():
            await self._change()
            if self._is_real():
                return await self._real.initial_metadata()
        return self._initial_metadata

    def __repr__(self):
        if self._status is None:
            return f"<{type(self).__name__} object>"
        code = _calls.CODES[self._status.code()]
        error = ("" if not self._status.code() else
                 f'\tdebug_error_string = "{self._status.debug_error_string()}"\n')
        return (f"<{type(self).__name__} of RPC that terminated with:\n"
                f"\tstatus = {code}\n\tdetails = \"{self._status.details()}\"\n"
                f"{error}>")

    __str__ = __repr__

    # Waits.

    def _wake(self):
        _loops.wake(self._waiters)

    async def _change(self):
        """Waits until something has changed. The caller then checks its
        condition again."""
        # Does not wait for unary calls: the function that makes such a call
        # wakes the other waiters at its end.
        if (self._handle is not None and not self._is_unary and
                not self._is_watched and self._status is None):
            self._is_watched = True
            self._handle.report_change(
                self._channel.queue().add(self._on_change))
        waiter = self._channel.loop.create_future()
        self._waiters.append(waiter)
        await waiter

    def _on_change(self):
        if not self._is_real():
            self._is_watched = False
            self._wake()

    # The beginning.

    def _head(self, metadata):
        """Returns the head of the call, which is sent first. Returns None if
        only grpcio can make the call."""
        if not metadata:
            return self._channel.plain_head + self._client.ticket
        if any(key == "grpc-internal-encoding-request" for key, _ in metadata):
            return None  # the call compresses
        return _wire.encode_request(metadata, self._channel.user_agent +
                                    self._client.ticket)

    def _begin(self, metadata, request=b""):
        """Returns the arguments for a call of the module _rpc, or None if only
        grpcio can make the call."""
        method, deadline = self._arguments[:2]
        timeout = -1.0 if deadline is None else deadline - time.time()
        if deadline is not None and timeout <= 0:
            return None
        head = self._head(metadata)
        if (head is None or type(request) is not bytes or
                len(request) > self._channel.max_send_bytes):
            return None
        return method, head, timeout

    def _is_real(self):
        return False

    def _go_real(self):
        """Turns this object into a call over grpcio. Returns grpcio's call."""
        channel = self._channel
        real = channel.real.call(*self._arguments)
        for callback in self._done_callbacks:
            real.add_done_callback(callback)
        waiters = self._waiters
        self.__dict__.clear()
        self.__class__ = _OverReal
        self._wrap(channel, real)
        _loops.wake(waiters)
        return real

    # A unary call.

    async def unary_unary(self, request, metadata, *context):
        if self._status is not None:  # cancelled before it began
            return None
        begun = self._begin(metadata, request)
        if begun is None:
            return await self._go_real().unary_unary(request, metadata, *context)
        method, self._sent, timeout = begun
        self._is_unary = True
        self._handle = self._client.start(method, self._sent, request, timeout)
        await self._end_of_unary()
        if self._status is not None:
            return None
        code, details, head, message = self._handle.outcome()
        self._handle = None
        outcome = (_PLAIN if head == _wire.PLAIN_OK else
                   _calls.outcome_of(code, details, head))
        if outcome is None:
            self._channel.way.on_decline(self._client, self._sent, head)
            return await self._go_real().unary_unary(request, metadata, *context)
        self._set_initial_metadata(tuple(outcome.initial))
        self._set_status(_status_of(outcome))
        return None if outcome.code else message

    async def _end_of_unary(self):
        waiter = self._channel.loop.create_future()
        queue = self._channel.queue()
        number = queue.add(lambda: waiter.done() or waiter.set_result(None))
        self._handle.report(number)
        try:
            await waiter
        except asyncio.CancelledError:
            queue.drop(number)  # grpcio's class calls cancel()
            raise

    # Streams.

    def _open(self, metadata, request=b""):
        """Returns true if the stream uses the data plane."""
        begun = self._begin(metadata, request)
        if begun is None:
            return False
        method, self._sent, timeout = begun
        self._handle = self._client.open(method, self._sent, timeout,
                                         self._has_unary_response)
        if self._handle is None:
            return False
        self._handle.report(self._channel.queue().add(self._on_end))
        if self._kept.is_half_closed:
            self._handle.half_close()
        return True

    def _on_end(self):
        if self._is_real():  # runs again after Ctrl-C
            return None
        if self._status is not None:
            return self._tell_end()
        code, details, head = self._handle.outcome()
        outcome = _calls.outcome_of(code, details, head)
        if outcome is None:
            self._channel.way.on_decline(self._client, self._sent, head)
            if self._kept.messages is not None:
                self._is_declined = True  # whoever began the stream continues
                return self._wake()
            outcome = _wire.Outcome(14, "the server is stopping", (), ())
        if self._has_unary_response and not outcome.code:
            self._response = _open_call.keep_result(
                self._read, operator.methodcaller("try_read"), self._handle)
            if self._response is None:
                outcome = _wire.Outcome(
                    13, "No message returned for unary request", (), ())
        self._take_metadata()
        self._set_initial_metadata(tuple(outcome.initial))
        return self._set_status(_status_of(outcome))

    def _take_metadata(self):
        """Reads the server's initial metadata. Returns false if the metadata
        has not arrived."""
        if self._handle is None or self._is_unary:
            return False
        head = self._handle.try_metadata()
        if head is None or head is Ellipsis:
            return False
        try:
            metadata = _wire.decode_request(head) if head else ()
        except ValueError:
            self._handle.end(13, "the response is malformed")
            metadata = ()
        self._set_initial_metadata(tuple(metadata))
        self._kept.drop()
        return True

    async def _is_answered(self):
        """Waits for the first answer. Returns false if the server declines the
        call."""
        while (self._status is None and not self._is_declined and
               not self._take_metadata()):
            await self._change()
        return not self._is_declined

    async def initiate_unary_stream(self, request, metadata, *context):
        if self._status is not None:
            return
        if self._open(metadata, request):
            self._handle.try_write(request, True)
            if await self._is_answered():
                return
        await self._go_real().initiate_unary_stream(request, metadata, *context)

    async def initiate_stream_stream(self, metadata, observer, *context):
        if self._status is not None:
            return observer()
        if self._open(metadata):
            observer()
            if await self._is_answered():
                return
        kept = self._kept
        real = self._go_real()
        await real.initiate_stream_stream(metadata, self._resend(kept, observer),
                                          *context)

    async def stream_unary(self, metadata, observer, *context):
        if self._status is not None:
            observer()
            return None
        self._has_unary_response = True
        if self._open(metadata):
            observer()
            while self._status is None and not self._is_declined:
                await self._change()
                self._take_metadata()
            if not self._is_declined:
                return None if self._status.code() else self._response
        kept = self._kept
        real = self._go_real()
        return await real.stream_unary(metadata, self._resend(kept, observer),
                                       *context)

    async def receive_serialized_message(self):
        await self._turns.take()
        if self._is_real():
            return await self.receive_serialized_message()
        while True:
            message = self._handle.try_read()
            if message is None:  # perhaps declined
                await self.status()
                if self._is_real():
                    return await self._real.receive_serialized_message()
                return cygrpc.EOF
            if message is not Ellipsis:
                return message
            await self._change()
            if self._is_real():
                return await self._real.receive_serialized_message()

    async def send_serialized_message(self, message):
        limit = self._channel.max_send_bytes
        if len(message) > limit:
            text = _calls.too_large("CLIENT", message, limit)
            self._handle.end(8, text)
            await self.status()
            raise cygrpc.ExecuteBatchError(text)
        await self._turns.take()
        if self._is_real():
            return await self.send_serialized_message(message)
        self._kept.add(message)
        while True:
            written = self._handle.try_write(message, False)
            if written is False and self._status is None:
                await asyncio.sleep(0)  # lets other tasks run
            if written is not Ellipsis:
                return
            await self._change()
            if self._is_real():
                return  # kept messages are sent again

    async def send_receive_close(self):
        self._kept.is_half_closed = True
        if self._handle is not None:  # else the stream opens later
            self._handle.half_close()


class _Kept:
    """The requests that a stream has sent before its first answer."""

    def __init__(self):
        self.messages = []  # None: too many, or not needed
        self.is_half_closed = False
        self._bytes = 0

    def add(self, message):
        self._bytes += len(message)
        if self._bytes > _MAX_KEPT_BYTES:
            self.drop()
        if self.messages is not None:
            self.messages.append(message)

    def drop(self):
        self.messages = None


def over_real(channel, real):
    """Wraps a cygrpc._AioCall as a call of a CoreChannel. A channel that
    closes finds its calls in this form."""
    call = _OverReal.__new__(_OverReal)
    call._wrap(channel, real)
    return call


class _OverReal:
    """A Call over grpcio. `_real` is its cygrpc._AioCall."""

    _again = None  # the task that sends requests of a declined stream again

    def _wrap(self, channel, real):
        self._channel = channel
        self._real = real

    def __getattr__(self, name):
        return getattr(self.__dict__["_real"], name)

    def __repr__(self):
        return repr(self._real)

    __str__ = __repr__

    def _is_real(self):
        return True

    def _resend(self, kept, observer):
        """Returns the callback that grpcio's call runs after it has sent its
        metadata. The callback sends the kept requests, before the program's
        next ones."""
        if not kept.messages and not kept.is_half_closed:
            return observer

        async def send():
            for message in kept.messages:
                await self._real.send_serialized_message(message)
            if kept.is_half_closed:
                await self._real.send_receive_close()

        def on_sent():
            if not self._again.done():
                self._again.set_result(asyncio.ensure_future(send()))
            observer()

        self._again = asyncio.get_running_loop().create_future()
        self._real.add_done_callback(self._leave_again)
        return on_sent

    def _leave_again(self):
        """Ends the wait of writers if the call has ended before it began over
        grpcio."""
        if not self._again.done():
            self._again.set_result(None)

    async def _is_sent(self):
        sending = self._again and await asyncio.shield(self._again)
        if sending is not None:
            await asyncio.wait((sending,))

    async def send_serialized_message(self, message):
        await self._is_sent()
        await self._real.send_serialized_message(message)

    async def send_receive_close(self):
        await self._is_sent()
        await self._real.send_receive_close()
