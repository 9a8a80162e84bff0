"""Operations of a group, checked and ready to run."""

from __future__ import annotations

from typing import Any, Callable, Tuple

from . import _arrays
from .._errors import FailedPrecondition, InvalidArgument

# A channel of messages: a direction, the other rank, and a tag.
Channel = Tuple[str, int, int]

_MOST_TAG = 2**32 - 1


def _channel(direction: str, rank: int, tag: Any) -> Channel:
    if isinstance(tag, bool) or not hasattr(tag, "__index__"):
        raise TypeError(f"tag is {tag!r}: give an int")
    if not 0 <= int(tag) <= _MOST_TAG:
        raise InvalidArgument(f"tag is {tag}, expected 0 to {_MOST_TAG}")
    return direction, rank, int(tag)


class Prepared:
    """The part of a Group that checks arguments. Each method returns a function
    that runs one operation and returns its result. The function keeps the
    arrays alive."""

    def __init__(self, native: Any) -> None:
        self._native = native  # None once the group is closed
        self._why_closed = "the group is closed"
        self._rank: int = native.rank
        self._size: int = native.size

    def _open(self) -> Any:
        native = self._native
        if native is None:
            raise FailedPrecondition(self._why_closed)
        return native

    def _check_rank(self, rank: Any, title: str) -> int:
        if isinstance(rank, bool) or not hasattr(rank, "__index__"):
            raise TypeError(f"{title} is {rank!r}: give an int")
        number = int(rank)
        if not 0 <= number < self._size:
            raise InvalidArgument(
                f"{title} is {number}, expected 0 to {self._size - 1}")
        return number

    def _task(self, operation: str, op: str, source: Any, target: Any,
              returns: Any, root: int = 0) -> Callable[[], Any]:
        native = self._open()
        kind = (source or target).type
        flat_in = None if source is None else source.flat
        flat_out = None if target is None else target.flat

        def task() -> Any:
            native.run(operation, op, kind, flat_in, flat_out, root)
            if target is not None:
                target.finish()
            return returns
        return task

    def _allreduce(self, array: Any, op: str, out: Any) -> Callable[[], Any]:
        source = _arrays.reads(array, op)
        target, returns = _arrays.result(out, source, source.array.shape, op)
        return self._task("all_reduce", op, source, target, returns)

    def _reduce(self, array: Any, op: str, root: int,
                out: Any) -> Callable[[], Any]:
        root = self._check_rank(root, "root")
        source = _arrays.reads(array, op)
        target, returns = None, None
        if root == self._rank:
            target, returns = _arrays.result(out, source, source.array.shape,
                                             op)
        return self._task("reduce", op, source, target, returns, root)

    def _reduce_scatter(self, array: Any, op: str,
                        out: Any) -> Callable[[], Any]:
        source = _arrays.reads(array, op)
        shape = _arrays.split(source.array.shape, self._size, "the array")
        target, returns = _arrays.result(out, source, shape, op)
        return self._task("reduce_scatter", op, source, target, returns)

    def _allgather(self, array: Any, out: Any) -> Callable[[], Any]:
        source = _arrays.reads(array)
        shape = _arrays.join(source.array.shape, self._size)
        target, returns = _arrays.result(out, source, shape)
        return self._task("all_gather", "max", source, target, returns)

    def _gather(self, array: Any, root: int, out: Any) -> Callable[[], Any]:
        root = self._check_rank(root, "root")
        source = _arrays.reads(array)
        target, returns = None, None
        if root == self._rank:
            shape = _arrays.join(source.array.shape, self._size)
            target, returns = _arrays.result(out, source, shape)
        return self._task("gather", "max", source, target, returns, root)

    def _scatter(self, array: Any, root: int, out: Any) -> Callable[[], Any]:
        root = self._check_rank(root, "root")
        source = None
        if root == self._rank:
            source = _arrays.reads(array)
            shape = _arrays.split(source.array.shape, self._size, "the array")
            target, returns = _arrays.result(out, source, shape)
        elif out is None:
            raise InvalidArgument(
                f"rank {self._rank} does not know the shape of its block of "
                f"rank {root}'s array: give out=")
        else:
            target, returns = _arrays.writes(out), out
        return self._task("scatter", "max", source, target, returns, root)

    def _broadcast(self, array: Any, root: int) -> Callable[[], Any]:
        root = self._check_rank(root, "root")
        if root == self._rank:
            elements = _arrays.reads(array)
        else:
            elements = _arrays.writes(array, title="the array")
        return self._task("broadcast", "max", None, elements, array, root)

    def _alltoall(self, array: Any, out: Any) -> Callable[[], Any]:
        source = _arrays.reads(array)
        _arrays.split(source.array.shape, self._size, "the array")
        target, returns = _arrays.result(out, source, source.array.shape)
        return self._task("all_to_all", "max", source, target, returns)

    def _barrier(self) -> Callable[[], Any]:
        native = self._open()
        return lambda: native.run("barrier", "max", "uint8", None, None, 0)

    def _send(self, array: Any, to: int,
              tag: int) -> Tuple[Channel, Callable[[], Any]]:
        native = self._open()
        to = self._check_rank(to, "to")
        elements = _arrays.reads(array)
        return (_channel("send", to, tag),
                lambda: native.send(elements.type, elements.flat, to, tag))

    def _recv(self, out: Any, source: int,
              tag: int) -> Tuple[Channel, Callable[[], Any]]:
        native = self._open()
        source = self._check_rank(source, "source")
        elements = _arrays.writes(out)

        def task() -> Any:
            native.receive(elements.type, elements.flat, source, tag)
            elements.finish()
            return out
        return _channel("recv", source, tag), task
