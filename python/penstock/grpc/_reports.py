"""Threads that receive the numbers of ended calls, and run the program's
callbacks.

Each channel and each server has one such thread, as with grpcio: a callback
that blocks delays only callbacks of its own channel or server. The thread
starts with the first callback. Calls without callbacks need no such thread,
because a thread that waits for a call polls itself.
"""

import itertools
import logging
import os
import threading
import weakref

from .. import _rpc

_LOGGER = logging.getLogger(__name__)

# The number of bits of a call's number that are below the number of its queue.
_SHIFT = 32
_MASK = (1 << _SHIFT) - 1

_queues = weakref.WeakSet()


def run(callbacks):
    """Runs callbacks of the program, whose exceptions are logged."""
    for callback in callbacks:
        try:
            callback()
        except Exception:  # pylint: disable=broad-except
            _LOGGER.exception("Exception calling callback!")


def run_all(callbacks):
    """Runs callbacks on this module's thread, which outlives all errors."""
    for callback in callbacks:
        try:
            callback()
        except BaseException:  # pylint: disable=broad-except
            _LOGGER.exception("Exception calling callback!")


def _serve(queue, callbacks):
    """Runs callbacks until the queue of _rpc is closed."""
    while True:
        numbers = _rpc.take_reports(queue)
        if not numbers:
            return
        for number in numbers:
            callback = callbacks.pop(number & _MASK, None)
            if callback is not None:
                run_all((callback,))
        callback = None  # holds no call while waiting


class Queue:
    """The callbacks of a channel or a server. The thread ends when the program
    has dropped the queue. Thread-safe."""

    def __init__(self):
        self._lock = threading.Lock()
        self._reset()
        _queues.add(self)

    def _reset(self):
        self._queue = None  # of _rpc
        self._numbers = itertools.count(1)
        self._callbacks = {}  # by number

    def __len__(self):
        return len(self._callbacks)

    def _begin(self):
        with self._lock:
            if self._queue is None:
                queue = _rpc.open_reports()
                threading.Thread(target=_serve, args=(queue, self._callbacks),
                                 name="penstock-callbacks", daemon=True).start()
                weakref.finalize(self, _rpc.close_reports, queue).atexit = False
                self._queue = queue

    def add(self, callback):
        """Returns a number. Runs `callback` once, on the thread, when _rpc
        reports the number."""
        if self._queue is None:
            self._begin()
        number = next(self._numbers) & _MASK
        while number in self._callbacks:
            number = next(self._numbers) & _MASK
        self._callbacks[number] = callback
        return self._queue << _SHIFT | number

    def drop(self, number):
        """Forgets the callback of a number that will not be reported."""
        self._callbacks.pop(number & _MASK, None)

    def leave_parent(self):
        """Forgets the parent's thread in a forked child."""
        self._lock = threading.Lock()
        self._reset()


def _leave_parent():
    for queue in list(_queues):
        queue.leave_parent()


os.register_at_fork(after_in_child=_leave_parent)
