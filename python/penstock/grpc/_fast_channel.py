"""Channels that make calls over the data plane if possible, and otherwise by
grpcio."""

import asyncio
import logging
import os
import threading
import time
import weakref

import grpc

from .. import _rpc
from . import (_calls, _identity, _open_call, _reports, _rules, _stream_calls,
               _views, _wire)

_LOGGER = logging.getLogger(__name__)

# The default limit of a received message (grpc.max_receive_message_length).
_MAX_RECEIVE_BYTES = 4 * 1024 * 1024
# The pause before a channel asks again, in seconds. The pause doubles up to
# the second number.
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 60.0
# The time limit of the question, in seconds.
OFFER_LIMIT = 20.0

live = weakref.WeakSet()  # the channels of the process
_ways = weakref.WeakSet()


class _Connection(_rpc.Client):
    """A client of the server that an offer names, with the channel's ticket
    for that server."""

    def __init__(self, address, offer, max_receive_bytes, keepalive):
        super().__init__(address, offer.token, max_receive_bytes, keepalive)
        self._origin = offer.port, offer.token
        self.take_ticket(offer)
        self._proof = offer.ticket and _identity.Proof(offer.ticket)

    def take_ticket(self, offer):
        """Uses the ticket of an offer for later calls."""
        # The last metadata entry in the heads of calls.
        self.ticket = offer.ticket and _identity.entry_of(offer.ticket)

    def is_of(self, offer):
        """Returns true if the offer comes from the same server: if the token
        is the same."""
        return self._origin == (offer.port, offer.token)

    def is_proved(self):
        """Returns true if the server needs no proof of its identity, or has
        given the proof. Raises the exceptions of Proof.is_given()."""
        if self._proof and self._proof.is_given(self):
            self._proof = None
        return not self._proof


