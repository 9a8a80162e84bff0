"""Servers: the real server, and a port for the data plane next to it."""

import collections
import contextvars
import logging
import threading
import time
import traceback

import grpc

from .. import _rpc
from . import (_calls, _context, _identity, _limits, _reports,
               _two_ways, _views, _wire)

_LOGGER = logging.getLogger(__name__)

_END = object()


class Details(
        collections.namedtuple("_HandlerCallDetails",
                               ("method", "invocation_metadata")),
        grpc.HandlerCallDetails):
    pass


class Offers(grpc.ServerInterceptor):
    """Answers the clients that ask for the data plane. Is the first
    interceptor of the real server, so that the program's own interceptors do
    not see the question."""

    def __init__(self, is_for_ever):
        self._is_for_ever = is_for_ever  # no data plane
        self.door = _identity.Door()
        self._handler = grpc.unary_unary_rpc_method_handler(self._behavior())

    def _behavior(self):
        def answer(request, context):
            return self._answer(request, context)

        # Runs on a pool that is not counted, so that the question does not use
        # up one of the server's concurrent calls.
        answer.experimental_thread_pool = _limits.UncountedPool(1)
        return answer

    def intercept_service(self, continuation, handler_call_details):
        if handler_call_details.method == _wire.OFFER_METHOD:
            return None if self._is_for_ever else self._handler
        return continuation(handler_call_details)

    def _answer(self, request, context):
        offer, refusal = self.door.answer(request, context)
        if refusal is not None:
            context.abort(*refusal)
        return offer


class Handlers:
    """The handlers of the program, as its interceptors return them."""

    def __init__(self, generic, interceptors):
        self._generic = list(generic or ())
        self._registered = {}
        self.interceptors = tuple(interceptors or ())

    def add_generic(self, handlers):
        self._generic.extend(handlers)

    def add_registered(self, service, handlers):
        for name, handler in handlers.items():
            self._registered[f"/{service}/{name}"] = handler

    def find(self, details):
        """Returns the handler of a call, or None."""
        return self._intercept(details, 0)

    def _intercept(self, details, index):
        if index == len(self.interceptors):
            return self.own(details)
        return self.interceptors[index].intercept_service(
            lambda changed: self._intercept(changed, index + 1), details)

    def own(self, details):
        handler = self._registered.get(details.method)
        if handler is not None:
            return handler
        for generic in self._generic:
            handler = generic.service(details)
            if handler is not None:
                return handler
        return None


def _context_of(received, metadata, queue, identity=_context.NOBODY):
    kind = (_context.StreamContext if
            isinstance(received, _rpc.ReceivedStream) else _context.Context)
    return kind(received, metadata, queue, identity)


class _Requests:
    """The requests of a stream, for its handler."""

    def __init__(self, context, deserializer):
        self._context = context
        self._deserializer = deserializer

    def __iter__(self):
        return self

    def __next__(self):
        message = self._context.read(_views.are_taken_by(self._deserializer))
        if message is None:
            # Ends the requests. They also end when the server ends the call,
            # although the client might have sent more.
            if (self._context.is_over or
                    self._context.is_cancelled_by_client()):
                error = grpc.RpcError()
                self._context.errors.append(error)
                raise error
            raise StopIteration()
        request = _transformed(message, self._deserializer)
        if request is None:
            self._context.finish(13, b"Exception deserializing request!")
            raise StopIteration()
        return request

    next = __next__


def is_for_streams(handler):
    return handler.request_streaming or handler.response_streaming


def name_of(handler):
    """Returns the name of the attribute of a handler that has the function for
    this kind of call."""
    return "_".join(
        "stream" if is_stream else "unary"
        for is_stream in (handler.request_streaming, handler.response_streaming))


def _transformed(message, function):
    """Returns function(message), or None if the function fails."""
    if function is None:
        return message
    try:
        return function(message)
    except Exception:  # pylint: disable=broad-except
        _LOGGER.exception("Exception transforming message!")
        return None


