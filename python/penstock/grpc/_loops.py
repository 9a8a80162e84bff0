"""Brings the ends of calls to asyncio's event loops."""

import asyncio
import collections
import itertools
import os
import weakref

from .. import _rpc
from . import _reports

# Limits the callbacks that run in one turn of a loop.
_MAX_RUN = 64

# The number of bits of a call's number that are below the number of its queue.
_SHIFT = 32
_MASK = (1 << _SHIFT) - 1

_queues = weakref.WeakKeyDictionary()  # by loop


class Queue:
    """The callbacks of one event loop. The loop watches the descriptor of a
    queue of _rpc, so that no other thread of Python's takes part. Call all
    functions on the loop's thread.

    Numbers mean what they mean to _reports.Queue."""

    def __init__(self, loop):
        self._queue, self._descriptor = _rpc.open_readable_reports()
        self._numbers = itertools.count(1)
        self._callbacks = {}  # by number
        self._lasting = {}    # likewise; these run at each report
        self._reported = collections.deque()  # the numbers whose turn comes
        self._is_going_on = False  # the loop will run the rest of them
        self._loop = weakref.ref(loop)
        self._finalize = weakref.finalize(self, _rpc.close_reports, self._queue)
        self._finalize.atexit = False
        # Gives the loop a reference to this object. The object itself must not
        # keep the loop alive.
        loop.add_reader(self._descriptor, self._run)

    def add(self, callback):
        """Returns a number. Runs `callback` once, on the loop, when _rpc
        reports the number."""
        number = self._unused_number()
        self._callbacks[number] = callback
        return self._queue << _SHIFT | number

    def add_lasting(self, callback):
        """Returns a number. Runs `callback` at each report, until drop()."""
        number = self._unused_number()
        self._lasting[number] = callback
        return self._queue << _SHIFT | number

    def _unused_number(self):
        while True:
            number = next(self._numbers) & _MASK
            if number not in self._callbacks and number not in self._lasting:
                return number

    def drop(self, number):
        """Forgets the callback that has this number."""
        self._callbacks.pop(number & _MASK, None)
        self._lasting.pop(number & _MASK, None)

    def _run(self):
        # No Ctrl-C comes between the two, because no code of Python's runs there.
        self._reported.extend(itertools.chain.from_iterable(
            map(_rpc.take_ready_reports, (self._queue,))))
        if not self._is_going_on:
            self._run_some()

    def _run_some(self):
        """Runs callbacks, up to a limit, and leaves the others to the loop's
        next turn."""
        self._is_going_on = False
        try:
            for _ in range(min(_MAX_RUN, len(self._reported))):
                self._run_one(self._reported.popleft() & _MASK)
        finally:  # Ctrl-C may end a callback
            loop = self._loop()
            if self._reported and loop is not None and not loop.is_closed():
                loop.call_soon(self._run_some)
                self._is_going_on = True

    def _run_one(self, number):
        callback = self._callbacks.pop(number, None)
        if callback is None:
            callback = self._lasting.get(number)
        if callback is not None:
            _reports.run((callback,))

    def close(self):
        """Closes the descriptor. The loop is closed."""
        self._finalize()

    def leave_parent(self):
        """Keeps the parent's queue out of a forked child, whose own queues
        have the same numbers."""
        self._finalize.detach()


class Turns:
    """Lets the other tasks of a loop run, although messages can be read or
    written without waiting."""

    _SPAN = 16

    def __init__(self):
        self._left = self._SPAN

    async def take(self):
        """Counts a message."""
        self._left -= 1
        if self._left == 0:
            self._left = self._SPAN
            await asyncio.sleep(0)


def queue_of(loop):
    """Returns the queue of an event loop. Raises NotImplementedError for a
    loop that cannot watch descriptors, and RuntimeError if there are no more
    queues."""
    queue = _queues.get(loop)
    if queue is None:
        _close_unused()
        queue = _queues[loop] = Queue(loop)
    return queue


def _close_unused():
    """Closes the queues of closed loops. grpcio keeps the loops themselves."""
    for loop, queue in list(_queues.items()):
        if loop.is_closed():
            del _queues[loop]
            queue.close()


def is_here(loop):
    """Returns true if this thread runs the loop."""
    return asyncio._get_running_loop() is loop  # pylint: disable=protected-access


def _leave_parent():
    for queue in list(_queues.values()):
        queue.leave_parent()
    _queues.clear()


os.register_at_fork(after_in_child=_leave_parent)