class Way:
    """The connection of one channel to the server's data plane. Asks the server
    for its data plane through the real channel, connects, and connects again
    after a loss.

    `reason` is None while the data plane is in use. Otherwise `reason` says why
    calls take the real channel.
    """

    def __init__(self, ask, host, options, reason, is_secure=False):
        """Makes the object, without a connection. `ask` is a function that
        takes the question and a callback, and asks the server. Later, `ask`
        calls the callback once, with a function that returns the server's offer
        or raises the error."""
        self.client = None  # the _Connection in use
        self.reason = reason or "not asked yet"
        self._is_secure = is_secure
        self._is_for_ever = reason is not None
        self._host = host
        limit = _rules.option(options, "grpc.max_receive_message_length",
                              _MAX_RECEIVE_BYTES)
        self._max_receive_bytes = limit if limit >= 0 else -1
        self._keepalive = _rules.keepalive(options)
        self._ask = ask
        self._lock = threading.Lock()
        self._candidate = None  # a client that is not ready yet
        self._ticketless = None  # a client that needs a new ticket
        self._retired = []  # clients with open calls at stopping servers
        self._is_asking = False
        self._next = 0.0  # when to ask
        self._pause = _FIRST_PAUSE
        _ways.add(self)

    def look(self):
        """Returns the client to use now, or None. Asks the server again if a
        new attempt is due."""
        if self._is_for_ever:
            return None
        with self._lock:
            if self._is_for_ever:
                return None
            client = self.client
            if client is not None:
                if not client.is_over():
                    return client
                self.client = None
                self._try_later("the connection was lost")
            candidate = self._candidate
            if candidate is not None:
                if candidate.is_ready() and self._is_proved(candidate):
                    self.client, self._candidate = candidate, None
                    self.reason, self._pause = None, _FIRST_PAUSE
                    return candidate
                if self._candidate is None or not candidate.is_over():
                    return None
                self._candidate = None
                self._try_later("the data plane cannot be reached")
            if self._is_asking or time.monotonic() < self._next:
                return None
            self._is_asking = True
        self._begin_asking()
        return None

    def _is_proved(self, candidate):
        """Returns true if the candidate's server needs no proof of its
        identity, or has given the proof. After a wrong proof, the channel
        stays with grpcio. Call it with the lock."""
        try:
            return candidate.is_proved()
        except ConnectionError as error:
            candidate.close()
            self._candidate = None
            self._try_later(str(error))
            return False
        except ValueError as error:
            _LOGGER.warning("calls to %s go over grpcio: %s", self._host, error)
            self._leave(str(error))
            return False

    def _begin_asking(self):
        try:
            self._ask(_rules.host_identity() if self._is_secure else b"",
                      self._on_answer)
        except Exception as error:  # pylint: disable=broad-except
            with self._lock:
                self._is_asking = False
                self._try_later(f"the question failed: {error}")

    def _try_later(self, reason):
        self.reason = reason
        self._next = time.monotonic() + self._pause
        self._pause = min(2 * self._pause, _LONGEST_PAUSE)

    def _on_answer(self, result):
        candidate, reason, is_final, is_closed = None, None, False, False
        try:
            offer = _wire.decode_offer(result())
            address, reason = _rules.address_of_offer(offer, self._host,
                                                      self._is_secure)
            if self._is_secure and len(offer.ticket) != _identity.TICKET_BYTES:
                address, reason = None, "the server gives no ticket"
            if address is None:
                is_final = True
            else:
                candidate = self._renewed(offer) or _Connection(
                    address, offer, self._max_receive_bytes, self._keepalive)
        except (grpc.FutureCancelledError, asyncio.CancelledError):
            reason, is_final, is_closed = "the channel was closed", True, True
        except grpc.RpcError as error:
            is_final = error.code() in (grpc.StatusCode.UNIMPLEMENTED,
                                        grpc.StatusCode.FAILED_PRECONDITION)
            reason = f"the server has no data plane: {error.details()}"
        except (RuntimeError, TypeError, ValueError) as error:
            reason, is_final = str(error), True
        with self._lock:
            self._is_asking = False
            if self._is_for_ever:  # closed meanwhile
                reason, is_final, is_closed = self.reason, True, True
            elif reason is None:
                self._candidate, self.reason = candidate, "connecting"
                return
            elif is_final:
                self._is_for_ever, self.reason = True, reason
            else:
                self._try_later(reason)
        if is_final and not is_closed:
            _LOGGER.info("calls to %s go over grpcio: %s", self._host, reason)
        if is_final and candidate is not None:
            candidate.close()

    def _renewed(self, offer):
        """Returns the same client with a new ticket. Returns None if there is
        no ticket, or if another server answers. The server need not prove its
        identity again, because it knows the same token."""
        with self._lock:
            client, self._ticketless = self._ticketless, None
            if client is None:
                return None
            if not client.is_of(offer) or client.is_over():
                self._retire(client)
                return None
            client.take_ticket(offer)
            return client

    def _retire(self, client):
        """Stops using a client for new calls, but keeps it for its open calls.
        Call it with the lock."""
        self._retired = [one for one in self._retired if not one.is_over()]
        self._retired.append(client)

    def on_decline(self, client, sent, head):
        """Stops using `client` for new calls if its server is stopping, or,
        until there is a new ticket, if the server does not know the ticket.
        `sent` is the head of the call, and `head` that of the server's answer.
        The client stays for its open calls."""
        if head not in (_wire.STOPPING, _wire.UNKNOWN_TICKET):
            return
        with self._lock:
            if self.client is not client:
                return
            if head == _wire.UNKNOWN_TICKET and not sent.endswith(client.ticket):
                return  # the client already has a newer ticket
            self.client = None
            if head == _wire.STOPPING:
                self._retire(client)
                self._try_later("the server is stopping")
            else:
                self._ticketless = client
                self._try_later("the server does not know the ticket any more")

    def leave(self, reason):
        """Stays with the real channel for ever."""
        _LOGGER.info("calls to %s go over grpcio: %s", self._host, reason)
        with self._lock:
            self._leave(reason)

    def _leave(self, reason):
        self.client = self._candidate = self._ticketless = None
        self._retired = []
        self._is_for_ever, self.reason = True, reason

    def leave_parent(self):
        """Stays with the real channel in a forked child. Drops the clients,
        which belong to the parent."""
        self._lock = threading.Lock()
        self._leave("the process was forked")

    def close(self):
        with self._lock:
            clients = [self.client, self._candidate, self._ticketless,
                       *self._retired]
            self._leave("the channel is closed")
        for client in clients:
            if client is not None:
                client.close()

    def describe(self):
        """Returns a tuple for describe(): (path, detail, reason)."""
        self.look()
        client = self.client
        path = client.describe() if client is not None else None
        return path or ("grpcio", "", self.reason or "the connection was lost")