class _Work:
    """A received call, on its way to its handler."""

    def __init__(self, received, door, handlers, max_send_bytes, queue):
        self._max_send_bytes = max_send_bytes
        self.variables = contextvars.Context()
        self.handler = None
        self._received = received
        self._is_late = False  # waited for a thread of the pool
        try:
            method = received.method  # fails if it is not UTF-8
            metadata = _wire.decode_request(received.metadata)
            if method == _identity.PROVE_METHOD:
                return _context_of(received, (), queue).prove(door.tickets)
            metadata, identity = door.enter(metadata, _context.NOBODY)
        except (PermissionError, ValueError) as error:
            code = 13 if isinstance(error, ValueError) else 16
            return _context_of(received, (), queue).finish(
                code, _context.encoded(str(error)))
        if identity is None:
            return _context_of(received, (), queue).decline(_wire.UNKNOWN_TICKET)
        self.context = _context_of(received, metadata, queue, identity)
        self._is_stream = isinstance(self.context, _context.StreamContext)
        self._find(handlers, Details(method, metadata))

    def _find(self, handlers, details):
        try:
            handler = self.variables.run(handlers.find, details)
        except Exception as error:  # pylint: disable=broad-except
            _LOGGER.exception("Exception servicing handler: %s", error)
            return self.context.finish(2, b"Error in service handler!")
        if handler is None:
            return self.context.finish(12, b"Method not found!")
        if not self._is_stream and is_for_streams(handler):
            self.context = self.context.for_streams()
        self.handler = handler
        self._behavior = getattr(handler, name_of(handler))
        self._is_non_blocking = getattr(self._behavior,
                                        "experimental_non_blocking", False)

    def pool(self, default):
        """Returns the handler's own thread pool, or `default` if the handler
        has none."""
        own = getattr(self._behavior, "experimental_thread_pool", None)
        return default if own is None else own

    def wait_for_pool(self):
        self._is_late = True

    def run(self):
        """Runs the handler on this thread, and answers the call."""
        self.variables.run(self._run)
        if not self._is_non_blocking:
            # Answers the call if the handler has not, which means that the
            # client is gone.
            self.context.finish(1, b"")

    def _run(self):
        context = self.context
        if context.is_over:  # the server has stopped
            return
        if self._is_late and context.is_cancelled_by_client():
            return
        try:
            request = self._request()
            if request is None:
                return
            if self._is_non_blocking:
                # Calls a handler that gives its responses later, on any
                # thread.
                self._call(lambda context: self._behavior(
                    request, context, self._respond_with_next))
                return
            response, is_good = self._call(self._behavior, request)
            if not is_good:
                return
            if self.handler.response_streaming:
                self._respond_with_all(response)
            else:
                self._respond(response)
        except Exception as error:  # pylint: disable=broad-except
            traceback.print_exc()
            context.finish(2, _context.encoded(f"{error}"))

    def _request(self):
        """Returns the request, or the iterator of requests. Returns None if the
        call has an answer."""
        deserializer = self.handler.request_deserializer
        if self.handler.request_streaming:
            return _Requests(self.context, deserializer)
        takes_view = _views.are_taken_by(deserializer)
        message = (self.context.read(takes_view) if self._is_stream else
                   self._received.message(takes_view))
        if message is None:
            self.context.finish(12, _context.encoded(
                f'"{self._received.method}" requires exactly one request '
                "message."))
            return None
        request = _transformed(message, deserializer)
        if request is None:
            self.context.finish(13, b"Exception deserializing request!")
        return request

    def _call(self, function, *arguments, action="calling application"):
        """Calls a function of the program. Returns the result and true. If the
        function fails, answers the call, and returns None and false."""
        context = self.context
        try:
            return function(*arguments, context), True
        except Exception as error:  # pylint: disable=broad-except
            if context.is_aborted:
                context.finish(2, b"RPC Aborted")
            elif error not in context.errors:
                try:
                    details = f"Exception {action}: {error}"
                except Exception:  # pylint: disable=broad-except
                    details = "Calling application raised unprintable Exception!"
                _LOGGER.exception(details)
                context.finish(2, _context.encoded(details))
        return None, False

    def _serialized(self, response):
        """Returns the serialized response. If that fails, answers the call,
        and returns None."""
        message = _transformed(response, self.handler.response_serializer)
        if message is None:
            self.context.finish(13, b"Failed to serialize response!")
        elif len(message) > self._max_send_bytes:
            self.context.finish(8, _context.encoded(_calls.too_large(
                "SERVER", message, self._max_send_bytes)))
            return None
        return message

    def _respond(self, response):
        message = self._serialized(response)
        if message is not None:
            self.context.finish(0, b"", message)

    def _respond_with_next(self, response):
        if response is None:
            return self.context.finish(0, b"")
        message = self._serialized(response)
        if message is not None:
            self.context.write(message)

    def _respond_with_all(self, responses):
        while True:
            response, is_good = self._call(
                lambda context: next(responses, _END),
                action="iterating responses")
            if not is_good:
                return
            if response is _END:
                return self.context.finish(0, b"")
            message = self._serialized(response)
            if message is None or not self.context.write(message):
                return


