"""Collective operations among processes, on NumPy arrays and others.

    from penstock import collectives

    group = collectives.init()                 # under torchrun, srun or mpirun
    mean = group.allreduce(gradient, "average")
    group.broadcast(weights, root=0)           # overwrites `weights`
    handle = group.allreduce_async(gradient, out=gradient)
    handle.wait()

Arrays are those of NumPy, any object of the CPU that has __dlpack__, such as a
tensor of PyTorch, and numbers. Processes of one host use shared memory, and
those of several hosts RDMA or TCP. docs/collectives_python.md has the details.
"""

from __future__ import annotations

import atexit
import hashlib
import os
from typing import Any, List, Optional, Tuple

from . import _launch, _rendezvous
from ._group import Group, _close_all
from ._pool import check_pool
from ._turns import Handle, Turns
from .. import _collectives  # type: ignore[attr-defined]
from .._errors import (
    Cancelled, DeadlineExceeded, Error, FailedPrecondition, InvalidArgument,
    ResourceExhausted, Unavailable)

__all__ = [
    "Cancelled", "DeadlineExceeded", "Error", "FailedPrecondition", "Group",
    "Handle", "InvalidArgument", "ResourceExhausted", "Unavailable", "init",
]

# The longest wait that both C++ and Python accept: about a year.
_MOST_SECONDS = 3e7


def init(rank: Optional[int] = None, size: Optional[int] = None, *,
         address: Optional[str] = None, folder: Any = None, store: Any = None,
         secret: Any = None, host: Optional[str] = None,
         timeout: float = 1800.0, init_timeout: float = 60.0,
         algorithms: str = "", pool_bytes: int = 0) -> Group:
    """Forms a group with the processes that call init() with the same
    arguments.

    rank, size    This process, and their number. By default, as torchrun, srun
                  (Slurm), mpirun (Open MPI) or mpiexec (MPICH) say in the
                  environment.
    address       HOST:PORT of rank 0, where a port is free. By default that of
                  the launcher: MASTER_ADDR and MASTER_PORT, or Slurm's first
                  node.
    folder        In place of `address`: an empty folder that all ranks see.
    store         In place of `address`: a Store of torch.distributed, or an
                  object with its set(), get() and add().
    secret        str or bytes, equal on all ranks, for `address`. By default
                  made of the job's name, which is no secret.
    host          The numeric address of this host at which other ranks reach
                  it. By default that from which packets go to `address`.
    timeout       Limits each wait of an operation for other ranks, in seconds.
    init_timeout  Limits the forming of the group, in seconds.
    algorithms    Forces algorithms between hosts: "all_reduce=ring" and so on.
    pool_bytes    The memory of each rank for Group.empty(), equal on all ranks.
                  init() allocates it.

    Raises DeadlineExceeded if ranks do not come, with their numbers if this
    rank knows them. Ctrl-C ends the wait.
    """
    launch = None if size is not None else _launch.find(os.environ)
    rank, size = _place(rank, size, launch)
    _check_seconds("timeout", timeout)
    _check_seconds("init_timeout", init_timeout)
    if host is not None:
        _rendezvous.check_numeric(host)
    check_pool(pool_bytes)
    if sum(way is not None for way in (address, folder, store)) > 1:
        raise InvalidArgument("give one of address, folder and store")
    if address is None and launch is not None:
        address = launch.address
        if folder is None and store is None and launch.has_store:
            store = _store_of_torchrun()
    meeting = _Meeting(rank, size, init_timeout, timeout, algorithms,
                       pool_bytes)
    if folder is not None:
        meet = lambda: meeting.by_folder(folder, host)
    elif store is not None:
        meet = lambda: meeting.by_store(store, address, host)
    elif address is not None:
        at = _rendezvous.parse(address)
        token = _token(secret, launch)
        meet = lambda: meeting.by_address(at, token, host)
    elif size == 1:
        meet = meeting.alone
    else:
        raise InvalidArgument(
            f"rank {rank} does not know how to find the others: give "
            "address=\"HOST:PORT\" of rank 0 or folder=, or set MASTER_ADDR and "
            "MASTER_PORT")
    # Waits on another thread, so that Ctrl-C ends the wait.
    handle = Turns().start(meet)
    try:
        group: Group = handle.wait()
    finally:
        if not handle.done():
            meeting.give_up()
    return group


