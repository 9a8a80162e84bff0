"""A worker that continues after its servers were restarted."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from . import _penstock
from ._errors import Error

Result = TypeVar("Result")


class Restarted(Error):
    """Servers were restarted, and all servers have restored a checkpoint.

    The worker has joined the servers again: continue the training at `step`.
    Pushes of that step and of later steps are lost, even if they had been
    acknowledged.
    """

    code = "ABORTED"

    def __init__(self, step: int, cause: str) -> None:
        super().__init__(
            f"servers were restarted, and all servers have restored a "
            f"checkpoint: train on from step {step}; pushes of that step and "
            f"of later steps are lost, even acknowledged ones (before: "
            f"{cause})")
        self.step = step
        """The step to continue with, which is also the worker's clock."""


class TrainingLost(Error):
    """Servers were restarted, and this worker cannot continue.

    The text names the servers and the remedy.
    """

    code = "DATA_LOSS"


# The codes of calls that may fail because a server was restarted. The extension
# module finds out if a restart was the cause.
_LOST = ("DATA_LOSS", "ABORTED")
# The codes of calls that may fail because the worker was replaced.
_REPLACED = (*_LOST, "CANCELLED", "FAILED_PRECONDITION")


class Attachment:
    """The present worker of the extension module. Thread-safe."""

    def __init__(self, arguments: dict[str, Any]) -> None:
        try:
            self.worker = _penstock._PsWorker(arguments)
        except Error as error:
            if error.code != TrainingLost.code:
                raise
            raise TrainingLost(str(error)) from error
        self.restarts = 0
        self._lock = threading.Lock()
        self._is_closed = False

    def call(self, run: Callable[[_penstock._PsWorker], Result]) -> Result:
        """Runs a call of the worker. Raises Restarted or TrainingLost if
        servers were restarted."""
        worker = self.worker
        try:
            return run(worker)
        except Error as error:
            explained = self.explain(worker, error)
            if explained is error:
                raise
            raise explained from error

    def explain(self, worker: _penstock._PsWorker, error: Error) -> Error:
        """Attaches again if servers were restarted. Returns the error to raise
        for a call of `worker` that has failed with `error`."""
        is_present = worker is self.worker
        if error.code not in (_LOST if is_present else _REPLACED):
            return error
        with self._lock:
            if self._is_closed:
                return error
            if worker is self.worker:
                try:
                    again = worker.reattach(error.code, str(error))
                except Error as lost:
                    return (TrainingLost(str(lost))
                            if lost.code == TrainingLost.code else lost)
                if again is None:
                    return error
                self.worker = again
                self.restarts += 1
                worker.close()
                if self._is_closed:
                    again.close()
            return Restarted(self.worker.clock(), str(error))

    def steps(self, end: int) -> Iterator[int]:
        """Yields the steps up to `end`, exclusive. Continues with an earlier
        step after a restart."""
        restarts, step = self.restarts, self.worker.clock()
        while step < end:
            yield step
            step += 1
            if restarts != self.restarts:
                restarts, step = self.restarts, self.worker.clock()

    def close(self) -> None:
        """Leaves the training. Does not wait for a worker that is attaching
        again."""
        self._is_closed = True
        self.worker.close()