class _DataPlane:
    """The port of the data plane, and the calls on it."""

    def __init__(self, port, door, pool, handlers, max_send_bytes, limit):
        self._limit = limit
        self._port = port
        self._door = door
        self._max_send_bytes = max_send_bytes
        self._pool = pool
        self._handlers = handlers
        self._queue = _reports.Queue()
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._contexts = set()  # of open calls
        self._is_draining = False
        self.ended = threading.Event()

    def start(self):
        threading.Thread(target=self._serve, name="penstock-serve",
                         daemon=True).start()

    def _serve(self):
        while True:
            received = self._port.serve()
            if received is None:
                return
            work = self._accept(received)
            if work is not None:
                self._submit(work)
            received = work = None  # holds no message while waiting

    def _accept(self, received):
        """Returns the work of a call, or None if the call was answered."""
        if self._is_draining:
            _context_of(received, (), self._queue).decline(_wire.STOPPING)
            return None
        try:
            work = _Work(received, self._door, self._handlers,
                         self._max_send_bytes, self._queue)
        except Exception:  # pylint: disable=broad-except
            # Logs any exception, so that one call does not end the thread that
            # serves all calls.
            _LOGGER.exception("Exception servicing a call!")
            _context_of(received, (), self._queue).finish(
                13, b"Error in service handler!")
            return None
        if work.handler is None:
            return None
        if not self._limit.take():
            work.context.finish(_limits.RESOURCE_EXHAUSTED,
                                _context.encoded(_limits.TEXT))
            return None
        return work

    def _submit(self, work):
        work.wait_for_pool()
        self._open(work)
        pool = work.pool(self._pool)
        try:
            pool.submit(self._run_and_linger, work, pool)
        except RuntimeError as error:  # the pool was shut down
            self._limit.give_back()
            work.context.finish(14, _context.encoded(str(error)))

    def _run_and_linger(self, work, pool):
        """Runs the work, and then the work of calls that arrive soon. These
        calls then need no other thread."""
        while work is not None:
            try:
                work.run()
            finally:
                self._limit.give_back()
            work = None
            if not self._may_linger(pool):
                return
            received = self._port.linger()
            if received is None:
                return
            work = self._accept(received)
            if work is not None and work.pool(self._pool) is not pool:
                return self._submit(work)
            if work is not None:
                self._open(work)

    def _may_linger(self, pool):
        """Returns true if no other work waits for this thread."""
        queue = getattr(pool, "_work_queue", None)
        return queue is not None and queue.empty() and not self._is_draining

    def _open(self, work):
        self._contexts.add(work.context)
        work.context.on_over = self._close
        if work.context.is_over:
            self._close(work.context)

    def _close(self, context):
        self._contexts.discard(context)
        if self._is_draining:
            with self._lock:
                self._changed.notify_all()

    def drain(self):
        """Declines all further calls."""
        self._is_draining = True

    def end(self, grace):
        """Waits up to `grace` seconds for the open calls, cancels the
        remaining ones, and closes the port."""
        deadline = time.monotonic() + grace
        with self._lock:
            while self._contexts and time.monotonic() < deadline:
                self._changed.wait(deadline - time.monotonic())
        for context in list(self._contexts):
            context.cancel(14, _two_ways.STOPPED)
        self._port.close()
        self.ended.set()

    def describe(self):
        return self._port.describe()

    def close(self):
        self._port.close()
        self.ended.set()


class Server(_two_ways.TwoWays, grpc.Server):
    """A server of grpcio's, with a port for the data plane."""

    def __init__(self, make_real, pool, handlers, interceptors, options,
                 reason):
        offers = Offers(is_for_ever=reason is not None)
        real, wrapped = make_real((offers, *(interceptors or ())))
        self._limit = _limits.sync_limit_of(real)
        if self._limit is None:
            wrapped = wrapped or "this grpcio keeps no count of its calls"
        self._pool = pool
        self._set_up(real, offers, Handlers(handlers, interceptors), options,
                     reason or wrapped)

    def _make_plane(self, port):
        return _DataPlane(port, self._door, self._pool, self._handlers,
                          self._max_send_bytes, self._limit)

    def start(self):
        if self._plane is None:
            self._begin_plane()
            if self._plane is not None:
                self._plane.start()
        self._real.start()

    def stop(self, grace):
        if self._plane is None:
            return self._real.stop(grace)
        self._door.close("the server is stopping")
        plane = self._plane
        plane.drain()
        if grace is None:
            plane.end(0)
            return self._real.stop(None)
        stopped = threading.Event()
        real = self._real.stop(grace)

        def end():
            plane.end(grace)
            real.wait()
            stopped.set()

        threading.Thread(target=end, name="penstock-stop").start()
        return stopped

    def wait_for_termination(self, timeout=None):
        end = None if timeout is None else time.monotonic() + timeout
        if self._real.wait_for_termination(timeout):
            return True
        if self._plane is None:
            return False
        return not self._plane.ended.wait(
            None if end is None else max(end - time.monotonic(), 0))

    def __del__(self):
        plane = getattr(self, "_plane", None)
        if plane is not None:
            plane.close()
        delete = getattr(getattr(self, "_real", None), "__del__", None)
        if delete is not None:  # for a program that calls this method
            delete()