def _leave_parent():
    for way in list(_ways):
        way.leave_parent()


os.register_at_fork(after_in_child=_leave_parent)


class _Method:
    """A method of a channel: the part that all kinds of calls share."""

    def __init__(self, channel, real, method, serializer, deserializer):
        self._way = channel._way
        self._real = real
        self._method = _text(method)
        self._serializer = serializer
        self._deserializer = deserializer
        self._takes_view = _views.are_taken_by(deserializer)
        self._user_agent = channel._user_agent
        self._plain_head = _wire.encode_request((), self._user_agent)
        self._max_send_bytes = channel._max_send_bytes
        self._queue = channel._queue

    def _head(self, client, timeout, metadata, credentials, compression):
        """Returns the head of a call, which is sent first. Returns None if
        only the real channel can make the call."""
        if credentials is not None or _rules.changes_messages(compression):
            return None
        if timeout is not None and not (isinstance(timeout, (int, float)) and
                                        timeout > 0):
            return None
        if not metadata:
            return self._plain_head + client.ticket
        if not isinstance(metadata, (tuple, list)):
            return None
        return _wire.encode_request(metadata, self._user_agent + client.ticket)

    def _begin(self, timeout, metadata, credentials, compression):
        """Returns the client and the head, or None for a call over the real
        channel."""
        client = self._way.client
        if client is None or client.is_over():
            client = self._way.look()
            if client is None:
                return None
        head = self._head(client, timeout, metadata, credentials, compression)
        return None if head is None else (client, head)

    def _again(self, client, sent, real):
        """Returns a function that makes a declined call over the real channel,
        by `real`. The function takes the head of the server's answer. `sent` is
        the head of the call."""

        def begin(head):
            self._way.on_decline(client, sent, head)
            return real()

        return begin

    def _serialized(self, request):
        """Returns the serialized message. Returns None for a type that only
        the real channel can judge. Raises like grpcio if the serializer
        fails."""
        if self._serializer is None:
            message = request
        else:
            try:
                message = self._serializer(request)
            except Exception:  # pylint: disable=broad-except
                _LOGGER.exception("Exception serializing message!")
                raise _calls.CallError(_wire.Outcome(
                    13, "Exception serializing request!", (), ())) from None
        if type(message) is not bytes or len(message) > self._max_send_bytes:
            return None
        return message

    def _prepare(self, request, *how):
        """Returns the client, the head and the message, or None for a call over
        the real channel."""
        begun = self._begin(*how)
        message = begun and self._serialized(request)
        return None if message is None else (*begun, message)


