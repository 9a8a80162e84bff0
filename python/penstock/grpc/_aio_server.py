"""Servers of grpc.aio: the real server, and a port for the data plane next to
it."""

import asyncio
import collections
import contextvars
import inspect
import itertools
import logging
import time

import grpc
import grpc.aio
from grpc._cython import cygrpc

from . import (_aio_context, _context, _fast_server, _identity, _limits, _loops,
               _two_ways, _wire)

_LOGGER = logging.getLogger(__name__)

# Limits the calls that begin in one turn of the loop. One call takes some 50
# us.
_MAX_ACCEPTED = 32
_END = object()


async def _refuse(requests, context):
    del requests
    await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, _limits.TEXT)


# A handler that refuses calls of any kind, because it reads no request.
_REFUSES = grpc.stream_unary_rpc_method_handler(_refuse)


class Offers(grpc.aio.ServerInterceptor):
    """Answers the clients that ask for the data plane, like
    _fast_server.Offers. Refuses calls over grpcio above the limit."""

    def __init__(self, limit):
        self.door = _identity.Door()
        self._limit = limit
        self._handler = grpc.unary_unary_rpc_method_handler(self._answer)

    async def intercept_service(self, continuation, handler_call_details):
        if handler_call_details.method == _wire.OFFER_METHOD:
            return self._handler
        handler = await continuation(handler_call_details)
        if handler is None or await self._limit.take():
            return handler
        return _REFUSES

    async def _answer(self, request, context):
        offer, refusal = self.door.answer(request, context)
        if refusal is not None:
            await context.abort(*refusal)
        return offer


class _Handlers(_fast_server.Handlers):
    """The handlers of the program, as its interceptors return them. The
    interceptors are coroutines."""

    async def find_soon(self, details):
        """Returns the handler of a call, or None."""
        if not self.interceptors:
            return self.own(details)
        return await self._intercept_soon(details, 0)

    async def _intercept_soon(self, details, index):
        if index == len(self.interceptors):
            return self.own(details)
        return await self.interceptors[index].intercept_service(
            lambda changed: self._intercept_soon(changed, index + 1), details)


class _Requests:
    """The requests of a stream, for its handler."""

    def __init__(self, context):
        self._context = context

    def __aiter__(self):
        return self

    async def __anext__(self):
        request = await self._context.read()
        if request is cygrpc.EOF:
            raise StopAsyncIteration()
        return request


def _is_async(function):
    return (inspect.iscoroutinefunction(function) or
            inspect.isasyncgenfunction(function) or
            inspect.isawaitable(function))


def _close(responses):
    """Ends the generator of a handler, unless a thread is still running it."""
    close = getattr(responses, "close", None)
    try:
        if close is not None:
            close()
    except ValueError:
        pass  # the thread removes it


class _Taken(list):
    """A received call, and then its _Call as soon as there is one, or the
    message of a PROVE_METHOD. Making this object runs no code of Python's, so
    that Ctrl-C does not come then."""


