"""Parameter servers, for models that several workers train together.

    with ps.Worker(["ps0:7000"], rank=0, model=[
            ps.Dense("w", "f32", [64, 10], optimizer=ps.Sgd(0.1))],
            values={"w": numpy.zeros((64, 10), "f4")}) as worker:
        for step in worker.steps(1000):
            try:
                pulled = worker.pull(step)
                worker.push(step, {"w": gradient_at(pulled["w"])})
            except ps.Restarted:
                continue  # steps() goes back to the restored checkpoint

The servers run the program ps_server. docs/ps.md lists the guarantees: an
acknowledged push counts exactly once, and a pull returns values at least as
fresh as the staleness of their table requires.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from types import TracebackType
from typing import Any, TypeVar, Union

from numpy.typing import ArrayLike

from ._tensors import _penstock
from ._ps_attach import Attachment, Restarted, TrainingLost
from ._ps_calls import Checkpoint, Pulled, Pushed, futures, pulled_of
from ._ps_clip import clip_by_global_norm
from ._ps_model import (UNLIMITED, Adagrad, Adam, AdamW, Compression, Constant,
                        Cosine, Dense, Ftrl, Half, Initial, Int8, Momentum,
                        Nesterov, Normal, Optimizer, RandomK, RmsProp,
                        Schedule, Sgd, Sparse, Step, Table, TableSpec, TopK,
                        Uniform, Zeros)

__all__ = [
    "UNLIMITED", "Adagrad", "Adam", "AdamW", "Checkpoint", "Compression",
    "Constant", "Cosine", "Dense", "Ftrl", "Half", "Initial", "Int8",
    "Momentum", "Nesterov", "Normal", "Optimizer", "Pulled", "Pushed",
    "RandomK", "Reader", "Restarted", "RmsProp", "Schedule", "Sgd", "Sparse",
    "Step", "Table", "TableSpec", "TlsFiles", "TopK", "TrainingLost", "Uniform",
    "Worker", "Zeros", "clip_by_global_norm",
]

Result = TypeVar("Result")
Path = Union[str, "os.PathLike[str]"]
Gradients = Mapping[str, Any]
Rows = Mapping[str, ArrayLike]
RowGradients = Mapping[str, tuple[ArrayLike, Any]]


@dataclass(frozen=True)
class TlsFiles:
    """Paths of PEM files: the authority that signs the servers' certificates,
    and this process's own certificate and private key."""

    ca: Path
    cert: Path
    key: Path