class _UnaryUnary(_Method, grpc.UnaryUnaryMultiCallable):

    def _blocking(self, prepared, timeout):
        """Returns the outcome and the response, or None if the server has
        declined the call."""
        client, sent, message = prepared
        code, details, head, message = client.call(
            self._method, sent, message, _seconds(timeout), self._takes_view)
        outcome = (_PLAIN if head == _wire.PLAIN_OK else
                   _calls.outcome_of(code, details, head))
        if outcome is None:
            self._way.on_decline(client, sent, head)
            return None
        return _calls.deserialized(outcome, message, self._deserializer)

    def __call__(self, request, timeout=None, metadata=None, credentials=None,
                 wait_for_ready=None, compression=None):
        prepared = self._prepare(request, timeout, metadata, credentials,
                                 compression)
        ended = prepared and self._blocking(prepared, timeout)
        if not ended:
            return self._real(request, timeout, metadata, credentials,
                              wait_for_ready, compression)
        outcome, response = ended
        if outcome.code:
            raise _calls.CallError(outcome)
        return response

    def with_call(self, request, timeout=None, metadata=None, credentials=None,
                  wait_for_ready=None, compression=None):
        prepared = self._prepare(request, timeout, metadata, credentials,
                                 compression)
        deadline = _deadline(timeout)
        ended = prepared and self._blocking(prepared, timeout)
        if not ended:
            return self._real.with_call(request, timeout, metadata, credentials,
                                        wait_for_ready, compression)
        outcome, response = ended
        if outcome.code:
            raise _calls.CallError(outcome)
        return response, _calls.EndedCall(outcome, deadline, response)

    def future(self, request, timeout=None, metadata=None, credentials=None,
               wait_for_ready=None, compression=None):
        def real():
            return self._real.future(request, timeout, metadata, credentials,
                                     wait_for_ready, compression)

        prepared = self._prepare(request, timeout, metadata, credentials,
                                 compression)
        if prepared is None:
            return real()
        client, head, message = prepared
        call = client.start(self._method, head, message, _seconds(timeout))
        return _open_call.FutureCall(call, self._deserializer,
                                     _deadline(timeout),
                                     self._again(client, head, real),
                                     self._queue)


def _seconds(timeout):
    return -1.0 if timeout is None else float(timeout)


class _UnaryStream(_Method, grpc.UnaryStreamMultiCallable):

    def __call__(self, request, timeout=None, metadata=None, credentials=None,
                 wait_for_ready=None, compression=None):
        def real():
            return self._real(request, timeout, metadata, credentials,
                              wait_for_ready, compression)

        prepared = self._prepare(request, timeout, metadata, credentials,
                                 compression)
        stream = prepared and prepared[0].open(self._method, prepared[1],
                                               _seconds(timeout), False)
        if not stream:
            return real()
        stream.write(prepared[2], True)
        return _stream_calls.StreamCall(stream, self._deserializer,
                                        _deadline(timeout),
                                        self._again(*prepared[:2], real),
                                        self._queue)


class _StreamStream(_Method, grpc.StreamStreamMultiCallable):

    _is_unary_response = False

    def _start(self, request_iterator, timeout, metadata, credentials,
               wait_for_ready, compression):
        """Returns a call, or None for a call over the real channel."""
        begun = self._begin(timeout, metadata, credentials, compression)
        stream = begun and begun[0].open(self._method, begun[1],
                                         _seconds(timeout),
                                         self._is_unary_response)
        if not stream:
            return None
        requests = _stream_calls.Requests(request_iterator)

        def real():
            again = requests.again()
            if again is None:
                return None
            method = (self._real.future if self._is_unary_response else
                      self._real)
            return method(again, timeout, metadata, credentials, wait_for_ready,
                          compression)

        _stream_calls.send_requests(stream, requests, self._serializer,
                                    self._max_send_bytes)
        return _stream_calls.StreamCall(stream, self._deserializer,
                                        _deadline(timeout),
                                        self._again(*begun, real),
                                        self._queue, self._is_unary_response,
                                        requests)

    def __call__(self, request_iterator, timeout=None, metadata=None,
                 credentials=None, wait_for_ready=None, compression=None):
        call = self._start(request_iterator, timeout, metadata, credentials,
                           wait_for_ready, compression)
        return call or self._real(request_iterator, timeout, metadata,
                                  credentials, wait_for_ready, compression)


