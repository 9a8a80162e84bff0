"""Limits of concurrent calls (maximum_concurrent_rpcs), over grpcio and the
data plane together."""

import asyncio
import concurrent.futures

import grpc

TEXT = "Concurrent RPC limit exceeded!"
RESOURCE_EXHAUSTED = 8


class SyncLimit:
    """The limit of a grpcio server. Calls over the data plane are also counted
    in grpcio's own, private counter. Thread-safe."""

    def __init__(self, state):
        self._state = state

    def take(self):
        """Counts a call. Returns false if there are already as many calls as
        allowed."""
        state = self._state
        with state.lock:
            if state.active_rpc_count >= state.maximum_concurrent_rpcs:
                return False
            state.active_rpc_count += 1
            return True

    def give_back(self):
        with self._state.lock:
            self._state.active_rpc_count -= 1


class NoLimit:
    """A limit that permits any number of calls."""

    def take(self):
        return True

    def give_back(self):
        pass


def sync_limit_of(real):
    """Returns the limit of a grpcio server, or None if this release of grpcio
    has no such counter."""
    state = getattr(real, "_state", None)
    if not all(hasattr(state, name) for name in
               ("lock", "active_rpc_count", "maximum_concurrent_rpcs")):
        return None
    return NoLimit() if state.maximum_concurrent_rpcs is None else \
        SyncLimit(state)


class UncountedPool(concurrent.futures.ThreadPoolExecutor):
    """A pool for a handler whose calls grpcio must not count. grpcio counts a
    call from submit() until the future is done."""

    def submit(self, fn, /, *args, **kwargs):
        super().submit(fn, *args, **kwargs)
        done = concurrent.futures.Future()
        done.set_result(None)
        return done


def _lets_calls_wait():
    """Returns true if the installed grpc.aio makes calls above the limit wait,
    as it did before 1.62. Later releases refuse such calls."""
    major, minor = grpc.__version__.split(".")[:2]
    return (int(major), int(minor)) < (1, 62)


class AioLimit:
    """The limit of a server of grpc.aio, over grpcio and the data plane
    together. Call all functions on the loop's thread."""

    def __init__(self, maximum):
        self._maximum = maximum
        self._waits = _lets_calls_wait()
        self._holders = set()  # the tasks of the counted calls
        # The futures of the tasks of calls that wait, oldest first.
        self._waiters = {}

    async def take(self):
        """Counts a call until the running task has ended. At the limit, waits
        or returns false, as the installed grpcio does."""
        if self._maximum is None:
            return True
        task = asyncio.current_task()
        # Comes first, and gives back what the task has, so that Ctrl-C and
        # cancellation lose no place.
        task.add_done_callback(self._give_back)
        if len(self._holders) < self._maximum:
            self._holders.add(task)
            return True
        if not self._waits:
            return False
        turn = asyncio.get_running_loop().create_future()
        self._waiters[task] = turn
        await turn
        return True

    def _give_back(self, task):
        self._holders.discard(task)
        self._waiters.pop(task, None)  # keeps nothing of cancelled calls
        while self._waiters and len(self._holders) < self._maximum:
            task = next(iter(self._waiters))
            turn = self._waiters.pop(task)
            if not (turn.done() or task.done()):
                self._holders.add(task)
                turn.set_result(None)
