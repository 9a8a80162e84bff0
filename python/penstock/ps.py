"""Parameter servers: models that several workers train together.

    with ps.Worker(["ps0:7000"], rank=0, model=[
            ps.Dense("w", "f32", [64, 10], optimizer=ps.Sgd(0.1))],
            values={"w": numpy.zeros((64, 10), "f4")}) as worker:
        for step in worker.steps(1000):
            pulled = worker.pull(step)
            worker.push(step, {"w": gradient_at(pulled["w"])})

The servers are the program ps_server. Guarantees are in docs/ps.md: a push that
was acknowledged counts once, and a pull returns values that are as fresh as the
staleness of their table says.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Union

from numpy.typing import ArrayLike

from . import _penstock
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
    "RandomK", "Reader", "RmsProp", "Schedule", "Sgd", "Sparse", "Step",
    "Table", "TableSpec", "TlsFiles", "TopK", "Uniform", "Worker", "Zeros",
    "clip_by_global_norm",
]

Path = Union[str, "os.PathLike[str]"]
Gradients = Mapping[str, Any]
Rows = Mapping[str, ArrayLike]
RowGradients = Mapping[str, tuple[ArrayLike, Any]]


@dataclass(frozen=True)
class TlsFiles:
    """Paths of PEM files: who signs the servers' certificates, and this
    process's own certificate and private key."""

    ca: Path
    cert: Path
    key: Path


class Worker:
    """A worker of a training, of which each rank has one at a time.

    It joins at once. `servers` are addresses, the same and in the same order in
    each worker. The chief has rank 0 and gives the `model`, and the first
    `values` of all dense tables by name, which are used unless the servers have
    some, of an earlier chief or a checkpoint; the others wait for it. A chief
    that is started anew goes on.

    `timeout` limits, in seconds, the wait for servers and chief; `pull_timeout`
    and `push_timeout` each call, with its waits for other workers and for
    servers that are gone. `secret` is the path of a file. `stock` uses gRPC
    without Penstock. `compression` says by table how gradients are sent, but
    for small tables that share a message.

    Threads may share a worker. Ctrl-C ends a wait; the call itself goes on, and
    nobody hears of its result. Close a worker, or use it in `with`: then others
    do not wait for it. One that just dies is waited for until its lease ends.
    """

    def __init__(self, servers: Iterable[str], *, rank: int,
                 model: Iterable[TableSpec] | None = None,
                 values: Mapping[str, Any] | None = None,
                 compression: Mapping[str, Compression] | None = None,
                 timeout: float = 60.0, pull_timeout: float = 900.0,
                 push_timeout: float = 900.0, tls: TlsFiles | None = None,
                 secret: Path | None = None, stock: bool = False) -> None:
        self._worker = _penstock._PsWorker(
            {"servers": servers, "rank": rank, "model": model, "values": values,
             "compression": compression, "timeout": timeout,
             "pull_timeout": pull_timeout, "push_timeout": push_timeout,
             "tls": tls, "secret": secret, "stock": stock})

    @property
    def clock(self) -> int:
        """The step to begin with: after a restart of this rank, the first that
        a server has not had from it."""
        return self._worker.clock()

    @property
    def restored_step(self) -> int:
        """The checkpoint that this chief's servers have begun with; 0: none."""
        return self._worker.restored_step()

    @property
    def tables(self) -> tuple[Table, ...]:
        """The tables of the model."""
        return self._worker.tables()

    def steps(self, end: int) -> range:
        """Returns the steps from clock on, below `end`."""
        return range(self.clock, end)

    def pull(self, step: int, *, dense: Iterable[str] | None = None,
             rows: Rows | None = None, dtype: str | None = None) -> Pulled:
        """Returns values that are fresh enough for `step`; waits for them.

        `dense` are the dense tables that are wanted; None: all. `rows` has ids
        by sparse table, which may repeat. With `dtype` "bf16" or "f16", values
        of longer types are sent and returned as such.
        """
        return pulled_of(
            self._worker.start_pull(step, dense, rows, dtype, 0).wait())

    def pull_async(self, step: int, *, dense: Iterable[str] | None = None,
                   rows: Rows | None = None,
                   dtype: str | None = None) -> Future[Pulled]:
        """Begins a pull(), and returns its future. That cannot be cancelled;
        its callbacks run on one thread for all calls, and should be short."""
        return futures.start(
            lambda number: self._worker.start_pull(step, dense, rows, dtype,
                                                   number), pulled_of)

    def push(self, step: int, gradients: Gradients | None = None, *,
             rows: RowGradients | None = None) -> Pushed:
        """Hands over the gradients of `step`, and ends it at all servers.

        `gradients` has an array by dense table, `rows` a pair (ids, array) by
        sparse table; those of ids that repeat are added up. Tables without
        gradients may be left out; but of small ones that share a message give
        all or none, or zeros: the error names them. Arrays are sent from where
        they lie: do not write to them before this has returned, nor after an
        error of it other than InvalidArgument. After such an error it may have
        counted: push the same step again, before another one, and it counts
        once. After InvalidArgument, as of a gradient that is NaN, others wait
        for the step: push it again, with other gradients or none.
        """
        return Pushed(
            self._worker.start_push(step, gradients, rows, 0).wait())

    def push_async(self, step: int, gradients: Gradients | None = None, *,
                   rows: RowGradients | None = None) -> Future[Pushed]:
        """Begins a push(), and returns its future. Do not write to the arrays
        before that is done."""
        return futures.start(
            lambda number: self._worker.start_push(step, gradients, rows,
                                                   number), Pushed)

    def checkpoint(self, *, incremental: bool = False, keep: int = 0,
                   timeout: float = 600.0) -> Checkpoint:
        """Has all servers write a checkpoint, and waits for it.

        Training goes on meanwhile. A push that was acknowledged may not be in
        it before a pull() has shown it. An incremental one has what changed
        since the newest. `keep` removes all but so many; 0: none.
        """
        return Checkpoint(
            *self._worker.checkpoint(incremental, keep, timeout))

    def close(self) -> None:
        """Leaves the training. Calls under way raise Error, with the code
        CANCELLED."""
        self._worker.close()

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, kind: type[BaseException] | None,
                 error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()


class Reader:
    """Reads what is trained without taking part: nobody waits for it.

    Arguments are as Worker's. Without `wait_for_values` it does not wait for a
    chief.
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
        """Returns values as Worker.pull() does. While training goes on, those
        of several servers may be some steps apart."""
        return pulled_of(self._reader.start_pull(step, dense, rows, dtype,
                                                 timeout, 0).wait())

    def pull_async(self, step: int = 0, *, dense: Iterable[str] | None = None,
                   rows: Rows | None = None, dtype: str | None = None,
                   timeout: float = 60.0) -> Future[Pulled]:
        """Begins a pull(), and returns its future, as Worker's does."""
        return futures.start(
            lambda number: self._reader.start_pull(step, dense, rows, dtype,
                                                   timeout, number), pulled_of)

    def checkpoint(self, *, incremental: bool = False, keep: int = 0,
                   timeout: float = 600.0) -> Checkpoint:
        """Has the servers write a checkpoint, as Worker.checkpoint() does."""
        return Checkpoint(
            *self._reader.checkpoint(incremental, keep, timeout))

    def close(self) -> None:
        """Lets go of the connections. Calls under way raise Error, with the
        code CANCELLED."""
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
