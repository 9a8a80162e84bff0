#!/usr/bin/python3 -B
"""Tests the operations of groups of ranks: arrays, wrong arguments, handles,
messages."""

import contextlib
import ctypes
import threading

import run_pytest

import numpy as np
import pytest

from collectives_ranks import raises, run
from penstock import collectives
from penstock.collectives import _turns


@pytest.fixture(name="alone", scope="module")
def make_alone():
    with collectives.init(0, 1) as group:
        yield group



def each_operation(group):
    rank, size = group.rank, group.size
    ones = np.ones(3, "f4")
    assert group.allreduce(ones).tolist() == [size] * 3
    assert group.allreduce(rank, "max") == size - 1
    gathered = group.allgather([[rank, 7]])
    assert gathered.tolist() == [[r, 7] for r in range(size)]
    assert group.allgather(rank).tolist() == list(range(size))
    own = np.full(2, rank)
    assert group.broadcast(own, 1) is own and own.tolist() == [1, 1]
    blocks = np.arange(size) + 10 * rank
    assert group.alltoall(blocks).tolist() == [rank + 10 * r
                                               for r in range(size)]
    assert group.reduce_scatter(np.arange(size)).tolist() == [size * rank]
    total = group.reduce(ones, root=2)
    assert total.tolist() == [size] * 3 if rank == 2 else total is None
    out = np.zeros(1, "i8")
    assert group.scatter(np.arange(size) if rank == 0 else None,
                         out=out) is out and out == rank
    everyone = group.gather(np.array([rank]), 1)
    assert (everyone is None) == (rank != 1)
    group.barrier()
    if rank == 0:
        group.send(np.arange(5), 1, tag=3)
    elif rank == 1:
        assert group.recv(np.zeros(5, "i8"), 0, tag=3).tolist() == [
            0, 1, 2, 3, 4]
    assert group.hosts == (0,) * size
    assert (group.local_rank, group.local_size) == (rank, size)
    assert f"rank {rank}" in repr(group)
    return group.describe()


def test_each_operation():
    for text in run(3, each_operation):
        assert "rank" in text


