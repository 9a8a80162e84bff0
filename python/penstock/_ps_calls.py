"""Calls of a parameter server's clients, and what they return."""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from typing import Any, NamedTuple, TypeVar

from numpy.typing import NDArray

from . import _penstock

Result = TypeVar("Result")


class Pulled(Mapping[str, NDArray[Any]]):
    """Values by the names of their tables.

    pulled["w"] is an array that is read-only and shows the memory of what was
    received, of a sparse table one row for each id. NumPy has no bf16: take the
    tensor() of such a table.
    """

    def __init__(self, tensors: dict[str, _penstock.Tensor], clock: int,
                 waited: float) -> None:
        self._tensors = tensors
        self.clock = clock
        """The step of the values: higher than asked for if others are ahead."""
        self.waited = waited
        """Seconds for which a server has waited for other workers, at most."""

    def tensor(self, table: str) -> _penstock.Tensor:
        """Returns the Tensor, which other packages take by DLPack."""
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
    """How each server has taken a push: "counted"; "duplicate", as it had one
    of that step, or a later one, already; or "late", as the others have ended
    the step without it."""

    verdicts: tuple[str, ...]

    @property
    def counted(self) -> bool:
        """Whether it counts at every server."""
        return all(verdict == "counted" for verdict in self.verdicts)


class Checkpoint(NamedTuple):
    """A checkpoint that was written."""

    step: int
    is_incremental: bool
    bytes: int
    removed_steps: tuple[int, ...]


class _Futures:
    """Ends futures as their calls end, on a thread of its own: the threads
    that calls come back on never enter Python."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Begins anew, in a forked child: the thread is not there, and the lock
        may be held by one that is not."""
        # Taken again where a destructor that runs under it starts a call.
        self._lock = threading.RLock()
        self._numbers = itertools.count(1)
        # With what has begun each, which keeps its worker or reader alive.
        self._calls: dict[int, tuple[Future[Any], Any, Any, Any]] = {}
        self._thread: threading.Thread | None = None

    def start(self, begin: Callable[[int], _penstock._PsPending],
              convert: Callable[[Any], Result]) -> Future[Result]:
        """Begins a call, to which it gives a number, and returns its future."""
        future: Future[Result] = Future()
        future.set_running_or_notify_cancel()  # it cannot be cancelled
        number = next(self._numbers)
        with self._lock:  # so that the call is known when it has ended
            self._calls[number] = future, begin(number), convert, begin
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
            return  # Ctrl-C came as it began: nobody has its future
        future, pending, convert, _ = call
        try:
            result = convert(pending.wait())
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(result)


futures = _Futures()
os.register_at_fork(after_in_child=futures.forget)


def pulled_of(result: tuple[dict[str, _penstock.Tensor], int, float]) -> Pulled:
    return Pulled(*result)