class _Call:
    """A received call, and the task of its handler.

    Ctrl-C may end the task anywhere. If no code of the program was running,
    another task continues the call. Otherwise the call ends with UNKNOWN,
    because the handler must not run twice. This also holds for a stream of
    responses that has begun."""

    def __init__(self, received, details, context, plane):
        self.received = received
        self.context = context
        self.task = None    # the newest one
        self.number = None  # of the callback of a cancellation
        self._details = details
        self._plane = plane
        self._handler = _END  # not known yet
        self._response = _END  # of a unary handler that has returned
        # True while an interceptor or the handler runs.
        self._is_in_program = False

    async def run(self):
        """Serves the call. Returns immediately if this is not the call's
        task."""
        if self.task is not asyncio.current_task():
            return
        context = self.context
        method = self._details.method
        try:
            await self._serve()
            if context.abort_error is not None:
                _LOGGER.error("Abort error unexpectedly suppressed in [%s]",
                              method)
        except cygrpc.AbortError as error:
            if error is not context.abort_error:
                _LOGGER.error("Abort error has been replaced in [%s]", method)
        except asyncio.CancelledError:
            _LOGGER.debug("RPC cancelled for servicer method [%s]", method)
        except cygrpc.ExecuteBatchError:
            _LOGGER.debug("the call has ended for servicer method [%s]", method)
        except Exception as error:  # pylint: disable=broad-except
            _LOGGER.exception("Unexpected [%s] raised by servicer method [%s]",
                              type(error).__name__, method)
            context.finish(context.status_code or 2,
                           f"Unexpected {type(error)}: {error}")
        except GeneratorExit:  # the loop ended: nobody waits
            raise
        except BaseException as error:
            if self._is_in_program or not isinstance(error, KeyboardInterrupt):
                context.finish(2, f"Unexpected {type(error)}: {error}")
            raise
        # Answers the call if the handler has not, which means that the client
        # is gone.
        context.finish(1, "")

    def cancel(self):
        """Cancels the task, because the client has cancelled the call."""
        if not self.context.is_over:
            self.task.cancel()

    async def _serve(self):
        context = self.context
        if self._handler is _END:
            self._handler = await self._find()
            self._is_in_program = False
        handler = self._handler
        if handler is None:
            return context.finish(12, "Method not found!")
        if not await self._plane.limit.take():
            return context.finish(_limits.RESOURCE_EXHAUSTED, _limits.TEXT)
        context.handler = handler
        behavior = getattr(handler, _fast_server.name_of(handler))
        if self._response is _END:
            request = await self._request(handler, _is_async(behavior))
            if request is None:
                return None  # cancelled before its request
            if handler.response_streaming:
                return await self._respond_with_all(behavior, request)
            self._response = await self._handle(behavior, request)
            self._is_in_program = False
        return self._respond()

    def _find(self):
        """Returns an awaitable of the handler. Only interceptors count as the
        program's code: generic handlers may be asked twice."""
        handlers = self._plane.handlers
        self._is_in_program = bool(handlers.interceptors)
        return handlers.find_soon(self._details)

    async def _request(self, handler, is_async):
        if handler.request_streaming:
            requests = _Requests(self.context)
            return requests if is_async else cygrpc.async_generator_to_generator(
                requests, self._plane.loop)
        message = await self.context.read_request()
        if message is None or handler.request_deserializer is None:
            return message
        return handler.request_deserializer(message)

    async def _handle(self, behavior, request):
        """Returns the response of a unary handler."""
        if not _is_async(behavior):
            return await self._on_thread(behavior, request)
        handling = behavior(request, self.context)  # has not begun
        self._is_in_program = True
        self.context.request[:] = ()  # frees the message
        return await handling

    def _respond(self):
        context = self.context
        context.raise_for_termination()
        message = b""
        if not context.status_code:
            message = _aio_context.serialized(
                self._response, context.handler.response_serializer)
        context.finish_well(message)

    async def _on_thread(self, behavior, request):
        loop = self._plane.loop
        sync = _aio_context.SyncContext(self.context, loop)
        self._is_in_program = True
        self.context.request[:] = ()
        response = await loop.run_in_executor(self._plane.pool, behavior,
                                              request, sync)
        for callback in sync.callbacks:
            callback()
        return response

    async def _from_threads(self, behavior, request):
        """Yields the responses of a handler that is not asynchronous. Uses a
        thread of the pool to get each response, and none between two
        responses."""
        loop, pool = self._plane.loop, self._plane.pool
        sync = _aio_context.SyncContext(self.context, loop)
        # Also calls the function on a thread, because a function that returns a
        # list may take long.
        responses = iter(await loop.run_in_executor(pool, behavior, request,
                                                    sync))
        try:
            while True:
                response = await loop.run_in_executor(pool, next, responses,
                                                      _END)
                if response is _END:
                    break
                yield response
        except BaseException:
            # The handler's clean-up may wait for the loop.
            loop.run_in_executor(pool, _close, responses)
            raise
        for callback in sync.callbacks:
            callback()

    async def _respond_with_all(self, behavior, request):
        context = self.context
        self._is_in_program = True
        if inspect.iscoroutinefunction(behavior):
            await behavior(request, context)
        else:
            is_async = _is_async(behavior)
            responses = (behavior(request, context) if is_async else
                         self._from_threads(behavior, request))
            try:
                async for response in responses:
                    context.raise_for_termination()
                    await context.write(response)
            finally:
                if not is_async:
                    await responses.aclose()
        context.raise_for_termination()
        context.finish_well()


