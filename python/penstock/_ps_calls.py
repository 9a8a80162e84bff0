"""Calls of a parameter server's clients, and their results."""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from typing import Any, NamedTuple, TypeVar

from numpy.typing import NDArray

from . import _penstock
from ._errors import Error

Result = TypeVar("Result")


class Pulled(Mapping[str, NDArray[Any]]):
    """The values of a pull, by table name.

    pulled["w"] is a read-only array that shows the received memory. The array
    of a sparse table has one row for each id. NumPy has no bf16: use tensor()
    for such a table.
    """

    def __init__(self, tensors: dict[str, _penstock.Tensor], clock: int,
                 waited: float) -> None:
        self._tensors = tensors
        self.clock = clock
        """The step of the values. Higher than the requested step if other
        workers are ahead."""
        self.waited = waited
        """The longest time that a server waited for other workers, in
        seconds."""

    def tensor(self, table: str) -> _penstock.Tensor:
        """Returns the Tensor, which other packages can read by DLPack."""
        return self._tensors[table]

    def __getitem__(self, table: str) -> NDArray[Any]:
        return self._tensors[table].numpy()

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)

    def __repr__(self) -> str:
        tensors = ", ".join(f"{name}: {tensor.dtype}{list(tensor.shape)}"
                            for name, tensor in self._tensors.items())
        return f"<penstock.ps.Pulled of step {self.clock}: {tensors}>"


class Pushed(NamedTuple):
    """The verdict of each server on a push.

    - "counted": the server uses the gradients.
    - "duplicate": the server already had a push of the step or a later one.
    - "late": the other workers have ended the step without this push.
    """

    verdicts: tuple[str, ...]

    @property
    def counted(self) -> bool:
        """True if every server counted the push."""
        return all(verdict == "counted" for verdict in self.verdicts)


class Checkpoint(NamedTuple):
    """A checkpoint that was written."""

    step: int
    is_incremental: bool
    bytes: int
    removed_steps: tuple[int, ...]


class _Futures:
    """Completes the futures of calls, on a separate thread, because the threads
    that end calls never run Python."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Resets the object in a forked child, which lacks the thread. The old
        lock may be held by a thread that does not exist in the child."""
        # The lock is reentrant, because a destructor that runs under the lock
        # may start a call.
        self._lock = threading.RLock()
        self._numbers = itertools.count(1)
        # The calls in progress, by number. Each entry keeps the call's worker
        # or reader alive, by the result of `begin`.
        self._calls: dict[int, tuple[Future[Any], Any, Any, Any, Any]] = {}
        self._thread: threading.Thread | None = None

    def start(self, begin: Callable[[int], _penstock._PsPending],
              convert: Callable[[Any], Result],
              explain: Callable[[Error], Error] | None = None,
              ) -> Future[Result]:
        """Starts a call by `begin`, with a new number. Returns its future.
        `explain`, which may block, returns the exception for an error."""
        future: Future[Result] = Future()
        future.set_running_or_notify_cancel()  # disables cancel()
        number = next(self._numbers)
        with self._lock:  # registers the call before it can end
            self._calls[number] = (future, begin(number), convert, explain,
                                   begin)
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="penstock-ps", daemon=True)
                self._thread.start()
        return future

    def _run(self) -> None:
        while True:
            for number in _penstock._ps_ended():
                self._end(number)

    def _end(self, number: int) -> None:
        with self._lock:
            call = self._calls.pop(number, None)
        if call is None:
            return  # Ctrl-C interrupted start(): nobody has the future
        future, pending, convert, explain, _ = call
        try:
            result = convert(pending.wait())
        except Error as error:
            if explain is None:
                future.set_exception(error)
            else:  # other calls do not wait for it
                threading.Thread(target=_fail, args=(future, error, explain),
                                 name="penstock-ps-error", daemon=True).start()
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(result)


def _fail(future: Future[Any], error: Error,
          explain: Callable[[Error], Error]) -> None:
    try:
        future.set_exception(explain(error))
    except BaseException as unexpected:
        future.set_exception(unexpected)


futures = _Futures()
os.register_at_fork(after_in_child=futures.forget)


def pulled_of(result: tuple[dict[str, _penstock.Tensor], int, float]) -> Pulled:
    return Pulled(*result)