class Worker:
    """A worker of a training. Each rank has one worker at a time.

    The constructor joins the training. `servers` are the servers' addresses, in
    the same order for each worker. The worker of rank 0 is the chief: it passes
    the `model`, and initial `values` of all dense tables, by name. Values that
    the servers already have, from an earlier chief or a checkpoint, take
    precedence. Other workers wait for the chief. A restarted chief continues
    the training.

    `timeout` limits the wait for servers and chief, in seconds. `pull_timeout`
    and `push_timeout` limit each call, including waits for other workers and
    for servers that are down. `tls` and `secret` secure the connections;
    `secret` is the path of a file. `stock` uses gRPC without Penstock.
    `compression` is the encoding of gradients, by table. Small tables that
    share a message are not compressed.

    If servers were restarted with --restore, a call raises Restarted: all
    servers have restored the newest checkpoint, and the worker has joined them
    again. Continue at `clock`, as steps() does. If that is impossible, the call
    raises TrainingLost, which names the remedy. Both may take as long as
    `pull_timeout`. The error feedback of compression then starts at zero.

    Threads may share a worker. Ctrl-C ends a wait, but not the call; the call's
    result is then lost. Close a worker, or use it in `with`, so that others do
    not wait for it. If a worker dies, the others wait until its lease expires.
    """

    def __init__(self, servers: Iterable[str], *, rank: int,
                 model: Iterable[TableSpec] | None = None,
                 values: Mapping[str, Any] | None = None,
                 compression: Mapping[str, Compression] | None = None,
                 timeout: float = 60.0, pull_timeout: float = 900.0,
                 push_timeout: float = 900.0, tls: TlsFiles | None = None,
                 secret: Path | None = None, stock: bool = False) -> None:
        self._attachment = Attachment(
            {"servers": servers, "rank": rank, "model": model, "values": values,
             "compression": compression, "timeout": timeout,
             "pull_timeout": pull_timeout, "push_timeout": push_timeout,
             "tls": tls, "secret": secret, "stock": stock})

    @property
    def _worker(self) -> _penstock._PsWorker:
        return self._attachment.worker

    @property
    def clock(self) -> int:
        """The first step of this worker. After a restart of this rank, the
        first step that no server has received from the rank. After the
        exception Restarted, the exception's step."""
        return self._worker.clock()

    @property
    def restored_step(self) -> int:
        """The step of the checkpoint that the servers have restored. 0 if there
        is none."""
        return self._worker.restored_step()

    @property
    def tables(self) -> tuple[Table, ...]:
        """The tables of the model."""
        return self._worker.tables()

    def steps(self, end: int) -> Iterator[int]:
        """Yields the steps from `clock` to `end`, exclusive. After Restarted,
        goes back to the new `clock`."""
        return self._attachment.steps(end)

    def pull(self, step: int, *, dense: Iterable[str] | None = None,
             rows: Rows | None = None, dtype: str | None = None) -> Pulled:
        """Waits until values are fresh enough for `step`, and returns them.

        `dense` lists the dense tables to pull; None means all. `rows` has ids
        by sparse table; ids may repeat. With `dtype` "bf16" or "f16", values of
        longer types are sent and returned in that type.
        """
        return pulled_of(self._attachment.call(
            lambda worker: worker.start_pull(step, dense, rows, dtype,
                                             0).wait()))

    def pull_async(self, step: int, *, dense: Iterable[str] | None = None,
                   rows: Rows | None = None,
                   dtype: str | None = None) -> Future[Pulled]:
        """Starts a pull(), and returns its future. The future cannot be
        cancelled. Callbacks run on a thread that all calls share, and
        should be short."""
        return self._start(
            lambda worker, number: worker.start_pull(step, dense, rows, dtype,
                                                     number), pulled_of)

    def push(self, step: int, gradients: Gradients | None = None, *,
             rows: RowGradients | None = None) -> Pushed:
        """Sends the gradients of `step` to all servers, and ends the step.

        `gradients` has an array by dense table. `rows` has a pair (ids, array)
        by sparse table; gradients of repeated ids are added. Tables without
        gradients may be omitted. Of small tables that share a message, pass all
        or none, with zeros if necessary; the error names these tables.

        Arrays are sent in place. Do not write to them before push() has
        returned, or after an error other than InvalidArgument.

        - After InvalidArgument, for example for a NaN, other workers still wait
          for the step: push it again, with other gradients or none.
        - After Restarted, continue with the exception's step: the push is lost,
          or the restored checkpoint contains it.
        - After any other error, the push may have counted: push the same
          gradients again before another step. They count once.
        """
        return Pushed(self._attachment.call(
            lambda worker: worker.start_push(step, gradients, rows,
                                             0).wait()))

    def push_async(self, step: int, gradients: Gradients | None = None, *,
                   rows: RowGradients | None = None) -> Future[Pushed]:
        """Starts a push(), and returns its future. Do not write to the arrays
        before the future is done."""
        return self._start(
            lambda worker, number: worker.start_push(step, gradients, rows,
                                                     number), Pushed)

    def _start(self, begin: Callable[[_penstock._PsWorker, int],
                                     _penstock._PsPending],
               convert: Callable[[Any], Result]) -> Future[Result]:
        attachment = self._attachment

        def start(worker: _penstock._PsWorker) -> Future[Result]:
            return futures.start(
                lambda number: begin(worker, number), convert,
                lambda error: attachment.explain(worker, error))

        return attachment.call(start)

    def checkpoint(self, *, incremental: bool = False, keep: int = 0,
                   timeout: float = 600.0) -> Checkpoint:
        """Makes all servers write a checkpoint, and waits for it.

        Training continues in the meantime. The checkpoint may lack an
        acknowledged push whose effect no pull() has shown yet. An incremental
        checkpoint has the changes since the newest one. `keep` is the number of
        checkpoints to keep; 0 keeps all.
        """
        return Checkpoint(*self._attachment.call(
            lambda worker: worker.checkpoint(incremental, keep, timeout)))

    def close(self) -> None:
        """Leaves the training. Calls in progress raise Error with the code
        CANCELLED."""
        self._attachment.close()

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, kind: type[BaseException] | None,
                 error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()


class Reader:
    """Reads values without taking part in the training: workers do not wait
    for a reader.

    The arguments are those of Worker. Without `wait_for_values`, the
    constructor does not wait for a chief.
    """

    def __init__(self, servers: Iterable[str], *, timeout: float = 60.0,
                 wait_for_values: bool = True, tls: TlsFiles | None = None,
                 secret: Path | None = None, stock: bool = False) -> None:
        self._reader = _penstock._PsReader(
            {"servers": servers, "timeout": timeout,
             "wait_for_values": wait_for_values, "tls": tls, "secret": secret,
             "stock": stock})

    @property
    def tables(self) -> tuple[Table, ...]:
        """The tables of the model."""
        return self._reader.tables()

    def pull(self, step: int = 0, *, dense: Iterable[str] | None = None,
             rows: Rows | None = None, dtype: str | None = None,
             timeout: float = 60.0) -> Pulled:
        """Returns values like Worker.pull(). During training, values of
        different servers may be some steps apart."""
        return pulled_of(self._reader.start_pull(step, dense, rows, dtype,
                                                 timeout, 0).wait())

    def pull_async(self, step: int = 0, *, dense: Iterable[str] | None = None,
                   rows: Rows | None = None, dtype: str | None = None,
                   timeout: float = 60.0) -> Future[Pulled]:
        """Starts a pull(), and returns its future, like Worker.pull_async()."""
        return futures.start(
            lambda number: self._reader.start_pull(step, dense, rows, dtype,
                                                   timeout, number), pulled_of)

    def checkpoint(self, *, incremental: bool = False, keep: int = 0,
                   timeout: float = 600.0) -> Checkpoint:
        """Makes the servers write a checkpoint, like Worker.checkpoint()."""
        return Checkpoint(
            *self._reader.checkpoint(incremental, keep, timeout))

    def close(self) -> None:
        """Closes the connections. Calls in progress raise Error with the code
        CANCELLED."""
        self._reader.close()

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, kind: type[BaseException] | None,
                 error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()


for _name in __all__:
    if isinstance(globals()[_name], type):
        globals()[_name].__module__ = __name__