def _place(rank: Optional[int], size: Optional[int],
           launch: Optional[_launch.Launch]) -> Tuple[int, int]:
    if rank is None and size is None and launch is not None:
        rank, size = launch.rank, launch.size
    if rank is None or size is None:
        raise InvalidArgument(
            "give rank= and size=, or start the program by torchrun, srun or "
            "mpirun, whose variables are not in the environment")
    for title, value in (("rank", rank), ("size", size)):
        if isinstance(value, bool) or not hasattr(value, "__index__"):
            raise TypeError(f"{title} is {value!r}: give an int")
    if not 0 <= rank < size:
        raise InvalidArgument(f"rank is {rank} of a group of size {size}: "
                              "ranks are 0 to size - 1")
    if size > _collectives.MAX_RANKS:
        raise InvalidArgument(
            f"size is {size}: a group has at most {_collectives.MAX_RANKS} "
            "ranks")
    return int(rank), int(size)


def _check_seconds(title: str, seconds: Any) -> None:
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)):
        raise TypeError(f"{title} is {seconds!r}: give seconds")
    if not 0 < seconds <= _MOST_SECONDS:
        raise InvalidArgument(f"{title} is {seconds} seconds, expected above 0 "
                              f"and up to {_MOST_SECONDS:.0f}")


def _token(secret: Any, launch: Optional[_launch.Launch]) -> bytes:
    if secret is None:
        secret = "" if launch is None else launch.job
    # Does not call bytes() for other types: bytes(5) is five zero bytes. The
    # text does not show the secret.
    if not isinstance(secret, (str, bytes, bytearray)):
        raise TypeError(
            f"secret is of type {type(secret).__name__}: give str or bytes")
    text = secret.encode() if isinstance(secret, str) else bytes(secret)
    return hashlib.sha256(b"penstock.collectives " + text).digest()


def _store_of_torchrun() -> Any:
    try:
        # pylint: disable=import-outside-toplevel
        from torch.distributed import rendezvous  # type: ignore
    except ImportError as error:
        raise InvalidArgument(
            "torchrun's store needs torch, which is not installed for this "
            "Python: give address=\"HOST:PORT\" or folder=") from error
    return next(iter(rendezvous("env://")))[0]


class _Meeting:
    """One attempt to form a group."""

    def __init__(self, rank: int, size: int, forming: float, timeout: float,
                 algorithms: str, pool_bytes: int) -> None:
        self._rank, self._size = rank, size
        self._forming, self._timeout = forming, timeout
        self._algorithms = algorithms
        self._pool_bytes = pool_bytes
        self._folder: Optional[_rendezvous.Folder] = None

    def give_up(self) -> None:
        """Leaves the folder empty for another attempt."""
        if self._folder is not None:
            self._folder.leave()

    def alone(self) -> Group:
        listener = _collectives.Listener("127.0.0.1")
        return self._form("127.0.0.1", listener, [listener.address], 0,
                          self._pool_bytes)

    def by_folder(self, path: Any, host: Optional[str]) -> Group:
        host = host or _rendezvous.own_address(None)
        listener = _collectives.Listener(host)
        folder = self._folder = _rendezvous.Folder(path, self._rank)
        try:
            addresses = folder.exchange(self._size, self._forming,
                                        listener.address)
            group = self._form(host, listener, addresses, self._rank,
                               self._pool_bytes)
        finally:
            folder.leave()
        # Waits until the folder is empty, so that any rank may call init()
        # again.
        group.barrier()
        return group

    def by_store(self, store: Any, address: Optional[str],
                 host: Optional[str]) -> Group:
        if host is None:
            towards = None
            if address is not None:
                towards = _rendezvous.resolve(_rendezvous.parse(address)[0])
            host = _rendezvous.own_address(towards)
        listener = _collectives.Listener(host)
        addresses = _rendezvous.by_store(store, self._rank, self._size,
                                         self._forming, listener.address)
        return self._form(host, listener, addresses, self._rank,
                          self._pool_bytes)

    def by_address(self, at: Tuple[str, int], token: bytes,
                   host: Optional[str]) -> Group:
        name, port = at
        numeric = _rendezvous.resolve(name)
        is_hidden = _rendezvous.is_hidden(name, numeric)
        host = host or _rendezvous.own_address(None if is_hidden else numeric)
        listener = _collectives.Listener(host)
        if is_hidden and self._rank == 0:
            numeric = "0.0.0.0"
        target = f"{_rendezvous.in_brackets(numeric)}:{port}"
        addresses = _rendezvous.by_address(target, token, self._rank,
                                           self._size, self._forming,
                                           listener.address)
        return self._form(host, listener, addresses, self._rank,
                          self._pool_bytes)

    def _form(self, host: str, listener: Any, addresses: List[str],
              rank: int, pool_bytes: int) -> Group:
        native = _collectives.form(listener, addresses, rank, self._forming,
                                   self._timeout, self._algorithms, pool_bytes)
        return Group(
            native, _collectives.hosts_of(addresses), pool_bytes > 0,
            lambda: _collectives.Listener(host),
            lambda *place: self._form(host, *place))


atexit.register(_close_all)
