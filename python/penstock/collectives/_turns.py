"""Runs operations one after another, and returns handles of operations in the
background."""

from __future__ import annotations

import collections
import threading
from typing import Any, Callable, Deque, Optional, Set, Tuple

from .._errors import DeadlineExceeded, FailedPrecondition

# How long an idle thread stays for the next operation, in seconds.
_REST = 1.0


class Handle:
    """An operation in the background.

    Leave the arrays of the operation alone until it has ended.
    """

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self._ended = threading.Event()
        self._result: Any = None
        self._error: Optional[BaseException] = None

    def done(self) -> bool:
        """Returns True if the operation has ended, with or without an error."""
        return self._ended.is_set()

    def wait(self, timeout: Optional[float] = None) -> Any:
        """Waits for the end, and returns the result or raises the error.

        Raises DeadlineExceeded after `timeout` seconds. The operation then goes
        on, as it does after Ctrl-C. abort() of the group ends it.

        Raises FailedPrecondition in a signal handler that interrupted an
        operation of the group: the handle's operation comes after that one,
        which waits for the handler.
        """
        if not self.done() and self._turns.is_held_here():
            raise FailedPrecondition(
                "a signal handler waits for an operation that comes after the "
                "interrupted one: wait after the handler, or call abort() or "
                "close() there")
        if not self._ended.wait(timeout):
            raise DeadlineExceeded(
                f"the operation has not ended within {timeout} s, and "
                "continues: wait again, or end the group by abort()")
        if self._error is not None:
            raise self._error
        return self._result

    def _end(self, result: Any, error: Optional[BaseException]) -> None:
        self._result, self._error = result, error
        self._ended.set()


class Turns:
    """Runs functions in the order of the calls, one at a time.

    A thread runs the functions of start(). The thread starts with the first
    function, and ends a short time after the last one. Thread-safe.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._is_busy = False
        self._has_thread = False
        self._callers: Set[int] = set()  # the threads in run()
        # The thread that runs a function in run(), without the background
        # thread.
        self._holder: Optional[int] = None
        self._running: Optional[Handle] = None
        self._waiting: Deque[Tuple[Handle, Callable[[], Any]]] = (
            collections.deque())

    def is_idle(self) -> bool:
        """Returns True if no function runs or waits."""
        with self._changed:
            return not self._is_busy and not self._waiting

    def is_called_here(self) -> bool:
        """Returns True if the calling thread is in run(): the caller is a
        signal handler that has interrupted run(), and run() waits for the
        handler."""
        return threading.get_ident() in self._callers

    def is_held_here(self) -> bool:
        """Returns True if no function can run until the caller returns: the
        caller is a signal handler that has interrupted a function on its
        thread."""
        return self._holder == threading.get_ident()

    def run(self, function: Callable[[], Any],
            on_interrupt: Callable[[], None]) -> Any:
        """Runs `function` after all earlier functions. Returns its result.
        Runs it on the calling thread, unless other functions wait or run.

        If a signal handler raises while `function` waits or runs on another
        thread, calls `on_interrupt`, which ends `function`.
        """
        if self.is_called_here():
            raise FailedPrecondition(
                "a signal handler has called an operation of the group for "
                "which its thread waits: call abort() or close() there")
        try:
            self._callers.add(threading.get_ident())
            return self._run(function, on_interrupt)
        finally:
            self._callers.discard(threading.get_ident())

    def _run(self, function: Callable[[], Any],
             on_interrupt: Callable[[], None]) -> Any:
        is_mine = False
        try:
            with self._changed:
                is_mine = not self._is_busy and not self._waiting
                if is_mine:
                    self._is_busy = True
                    self._holder = threading.get_ident()
            if is_mine:
                return function()
        finally:
            if is_mine:
                self._holder = None
                self._end_turn()
        handle = self.start(function)
        try:
            return handle.wait()
        finally:
            if not handle.done():
                on_interrupt()
                # Waits even after Ctrl-C, because `function` writes to the
                # caller's arrays until it ends.
                handle._ended.wait()  # pylint: disable=protected-access

    def start(self, function: Callable[[], Any]) -> Handle:
        """Runs `function` after all earlier functions, on another thread."""
        handle = Handle(self)
        with self._changed:
            if not self._has_thread:
                threading.Thread(target=self._work, daemon=True,
                                 name="penstock collectives").start()
                self._has_thread = True
            self._waiting.append((handle, function))
            self._changed.notify()
        return handle

    def end_in_child(self, error: Exception) -> None:
        """Ends all handles with an error, in the child of a fork, which lacks
        the threads for their functions. Call nothing else afterwards."""
        handles = [handle for handle, _ in self._waiting]
        if self._running is not None:
            handles.append(self._running)
        for handle in handles:
            # Makes a new event, because another thread may have held the old
            # event's lock.
            handle._ended = threading.Event()  # pylint: disable=protected-access
            handle._end(None, error)  # pylint: disable=protected-access

    def _work(self) -> None:
        while True:
            task = self._take()
            if task is None:
                return
            handle, function = task
            result, error = None, None
            try:
                result = function()
            except BaseException as raised:  # pylint: disable=broad-except
                error = raised
            # Frees the turn before the handle ends, so that the next run() can
            # use it.
            self._end_turn()
            handle._end(result, error)  # pylint: disable=protected-access
            self._running = None
            del task, handle, function, result, error

    def _take(self) -> Optional[Tuple[Handle, Callable[[], Any]]]:
        with self._changed:
            while self._is_busy or not self._waiting:
                woken = self._changed.wait(_REST)
                if not woken and not self._waiting:
                    self._has_thread = False
                    return None
            self._is_busy = True
            self._running = self._waiting[0][0]
            return self._waiting.popleft()

    def _end_turn(self) -> None:
        with self._changed:
            self._is_busy = False
            if self._waiting:
                self._changed.notify()
