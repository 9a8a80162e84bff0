"""Limits of concurrent calls (maximum_concurrent_rpcs), over both ways
together."""

import asyncio
import concurrent.futures

TEXT = "Concurrent RPC limit exceeded!"
RESOURCE_EXHAUSTED = 8


class SyncLimit:
    """The limit of a server of grpcio's. grpcio's own counter, which is private,
    counts the calls over the fast way, too. Thread-safe."""

    def __init__(self, state):
        self._state = state

    def take(self):
        """Counts a call. Returns false if there are too many."""
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
    """Takes all calls."""

    def take(self):
        return True

    def give_back(self):
        pass


def sync_limit_of(real):
    """Returns the limit of a server of grpcio's, or None if its release has no
    such counter."""
    state = getattr(real, "_state", None)
    if not all(hasattr(state, name) for name in
               ("lock", "active_rpc_count", "maximum_concurrent_rpcs")):
        return None
    return NoLimit() if state.maximum_concurrent_rpcs is None else \
        SyncLimit(state)


class UncountedPool(concurrent.futures.ThreadPoolExecutor):
    """A pool for a handler whose calls grpcio shall not count. grpcio counts a
    call from submit() until the future is done."""

    def submit(self, fn, /, *args, **kwargs):
        super().submit(fn, *args, **kwargs)
        done = concurrent.futures.Future()
        done.set_result(None)
        return done


class AioLimit:
    """The limit of a server of grpc.aio, for both ways. Call all functions on
    the loop's thread."""

    def __init__(self, maximum):
        self._maximum = maximum
        self._count = 0

    def take(self):
        """Counts a call, until the task that runs now has ended. Returns false
        if there are too many."""
        if self._maximum is None:
            return True
        if self._count >= self._maximum:
            return False
        self._count += 1
        asyncio.current_task().add_done_callback(self._give_back)
        return True

    def _give_back(self, task):
        del task
        self._count -= 1
