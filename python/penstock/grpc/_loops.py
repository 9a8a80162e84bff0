"""Delivers the ends of calls to asyncio's event loops."""

import asyncio
import collections
import itertools
import os
import sys
import weakref

from .. import _rpc
from . import _reports

# Limits the callbacks that run in one turn of a loop.
_MAX_RUN = 64

# The number of bits of a call's number that are below the number of its queue.
_SHIFT = 32
_MASK = (1 << _SHIFT) - 1

# Added to an eventfd, makes it readable.
_ONE = (1).to_bytes(8, sys.byteorder)

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
        # The reports whose callbacks did not run yet, with numbers that show
        # their order.
        self._reported = collections.deque()
        self._order = itertools.count()
        # The numbers of callbacks that are running. A callback may run the loop
        # again, as packages for notebooks do.
        self._running = set()
        self._finalize = weakref.finalize(self, _rpc.close_reports, self._queue)
        self._finalize.atexit = False
        # Gives the loop a reference to this object. The object itself must not
        # keep the loop alive.
        loop.add_reader(self._descriptor, self._run)

    def add(self, callback):
        """Returns a number. Runs `callback` once, on the loop, when _rpc
        reports the number. If Ctrl-C ends the callback, runs it again."""
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
        """Runs callbacks, up to a limit. Leaves the descriptor readable if
        there are more, or if Ctrl-C interrupts this function anywhere. The next
        turn of the loop then continues."""
        is_done = False
        try:
            _clear(self._descriptor)
            # Ctrl-C cannot interrupt between removing reports and storing them,
            # because no Python code runs in between.
            self._reported.extend(zip(self._order, itertools.chain.from_iterable(
                map(_rpc.take_ready_reports, (self._queue,)))))
            self._run_some()
            is_done = not self._reported
        finally:
            if not is_done:
                os.write(self._descriptor, _ONE)

    def _run_some(self):
        some = list(itertools.islice(self._reported, _MAX_RUN))
        for _, number in some:
            self._run_one(number & _MASK)
        # A callback may itself have run the loop, which has then removed some
        # reports.
        while some and self._reported and self._reported[0] <= some[-1]:
            self._reported.popleft()

    def _run_one(self, number):
        lasting = self._lasting.get(number)
        if lasting is not None:
            return _reports.run((lasting,))
        callback = self._callbacks.get(number)
        if callback is None or number in self._running:
            return None
        try:
            self._running.add(number)
            _reports.run((callback,))
            self._callbacks.pop(number, None)
        finally:
            self._running.discard(number)
            # Ctrl-C has interrupted the callback. If the callback itself ran
            # the loop, the loop has removed the report.
            if number in self._callbacks:
                self._reported.append((next(self._order), number))
        return None

    def close(self):
        """Closes the descriptor. The loop is closed."""
        self._finalize()

    def leave_parent(self):
        """Keeps the parent's queue out of a forked child, whose own queues
        have the same numbers."""
        self._finalize.detach()


def wake(waiters):
    """Sets all futures of a list, the oldest first, and empties the list. If
    Ctrl-C interrupts this function, a second call continues."""
    while waiters:
        if not waiters[0].done():
            waiters[0].set_result(None)
        waiters.pop(0)


def _clear(descriptor):
    """Makes an eventfd unreadable."""
    try:
        os.read(descriptor, 8)
    except BlockingIOError:
        pass


class Turns:
    """Gives the other tasks of a loop a turn after some messages, even if
    messages can be read or written without waiting."""

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