class _DataPlane:
    """The port of the data plane, and the tasks of its calls. Call all functions
    on the loop's thread."""

    def __init__(self, port, door, pool, handlers, max_send_bytes, loop, limit):
        self._door = door
        self.limit = limit
        self.pool = pool
        self.handlers = handlers
        self.loop = loop
        self._port = port
        self._max_send_bytes = max_send_bytes
        self._queue = _loops.queue_of(loop)
        self._variables = contextvars.copy_context()
        self._tasks = {}  # the open calls, by task
        self._ends = set()  # the tasks of end()
        self._is_draining = False
        self._taken = collections.deque()  # calls that have not begun
        self._number = self._queue.add_lasting(self._accept_some)
        self.ended = loop.create_future()
        port.report(self._number)

    def _accept_some(self):
        """Begins the waiting calls, up to a limit for one turn of the loop, so
        that many clients do not stop the loop's other tasks."""
        # Ctrl-C cannot interrupt between removing calls and storing them,
        # because no Python code runs in between.
        self._taken.extend(map(_Taken, zip(itertools.chain.from_iterable(
            map(self._port.take_some, (_MAX_ACCEPTED - len(self._taken),))))))
        while self._taken:
            taken = self._taken[0]
            try:
                self._accept(taken)
            except Exception:  # pylint: disable=broad-except
                # Logs any exception, so that one call does not end the calls
                # after it.
                _LOGGER.exception("Exception servicing a call!")
                self._context_of(taken[0], ()).finish(
                    13, "Error in service handler!")
            # A handler may have run the loop, which has then removed the call.
            if self._taken and self._taken[0] is taken:
                self._taken.popleft()

    def _accept(self, taken):
        """Begins or answers a call. Continues the work of an earlier run of this
        function that Ctrl-C has ended."""
        if not isinstance(taken[-1], _Call):
            call = self._call_of(taken)
            if call is None:
                return
            taken.append(call)
        self._begin(taken[-1])

    def _begin(self, call):
        """Starts a task for a call. Continues the work of an earlier run of
        this function that Ctrl-C has ended."""
        if call.task is None:
            # Gives the task the context variables of the task that started the
            # server.
            call.task = self._variables.run(self.loop.create_task, call.run())
        self._tasks[call.task] = call
        call.task.add_done_callback(self._on_done)
        if call.number is None:
            call.number = self._queue.add(call.cancel)
        call.received.watch(call.number)

    def _context_of(self, received, metadata, identity=_context.NOBODY):
        return _aio_context.Context(received, metadata, self._queue, self.loop,
                                    self._max_send_bytes, identity)

    def _call_of(self, taken):
        """Returns the _Call of a received call, or None if the call was
        answered."""
        received = taken[0]
        if self._is_draining:
            return self._context_of(received, ()).decline(_wire.STOPPING)
        try:
            method = received.method  # fails if it is not UTF-8
            metadata = _wire.decode_request(received.metadata)
            if method == _identity.PROVE_METHOD:
                return self._prove(taken)
            metadata, identity = self._door.enter(metadata, _context.NOBODY)
        except (PermissionError, ValueError) as error:
            code = 13 if isinstance(error, ValueError) else 16
            return self._context_of(received, ()).finish(code, str(error))
        if identity is None:
            return self._context_of(received, ()).decline(_wire.UNKNOWN_TICKET)
        return _Call(received, _fast_server.Details(method, metadata),
                     self._context_of(received, metadata, identity), self)

    def _prove(self, taken):
        """Answers a client that asks for the proof of a ticket."""
        context = self._context_of(taken[0], ())
        if context.is_stream:
            return context.prove(None, self._door.tickets)
        if len(taken) == 1:
            # Ctrl-C cannot interrupt between reading and storing the message.
            taken.extend(map(type(taken[0]).message, (taken[0],)))
        return context.prove(taken[1], self._door.tickets)

    def _on_done(self, task):
        """Forgets a call whose task has ended. Begins another task if Ctrl-C
        has ended the first before the call was answered."""
        call = self._tasks.pop(task, None)
        if call is None:
            return  # _begin() has added this callback twice
        context = call.context
        if not context.is_over and not task.cancelled() and isinstance(
                task.exception(), KeyboardInterrupt):
            call.task = None
            return self._begin(call)
        context.finish(1, "")  # of a task that was cancelled before it began
        self._queue.drop(call.number)
        try:
            for callback in context.callbacks:
                callback()
        except Exception:  # pylint: disable=broad-except
            _LOGGER.exception("Error in callback")

    def drain(self):
        """Declines all further calls."""
        self._is_draining = True

    async def ending(self, grace):
        """Waits for end(). If the caller is cancelled, end() continues: the
        caller may be a handler of one of the calls."""
        task = self.loop.create_task(self.end(grace))
        self._ends.add(task)
        task.add_done_callback(self._ends.discard)
        await asyncio.shield(task)

    async def end(self, grace):
        """Waits up to `grace` seconds for the open calls, cancels the
        remaining ones, and closes the port."""
        if self._tasks and grace:
            await asyncio.wait(list(self._tasks), timeout=grace)
        tasks = dict(self._tasks)
        for task, call in tasks.items():
            call.context.finish(14, _two_ways.STOPPED.decode())
            task.cancel()
        try:
            if tasks:
                await asyncio.wait(list(tasks))
        finally:
            self.close()

    def close(self):
        self._queue.drop(self._number)
        self._port.close()
        if not self.ended.done():
            self.ended.set_result(None)

    def describe(self):
        return self._port.describe()


