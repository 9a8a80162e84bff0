"""A group of ranks."""

from __future__ import annotations

import os
import threading
import weakref
from typing import Any, Callable, List, Optional, Sequence, Tuple

from . import _pool
from ._prepared import Channel, Prepared
from ._turns import Handle, Turns
from .. import _collectives  # type: ignore[attr-defined]
from .._errors import FailedPrecondition

# The groups of this process.
_groups: "weakref.WeakSet[Group]" = weakref.WeakSet()
# The groups of the parent, in the child of a fork. They are never destroyed.
_of_parent: List[Any] = []


class Group(Prepared):
    """Ranks that call the same operations in the same order, with arrays of the
    same type and size.

    init() makes the first group, and split() makes groups within a group.

    Each operation exists in two forms. `allreduce()` and so on return when this
    rank has its result. `allreduce_async()` and so on return a Handle at once.
    Operations of a group run one after another, in the order of the calls.
    Messages run concurrently with them.

    The first error ends the group on all ranks: a rank that dies, stops, leaves,
    or calls something else. The error names the rank. Afterwards, close() the
    group, and form another. A wrong argument raises before the ranks meet, and
    the group continues.

    Thread-safe. All waits release the GIL.
    """

    def __init__(self, native: Any, hosts: Sequence[int], has_pool: bool,
                 listen: Callable[[], Any], form: Callable[..., Any]) -> None:
        super().__init__(native)
        self._hosts = tuple(hosts)
        self._has_pool = has_pool
        self._listen = listen
        self._form = form
        self._turns = Turns()
        self._lock = threading.RLock()  # signal handlers take it again
        # The order of the messages of each channel.
        self._messages: "weakref.WeakValueDictionary[Channel, Turns]" = (
            weakref.WeakValueDictionary())
        _groups.add(self)

    # Properties.

    @property
    def rank(self) -> int:
        """The number of this process, from 0 on."""
        return self._rank

    @property
    def size(self) -> int:
        """The number of ranks."""
        return self._size

    @property
    def hosts(self) -> Tuple[int, ...]:
        """The host of each rank. Hosts are numbered from 0 in the order of
        their first ranks."""
        return self._hosts

    @property
    def local_rank(self) -> int:
        """The number of this process among those on its host, from 0 on."""
        return self._hosts[:self._rank].count(self._hosts[self._rank])

    @property
    def local_size(self) -> int:
        """The number of ranks on this host."""
        return self._hosts.count(self._hosts[self._rank])

    def describe(self) -> str:
        """Returns a text for people: the paths by which this rank reaches the
        others."""
        return str(self._open().describe())

    # Memory.

    def empty(self, shape: Any, dtype: Any = "float64") -> Any:
        """Returns a new array, as numpy.empty() does, in the group's pool, which
        the ranks of this host read in place.

        If the arrays of all ranks are in pools, allreduce(array, out=array) and
        all other operations copy only the result. The memory returns to
        the pool with the last array that uses it. An array may outlive the
        group. Without another rank on this host, the array is numpy's.

        Raises ResourceExhausted if the pool has no room, and FailedPrecondition
        if init() had no pool_bytes.
        """
        return _pool.empty(self._open(), self._has_pool, shape, dtype)

    # Operations.

    def allreduce(self, array: Any, op: str = "sum", *, out: Any = None) -> Any:
        """Reduces the arrays of all ranks, element by element.

        `op` is "sum", "product", "min", "max", "average", "and", "or" or "xor".
        Returns a new array, or `out`, which may be `array` itself. Results are
        bit-equal on all ranks.
        """
        return self._run(self._allreduce(array, op, out))

    def allreduce_async(self, array: Any, op: str = "sum", *,
                        out: Any = None) -> Handle:
        """Starts allreduce()."""
        return self._turns.start(self._allreduce(array, op, out))

    def reduce(self, array: Any, op: str = "sum", root: int = 0, *,
               out: Any = None) -> Any:
        """Reduces like allreduce(), but only the root gets the result. Returns
        None on the other ranks."""
        return self._run(self._reduce(array, op, root, out))

    def reduce_async(self, array: Any, op: str = "sum", root: int = 0, *,
                     out: Any = None) -> Handle:
        """Starts reduce()."""
        return self._turns.start(self._reduce(array, op, root, out))

    def reduce_scatter(self, array: Any, op: str = "sum", *,
                       out: Any = None) -> Any:
        """Reduces the arrays of all ranks, and returns this rank's block of the
        result: a part of the first dimension."""
        return self._run(self._reduce_scatter(array, op, out))

    def reduce_scatter_async(self, array: Any, op: str = "sum", *,
                             out: Any = None) -> Handle:
        """Starts reduce_scatter()."""
        return self._turns.start(self._reduce_scatter(array, op, out))

    def allgather(self, array: Any, *, out: Any = None) -> Any:
        """Concatenates the arrays of all ranks along the first dimension.
        Numbers become an array with one element for each rank."""
        return self._run(self._allgather(array, out))

    def allgather_async(self, array: Any, *, out: Any = None) -> Handle:
        """Starts allgather()."""
        return self._turns.start(self._allgather(array, out))

    def gather(self, array: Any, root: int = 0, *, out: Any = None) -> Any:
        """Gathers like allgather(), but only the root gets the result. Returns
        None on the other ranks."""
        return self._run(self._gather(array, root, out))

    def gather_async(self, array: Any, root: int = 0, *,
                     out: Any = None) -> Handle:
        """Starts gather()."""
        return self._turns.start(self._gather(array, root, out))

    def scatter(self, array: Any = None, root: int = 0, *,
                out: Any = None) -> Any:
        """Returns this rank's block of the root's array: a part of the first
        dimension. The other ranks need `out`, and their `array` is ignored."""
        return self._run(self._scatter(array, root, out))

    def scatter_async(self, array: Any = None, root: int = 0, *,
                      out: Any = None) -> Handle:
        """Starts scatter()."""
        return self._turns.start(self._scatter(array, root, out))

    def broadcast(self, array: Any, root: int = 0) -> Any:
        """Overwrites the array with the root's, and returns the array."""
        return self._run(self._broadcast(array, root))

    def broadcast_async(self, array: Any, root: int = 0) -> Handle:
        """Starts broadcast()."""
        return self._turns.start(self._broadcast(array, root))

    def alltoall(self, array: Any, *, out: Any = None) -> Any:
        """Sends block r of the array to rank r. Returns the blocks from all
        ranks, in the order of the ranks. Blocks are equal parts of the first
        dimension."""
        return self._run(self._alltoall(array, out))

    def alltoall_async(self, array: Any, *, out: Any = None) -> Handle:
        """Starts alltoall()."""
        return self._turns.start(self._alltoall(array, out))

    def barrier(self) -> None:
        """Waits until all ranks have called barrier()."""
        self._run(self._barrier())

    def barrier_async(self) -> Handle:
        """Starts barrier()."""
        return self._turns.start(self._barrier())

    # Messages.

    def send(self, array: Any, to: int, tag: int = 0) -> None:
        """Sends an array to another rank. Returns when the array may change. A
        large array waits for its receiver."""
        channel, function = self._send(array, to, tag)
        self._turns_of(channel).run(function, self._end)

    def send_async(self, array: Any, to: int, tag: int = 0) -> Handle:
        """Starts send(). Messages of one sender and one tag keep their
        order."""
        channel, function = self._send(array, to, tag)
        return self._turns_of(channel).start(function)

    def recv(self, out: Any, source: int, tag: int = 0) -> Any:
        """Receives the next array with this tag from a rank into `out`, and
        returns `out`. An array of another size or type ends the group."""
        channel, function = self._recv(out, source, tag)
        return self._turns_of(channel).run(function, self._end)

    def recv_async(self, out: Any, source: int, tag: int = 0) -> Handle:
        """Starts recv()."""
        channel, function = self._recv(out, source, tag)
        return self._turns_of(channel).start(function)

    # The life of a group.

    def split(self, color: Optional[int], *,
              pool_bytes: int = 0) -> Optional["Group"]:
        """Forms a group of the ranks that give the same color, in the order of
        their ranks. All ranks call this function. A rank that gives None joins
        no group, and gets None. `pool_bytes` are as in init()."""
        _pool.check_pool(pool_bytes)
        if color is not None and not isinstance(color, int):
            raise TypeError(f"color is {color!r}: give an int or None")
        # Meets the other ranks even if this rank's listener fails, because they
        # wait for this rank.
        listener, error = None, None
        if color is not None:
            try:
                listener = self._listen()
            except Exception as raised:  # pylint: disable=broad-except
                error = raised
        line = [str(color), "" if listener is None else listener.address]
        lines = self._exchange("\n".join(line).encode())
        if error is not None:
            raise error
        if listener is None:
            return None
        members = [rank for rank, (theirs, _) in enumerate(lines)
                   if theirs == str(color)]
        for rank in members:
            if not lines[rank][1]:
                raise FailedPrecondition(
                    f"rank {rank} cannot listen for its new group")
        addresses = [lines[rank][1] for rank in members]
        # Waits on another thread, so that Ctrl-C ends the wait.
        group: Group = Turns().start(lambda: self._form(
            listener, addresses, members.index(self._rank),
            pool_bytes)).wait()
        return group

    def abort(self) -> None:
        """Ends all operations on all ranks. The operations raise Cancelled,
        which names this rank. Does not wait."""
        self._open().abort()

    def close(self) -> None:
        """Waits for the operations that have been called, and leaves the
        group. Messages that are still in progress end with Cancelled, and end
        the group on all ranks. Idempotent.

        In a signal handler that runs during a wait for this group, does not
        wait, and ends the group on all ranks."""
        if self._native is None:
            return
        if any(turns.is_called_here() for turns in self._all_turns()):
            self._end()
            self._leave()
            return
        self._run(self._leave)

    def __enter__(self) -> "Group":
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if kind is not None and self._native is not None:
            self.abort()
        self.close()

    def __repr__(self) -> str:
        return f"penstock.collectives.Group(rank {self._rank} of {self._size})"

    # The private part.

    def _run(self, function: Callable[[], Any]) -> Any:
        return self._turns.run(function, self._end)

    def _end(self) -> None:
        """Aborts the group unless it is closed."""
        native = self._native
        if native is not None:
            native.abort()

    def _leave(self) -> None:
        native, self._native = self._native, None
        if native is None:
            return
        messages = self._all_turns()[1:]
        if not all(turns.is_idle() for turns in messages):
            native.abort()
        native.close()

    def _leave_at_exit(self) -> None:
        native = self._native
        if native is None:
            return
        if not self._turns.is_idle():
            native.abort()
            self._native = None
            return  # another thread is in the group
        self._leave()

    def _leave_to_parent(self) -> None:
        _of_parent.append(self._native)
        self._native = None
        self._why_closed = "the group belongs to the parent of this process"
        # Makes a new lock, because another thread may have held the old one.
        self._lock = threading.RLock()
        for turns in self._all_turns():
            turns.end_in_child(FailedPrecondition(self._why_closed))
        self._turns = Turns()

    def _all_turns(self) -> List[Turns]:
        """Returns the queues of operations and of messages."""
        with self._lock:
            return [self._turns, *self._messages.values()]

    def _turns_of(self, channel: Channel) -> Turns:
        """Returns the queue of the messages of a channel."""
        with self._lock:
            turns = self._messages.get(channel)
            if turns is None:
                turns = self._messages[channel] = Turns()
            return turns

    def _exchange(self, text: bytes) -> List[List[str]]:
        """Returns the lines of each rank's text."""
        longest = int(self.allreduce(len(text), "max"))
        padded = text.ljust(longest, b"\0")
        # Sends all texts padded to one length, as one element for each rank.
        texts = bytes(self.allgather(memoryview(padded)))
        return [texts[at:at + longest].rstrip(b"\0").decode().split("\n")
                for at in range(0, len(texts), longest)]


def _close_all() -> None:
    for group in list(_groups):
        group._leave_at_exit()  # pylint: disable=protected-access


def _after_fork() -> None:
    _collectives.note_main_thread()
    for group in list(_groups):
        group._leave_to_parent()  # pylint: disable=protected-access


os.register_at_fork(after_in_child=_after_fork)
