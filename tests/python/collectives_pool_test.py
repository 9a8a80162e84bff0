#!/usr/bin/python3 -B
"""Tests arrays that other ranks read in place."""

import gc
import os

import run_pytest

import numpy as np

from collectives_ranks import raises, run
from penstock import collectives

MIB = 1 << 20


def is_shared(array):
    """Returns True if the array lies in shared memory."""
    at = array.__array_interface__["data"][0]
    with open("/proc/self/maps", encoding="ascii") as maps:
        for line in maps:
            span, mode, *_ = line.split()
            begin, end = (int(bound, 16) for bound in span.split("-"))
            if begin <= at < end:
                return mode == "rw-s" and at + array.nbytes <= end
    return False


def sums_and_broadcasts(group):
    for count in (1, 1000, 100_003):
        array = group.empty((count, 2), "f4")
        assert is_shared(array) and array.flags.writeable
        array[:] = group.rank + 1
        assert group.allreduce(array, out=array) is array
        assert (array == sum(range(1, group.size + 1))).all()
        array[:] = group.rank
        assert (group.broadcast(array, 1) == 1).all()
        # Expects that other operations work, and arrays outside the pool on one
        # rank.
        own = array if group.rank == 0 else np.empty((count, 2), "f4")
        own[:] = 2
        assert (group.allreduce(own, out=own) == 2 * group.size).all()
        array[:] = group.rank
        assert (group.allgather(array)[:, 0] ==
                np.repeat(np.arange(group.size), count)).all()
        # Counts the large arrays that were read in place, and those that were
        # copied because one rank's array is elsewhere.
        expected = (" 3 large operations read it in place, 1 copied"
                    if array.nbytes >= 64 << 10 else "")
        assert expected in group.describe()


def test_arrays_of_the_pool_give_the_same_results():
    run(3, sums_and_broadcasts, pool_bytes=4 * MIB)


def fills(group):
    arrays = [group.empty(MIB, "u1") for _ in range(3)]
    part = arrays[0][10:20]
    with raises(collectives.ResourceExhausted, ""):
        group.empty(2 * MIB, "u1")
    del arrays[0]
    with raises(MemoryError, ""):  # `part` uses the memory
        group.empty(2 * MIB, "u1")
    part[:] = 7
    assert part.tolist() == [7] * 10
    del part, arrays
    gc.collect()
    assert is_shared(group.empty(4 * MIB, "u1"))
    assert group.empty((0, 3)).shape == (0, 3)
    with raises(ValueError, "objects have no bytes"):
        group.empty(3, object)
    with raises(ValueError, "negative"):
        group.empty((-1, 2))
    part = group.split(0, pool_bytes=MIB)
    array = part.empty(10)
    assert is_shared(array)
    with part:
        array[:] = 1
        assert (part.allreduce(array, out=array) == 2).all()
    # Uses the array after its group has ended.
    array += 1
    assert (array == 3).all()
    with raises(collectives.FailedPrecondition, "closed"):
        part.empty(1)
    with raises(collectives.FailedPrecondition, "pool_bytes= to init()"):
        group.split(0).empty(1)


def test_memory_returns_to_the_pool_and_outlives_the_group():
    run(2, fills, pool_bytes=4 * MIB)


def forks(group):
    array = group.empty(1000, "i8")
    array[:] = 5
    child = os.fork()
    if child == 0:
        shared = array[0] == 5
        array[0] = 6
        del array  # frees nothing: the memory is the parent's
        gc.collect()
        os._exit(0 if shared else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert array[0] == 6
    del array
    assert is_shared(group.empty(4 * MIB, "u1"))


def test_the_child_of_a_fork_frees_no_memory():
    run(2, forks, pool_bytes=4 * MIB)


def test_a_rank_alone_on_its_host_has_ordinary_arrays():
    with collectives.init(0, 1, pool_bytes=MIB) as group:
        array = group.empty(3 * MIB, "u1")
        assert not is_shared(array)
        array[:] = 3
        assert (group.allreduce(array, out=array) == 3).all()


def test_wrong_sizes_are_refused():
    for size, kind, text in ((-1, ValueError, "expected 0 to"),
                             (1 << 40, ValueError, "expected 0 to"),
                             ("1", TypeError, "give an int"),
                             (True, TypeError, "give an int")):
        with raises(kind, text):
            collectives.init(0, 1, pool_bytes=size)


def differ(group):
    with raises(collectives.Error, "rank 1 wants a pool of 2097152 bytes, rank 0 of 1048576"):
        group.split(0, pool_bytes=MIB * (1 + group.rank))
    assert group.allreduce(1) == 2


def test_ranks_with_other_sizes_are_named():
    run(2, differ)


if __name__ == "__main__":
    run_pytest.main(__file__)