class _StreamUnary(_StreamStream, grpc.StreamUnaryMultiCallable):

    _is_unary_response = True

    def __call__(self, request_iterator, timeout=None, metadata=None,
                 credentials=None, wait_for_ready=None, compression=None):
        return self.with_call(request_iterator, timeout, metadata, credentials,
                              wait_for_ready, compression)[0]

    def with_call(self, request_iterator, timeout=None, metadata=None,
                  credentials=None, wait_for_ready=None, compression=None):
        call = self._start(request_iterator, timeout, metadata, credentials,
                           wait_for_ready, compression)
        if call is None:
            return self._real.with_call(request_iterator, timeout, metadata,
                                        credentials, wait_for_ready,
                                        compression)
        try:
            return call.result(), call
        except grpc.RpcError as error:
            raise _calls.CallError(_calls.outcome_from(error)) from None

    def future(self, request_iterator, timeout=None, metadata=None,
               credentials=None, wait_for_ready=None, compression=None):
        call = self._start(request_iterator, timeout, metadata, credentials,
                           wait_for_ready, compression)
        return call or self._real.future(request_iterator, timeout, metadata,
                                         credentials, wait_for_ready,
                                         compression)


_PLAIN = _wire.Outcome(0, "", (), ())


def _text(method):
    return method.decode() if isinstance(method, bytes) else method


def _deadline(timeout):
    return None if timeout is None else time.time() + timeout


def _asking(real):
    """Returns a function that asks the server for its data plane, for Way."""
    method = real.unary_unary(_wire.OFFER_METHOD)

    def ask(question, on_answer):
        method.future(question, timeout=OFFER_LIMIT).add_done_callback(
            lambda answer: on_answer(answer.result))

    return ask


class Channel(grpc.Channel):
    """A channel of grpcio, and a data plane for the calls that can use it."""

    def __init__(self, target, real, options, reason, is_secure=False):
        options = tuple(options or ())
        self._target = target
        self._real = real
        host = None
        if reason is None:
            host, reason = _rules.host_of_target(target, options)
        if reason is not None:
            _LOGGER.info("calls to %s go over grpcio: %s", target, reason)
        self._way = Way(_asking(real), host, options, reason, is_secure)
        self._max_send_bytes = _rules.max_send_bytes(options)
        self._queue = _reports.Queue()
        primary = _rules.option(options, "grpc.primary_user_agent", "")
        self._user_agent = _wire.user_agent(
            f"{primary} grpc-python/{grpc.__version__} penstock".strip())
        live.add(self)

    def describe(self):
        """Returns a tuple for describe(): (target, path, detail, reason)."""
        return (self._target, *self._way.describe())

    def subscribe(self, callback, try_to_connect=False):
        self._real.subscribe(callback, try_to_connect=try_to_connect)

    def unsubscribe(self, callback):
        self._real.unsubscribe(callback)

    def unary_unary(self, *args, **kwargs):
        return self._method(_UnaryUnary, self._real.unary_unary, *args,
                            **kwargs)

    def unary_stream(self, *args, **kwargs):
        return self._method(_UnaryStream, self._real.unary_stream, *args,
                            **kwargs)

    def stream_unary(self, *args, **kwargs):
        return self._method(_StreamUnary, self._real.stream_unary, *args,
                            **kwargs)

    def stream_stream(self, *args, **kwargs):
        return self._method(_StreamStream, self._real.stream_stream, *args,
                            **kwargs)

    # Accepts _registered_method, which later releases of grpcio pass, and
    # which only the real channel needs.
    def _method(self, kind, make_real, method, request_serializer=None,
                response_deserializer=None, *args, **kwargs):
        real = make_real(method, request_serializer, response_deserializer,
                         *args, **kwargs)
        if not _wire.has_room_for(method):
            return real
        return kind(self, real, method, request_serializer,
                    response_deserializer)

    def close(self):
        self._way.close()
        self._real.close()

    def __enter__(self):
        return self

    def __exit__(self, exc_type, exc_val, exc_tb):
        self.close()
        return False