class Server(_two_ways.TwoWays, grpc.aio.Server):
    """A server of grpc.aio's, with a port for the data plane."""

    def __init__(self, make_real, pool, handlers, interceptors, options,
                 maximum_concurrent_rpcs):
        self._limit = _limits.AioLimit(maximum_concurrent_rpcs)
        offers = Offers(self._limit)
        interceptors = tuple(interceptors or ())
        real = make_real((offers, *interceptors))
        reason = None
        if not hasattr(real, "_loop"):
            reason = "this grpcio is of a release that penstock.grpc does not know"
        self._pool = pool
        self._set_up(real, offers, _Handlers(handlers, interceptors), options,
                     reason)

    def _make_plane(self, port):
        return _DataPlane(port, self._door, self._pool, self._handlers,
                          self._max_send_bytes, self._real._loop, self._limit)

    async def start(self):
        if self._plane is None:
            self._begin_plane()
        await self._real.start()

    async def stop(self, grace):
        if self._plane is None:
            return await self._real.stop(grace)
        self._door.close("the server is stopping")
        self._plane.drain()
        await asyncio.gather(self._real.stop(grace), self._plane.ending(grace))

    async def wait_for_termination(self, timeout=None):
        end = None if timeout is None else time.monotonic() + timeout
        if await self._real.wait_for_termination(timeout):
            return True
        if self._plane is None:
            return False
        done, _ = await asyncio.wait(
            (self._plane.ended,),
            timeout=None if end is None else max(end - time.monotonic(), 0))
        return not done

    def __del__(self):
        plane = getattr(self, "_plane", None)
        if plane is not None:
            plane.close()
