"""A thread that learns of the ends of calls, and runs the program's callbacks.

Only calls with callbacks need it: a thread that waits for a call polls itself.
"""

import itertools
import logging
import os
import threading

from .. import _rpc

_LOGGER = logging.getLogger(__name__)

_lock = threading.Lock()
_numbers = itertools.count(1)
_callbacks = {}  # by number
_process = None  # the process in which the thread runs


def run(callbacks):
    """Runs callbacks of the program, whose exceptions are logged."""
    for callback in callbacks:
        try:
            callback()
        except Exception:  # pylint: disable=broad-except
            _LOGGER.exception("Exception calling callback!")


def _run():
    while True:
        for number in _rpc.take_reports():
            callback = _callbacks.pop(number, None)
            if callback is not None:
                run((callback,))


def add(callback):
    """Returns a number. Runs `callback` once, on a thread of this module, when
    _rpc reports the number."""
    global _process
    number = next(_numbers)
    _callbacks[number] = callback
    if _process != os.getpid():
        with _lock:
            if _process != os.getpid():
                threading.Thread(target=_run, name="penstock-callbacks",
                                 daemon=True).start()
                _process = os.getpid()
    return number


def drop(number):
    """Forgets the callback of a number that is not reported any more."""
    _callbacks.pop(number, None)


def _forget_lock():
    global _lock
    _lock = threading.Lock()
    _callbacks.clear()


os.register_at_fork(after_in_child=_forget_lock)