class Lent:
    """An array of another library: a NumPy array that only has DLPack."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self):
        return self.array.__dlpack__()

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_arrays_of_other_libraries_by_dlpack(alone):
    array = np.arange(12, dtype="f4").reshape(3, 4)
    result = np.zeros((4, 3), "f4")
    assert alone.allreduce(Lent(array.T), out=Lent(result)) is not None
    assert (result == array.T).all()
    assert alone.allgather(Lent(array[::2])).tolist() == array[::2].tolist()
    assert alone.allreduce(Lent(np.zeros((0, 3)))).shape == (0, 3)


class Pinned(Lent):
    """An array in memory of the CPU that is pinned for a GPU."""

    def __init__(self, array, device):
        super().__init__(array)
        self.device = device

    def __dlpack__(self):
        capsule = super().__dlpack__()
        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        pointer.restype = ctypes.c_void_p
        pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
        # The type of the device follows the address of the data.
        place = pointer(capsule, b"dltensor") + ctypes.sizeof(ctypes.c_void_p)
        ctypes.c_int32.from_address(place).value = self.device
        return capsule

    def __dlpack_device__(self):
        return self.device, 0


@pytest.mark.parametrize("device", [3, 11], ids=["CUDA", "ROCm"])
def test_pinned_arrays_by_dlpack(alone, device):
    result = np.zeros(3)
    alone.allreduce(Pinned(np.arange(3.0), device), out=Pinned(result, device))
    assert result.tolist() == [0, 1, 2]


class Device:
    def __dlpack__(self):
        raise AssertionError("not asked for")

    def __dlpack_device__(self):
        return 2, 0


class NoCapsule(Device):
    def __dlpack__(self):
        return 7

    def __dlpack_device__(self):
        return 1, 0


def test_tensors_of_this_package_can_be_read_and_not_written(alone):
    import penstock  # pylint: disable=import-outside-toplevel
    tensor = penstock.Tensor(np.arange(4))
    assert alone.allreduce(tensor).tolist() == [0, 1, 2, 3]
    with raises(collectives.InvalidArgument, "read-only"):
        alone.recv(tensor, 0)


def test_bfloat16_by_dlpack(alone):
    import penstock  # pylint: disable=import-outside-toplevel
    ones = np.full(3, 0x3f80, "i2")
    given = penstock.Tensor(ones).view("bf16")
    memory = np.zeros(3, "i2")
    out = Lent(penstock.Tensor(memory).view("bf16"))
    assert alone.allreduce(given, out=out) is out
    assert (memory == ones).all()
    assert alone.reduce_scatter(Lent(given), "average", out=out) is out
    with raises(collectives.InvalidArgument, "no bfloat16"):
        alone.allreduce(given)
    with raises(collectives.InvalidArgument, "type int16", "bfloat16"):
        alone.allreduce(given, out=memory)
    with raises(collectives.InvalidArgument, "average"):
        alone.allreduce(ones, "average")


def masked():
    return np.ma.masked_array([1, 2], [True, False])


WRONG = {
    "an operation that is none": (
        lambda g: g.allreduce(1.0, "mean"), ValueError,
        "op is 'mean', expected one of: sum, product"),
    "no average of integers": (
        lambda g: g.allreduce(1, "average"), ValueError, "average"),
    "no maximum of complex numbers": (
        lambda g: g.allreduce(1j, "max"), ValueError, "have no max"),
    "no maximum of uint16": (
        lambda g: g.allreduce(np.uint16(1), "max"), ValueError,
        "convert them"),
    "objects": (
        lambda g: g.allgather([object()]), ValueError, "no bytes"),
    "elements without bytes": (
        lambda g: g.allgather(np.zeros(2, np.dtype([]))), ValueError,
        "no bytes"),
    "out of another shape": (
        lambda g: g.allreduce(np.ones(3), out=np.ones(4)), ValueError,
        "out has shape (4,) and type float64, expected (3,) and float64"),
    "out of another type": (
        lambda g: g.allreduce(np.ones(3), out=np.ones(3, "f4")), ValueError,
        "float32"),
    "out that is read-only": (
        lambda g: g.allreduce(np.ones(1), out=np.broadcast_to(1.0, 1)),
        ValueError, "read-only"),
    "out that is no array": (
        lambda g: g.allreduce(np.ones(1), out=[0.0]), TypeError, "list"),
    "out that overlaps": (
        lambda g: (lambda a: g.allreduce(a[:4], out=a[2:]))(np.ones(6)),
        ValueError, "overlap"),
    "a root that does not exist": (
        lambda g: g.broadcast(np.ones(1), 1), ValueError,
        "root is 1, expected 0 to 0"),
    "a root that is no number": (
        lambda g: g.broadcast(np.ones(1), "0"), TypeError, "give an int"),
    "a number without blocks": (
        lambda g: g.alltoall(1), ValueError, "first dimension"),
    "a message to this rank": (
        lambda g: g.send(np.ones(1), 0), ValueError, ""),
    "a tag below 0": (
        lambda g: g.send(np.ones(1), 0, -1), ValueError, "tag is -1"),
    "a tag that is no number": (
        lambda g: g.recv(np.ones(1), 0, 0.5), TypeError, "give an int"),
    "masked elements": (
        lambda g: g.allgather(masked()), ValueError, "filled"),
    "an array on a device": (
        lambda g: g.allreduce(Device()), ValueError, "array.cpu()"),
    "no capsule": (
        lambda g: g.allreduce(NoCapsule()), ValueError, "no unused DLPack"),
    "a color that is no number": (
        lambda g: g.split("red"), TypeError, "give an int"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_arguments_raise_and_the_group_goes_on(alone, case):
    call, kind, text = WRONG[case]
    with raises(kind, text):
        call(alone)
    assert alone.allreduce(2) == 2


def test_blocks_must_be_equal():
    def blocks(group):
        for call in (group.alltoall, group.reduce_scatter, group.scatter):
            if call == group.scatter and group.rank != 0:
                continue
            with raises(collectives.InvalidArgument, "(3, 2)", "multiple"):
                call(np.ones((3, 2)))
        if group.rank != 0:
            with raises(collectives.InvalidArgument, "give out="):
                group.scatter()
        return int(group.allreduce(1))
    assert run(2, blocks) == [2, 2]


# Handles and messages.


def background(group):
    sums = [np.full(1000, i + group.rank) for i in range(50)]
    handles = [group.allreduce_async(a, out=a) for a in sums]
    # Runs after all background operations, when this thread's turn comes.
    total = group.allreduce(np.array([1.0]))
    assert all(handle.done() for handle in handles)
    for i, handle in enumerate(handles):
        assert handle.wait() is sums[i]
        assert (sums[i] == 2 * i + 1).all()
    return float(total[0])


def test_operations_run_in_the_order_of_the_calls():
    assert run(2, background) == [2.0, 2.0]


def messages_overlap(group):
    other = 1 - group.rank
    large = np.arange(300_000)
    received = np.zeros_like(large)
    late = group.recv_async(np.zeros(1), other, tag=9)
    waits = group.send_async(large, other)     # nobody has asked for it yet
    assert group.allreduce(1) == 2             # and nobody waits for that
    group.recv(received, other)
    waits.wait()
    assert (received == large).all()
    group.send(np.full(1, 4.0), other, tag=9)
    assert late.wait() == [4.0]


def test_messages_do_not_delay_operations_or_those_of_other_tags():
    run(2, messages_overlap)


def pending_receive(group):
    if group.rank == 0:
        handle = group.recv_async(np.zeros(1), 1)
        group.barrier()
        group.close()
        with raises(collectives.Error):  # Cancelled, if it had begun
            handle.wait()
        return
    with contextlib.suppress(collectives.Cancelled):
        group.barrier()
    with raises(collectives.Cancelled, "rank 0"):
        group.barrier()


def test_close_ends_pending_messages():
    run(2, pending_receive)


def test_turns_run_on_the_calling_thread_unless_others_wait():
    turns = _turns.Turns()
    assert turns.run(threading.get_ident, None) == threading.get_ident()
    held = threading.Event()
    handle = turns.start(held.wait)
    later = turns.start(threading.get_ident)
    assert not turns.is_idle() and not later.done()
    held.set()
    assert handle.wait() is True
    assert later.wait() != threading.get_ident()
    assert turns.run(threading.get_ident, None) == threading.get_ident()
    with pytest.raises(ZeroDivisionError):
        turns.start(lambda: 1 // 0).wait()
    with pytest.raises(ZeroDivisionError):
        turns.run(lambda: 1 // 0, None)
    assert turns.is_idle()


def splits(group):
    color = None if group.rank == 3 else group.rank % 2
    part = group.split(color)
    if color is None:
        assert part is None
        return None
    with part:
        assert part.rank == group.rank // 2
        return int(part.allreduce(group.rank))


def test_a_group_splits_by_color():
    assert run(4, splits) == [2, 1, 2, None]

if __name__ == "__main__":
    run_pytest.main(__file__)
