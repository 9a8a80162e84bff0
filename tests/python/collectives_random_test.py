#!/usr/bin/python3 -B
"""Compares random programs of collective operations with NumPy. Prints its
seeds."""

import functools
import pathlib
import random
import sys
import time

import run_pytest

import numpy as np
import pytest

import collectives_ranks
from penstock import collectives

sys.path.insert(0, str(pathlib.Path("tests/frameworks/torch").absolute()))
import two_hosts  # pylint: disable=wrong-import-position

SECONDS = 2  # for each number of ranks
STEPS = 25   # of a program

REDUCED = {
    "sum": np.add, "product": np.multiply, "min": np.minimum,
    "max": np.maximum, "and": np.bitwise_and, "or": np.bitwise_or,
    "xor": np.bitwise_xor}
FLOATS = ["f4", "f8", "f2"]
INTEGERS = ["i1", "i2", "i4", "i8", "u1"]
MOVED = [*FLOATS, *INTEGERS, "?", "u2", "u4", "u8", "c8", "c16", "S3", "M8[s]",
         ">f4", ">i8"]


def types_of(op):
    if op == "average":
        return [*FLOATS, "c8", "c16"]
    if op in ("sum", "product"):
        unsigned = ["u2", "u4", "u8", ">i4", ">f8"]
        complex_types = ["c8", "c16"] if op == "sum" else []
        return [*FLOATS, *INTEGERS, *unsigned, *complex_types]
    if op in ("min", "max"):
        return [*FLOATS, *INTEGERS, "?"]
    return [*INTEGERS, "u2", "u4", "u8", "?"]


def values(draw, dtype, shape):
    """Returns an array of small whole numbers, whose sums are exact."""
    dtype = np.dtype(dtype)
    count = int(np.prod(shape, dtype=int))
    numbers = [draw.randrange(-3, 4) for _ in range(count)]
    array = np.array(numbers, "i8").reshape(shape)
    if dtype.kind == "c":
        return (array + 1j * array[::-1] if shape else array).astype(dtype)
    if dtype.kind in "ub":
        array = np.abs(array)
    return array.astype(dtype)


def laid_out(draw, array):
    """Returns an equal array with another layout in memory."""
    kind = draw.randrange(4)
    if kind == 0 and array.ndim > 1:
        return np.asfortranarray(array)
    if kind == 1 and array.ndim > 0:
        wide = np.zeros((2 * array.shape[0], *array.shape[1:]), array.dtype)
        wide[::2] = array
        return wide[::2]
    if kind == 2 and array.ndim > 0:
        return array[::-1].copy()[::-1]
    return array.copy()


def reduced(op, arrays):
    if op == "average":
        total = functools.reduce(np.add, [a.astype("c16") for a in arrays])
        if arrays[0].dtype.kind != "c":
            return (total.real / len(arrays)).astype(arrays[0].dtype)
        # NumPy divides complex numbers by multiplying with the inverse.
        parts = total.reshape(-1).view("f8") / len(arrays)
        return parts.view("c16").reshape(total.shape).astype(arrays[0].dtype)
    with np.errstate(over="ignore"):
        return functools.reduce(REDUCED[op], arrays).astype(arrays[0].dtype)


class Program:
    """A random program. All ranks draw the same program."""

    def __init__(self, seed, group):
        self.draw = random.Random(seed)      # equal on all ranks
        self.own = random.Random(seed * 64 + group.rank)
        self.group = group
        self.pending = []

    def run(self):
        for _ in range(STEPS):
            self.step()
        while self.pending:
            self.end(self.pending.pop(0))

    def inputs(self, dtype, *, divides=False):
        """Returns the input of each rank."""
        draw, size = self.draw, self.group.size
        shape = [draw.choice([0, 1, 2, 3, 17, draw.randrange(1, 3000)])]
        shape += [draw.randrange(1, 4) for _ in range(draw.randrange(3))]
        if divides:
            shape[0] *= size
        elif draw.random() < 0.1:
            shape = []
        return [values(draw, dtype, shape) for _ in range(size)]

    def step(self):
        name = self.draw.choice(
            ["allreduce", "reduce", "reduce_scatter", "allgather", "gather",
             "scatter", "broadcast", "alltoall", "barrier", "message"])
        getattr(self, name)()
        if self.pending and self.draw.random() < 0.4:
            self.end(self.pending.pop(
                self.own.randrange(len(self.pending))))

    def call(self, name, expected, *arguments, out=None, **options):
        """Runs an operation now or in the background, with or without an `out`
        array."""
        if out is None and expected is not None and self.own.random() < 0.5:
            out = laid_out(self.own, np.zeros_like(expected))
        if name != "broadcast" and out is not None:
            options["out"] = out
        where = f"{name} {options.keys()} {[type(a) for a in arguments]}"
        if self.draw.random() < 0.5:
            handle = getattr(self.group, name + "_async")(*arguments, **options)
            self.pending.append((handle, expected, out, where))
            return
        self.check(getattr(self.group, name)(*arguments, **options), expected,
                   out, where)

    def end(self, pending):
        handle, *rest = pending
        self.check(handle.wait(), *rest)
        assert handle.done()

    def check(self, result, expected, out, where):
        assert out is None or result is out, where
        if expected is None:
            assert result is None, where
            return
        assert result.dtype.newbyteorder("=") == expected.dtype.newbyteorder(
            "="), where
        np.testing.assert_array_equal(result, expected, err_msg=where)

    def reduction(self, divides=False):
        op = self.draw.choice(["average", *REDUCED])
        inputs = self.inputs(self.draw.choice(types_of(op)), divides=divides)
        return op, laid_out(self.own, inputs[self.group.rank]), reduced(
            op, inputs)

    def allreduce(self):
        op, own, expected = self.reduction()
        in_place = self.draw.random() < 0.3 and own.ndim > 0
        self.call("allreduce", expected, own, op, out=own if in_place else None)

    def reduce(self):
        op, own, expected = self.reduction()
        root = self.draw.randrange(self.group.size)
        if root != self.group.rank:
            expected = None
        self.call("reduce", expected, own, op, root)

    def reduce_scatter(self):
        op, own, expected = self.reduction(divides=True)
        self.call("reduce_scatter",
                  np.split(expected, self.group.size)[self.group.rank], own, op)

    def allgather(self):
        inputs = self.inputs(self.draw.choice(MOVED))
        self.call("allgather", np.concatenate([np.atleast_1d(a)
                                               for a in inputs]),
                  laid_out(self.own, inputs[self.group.rank]))

    def gather(self):
        inputs = self.inputs(self.draw.choice(MOVED))
        root = self.draw.randrange(self.group.size)
        expected = None
        if root == self.group.rank:
            expected = np.concatenate([np.atleast_1d(a) for a in inputs])
        self.call("gather", expected,
                  laid_out(self.own, inputs[self.group.rank]), root)

    def scatter(self):
        root = self.draw.randrange(self.group.size)
        given = self.inputs(self.draw.choice(MOVED), divides=True)[root]
        expected = np.split(given, self.group.size)[self.group.rank]
        if root == self.group.rank:
            self.call("scatter", expected, laid_out(self.own, given), root)
        else:
            self.call("scatter", expected, None, root,
                      out=laid_out(self.own, np.zeros_like(expected)))

    def broadcast(self):
        root = self.draw.randrange(self.group.size)
        given = self.inputs(self.draw.choice(MOVED))[root]
        own = given if root == self.group.rank else np.zeros_like(given)
        own = laid_out(self.own, own)
        self.call("broadcast", given, own, root, out=own)

    def alltoall(self):
        inputs = self.inputs(self.draw.choice(MOVED), divides=True)
        blocks = [np.split(a, self.group.size)[self.group.rank] for a in inputs]
        self.call("alltoall", np.concatenate(blocks),
                  laid_out(self.own, inputs[self.group.rank]))

    def barrier(self):
        self.call("barrier", None)

    def message(self):
        """Sends a message from each rank to the next one. Some messages exceed
        all buffers."""
        size, rank = self.group.size, self.group.rank
        inputs = self.inputs(self.draw.choice(MOVED))
        tag = self.draw.choice([0, 7, 2**32 - 1])
        if size == 1:
            return
        sent = self.group.send_async(laid_out(self.own, inputs[rank]),
                                     (rank + 1) % size, tag)
        self.pending.append((sent, None, None, "send"))
        source = (rank - 1) % size
        out = laid_out(self.own, np.zeros_like(inputs[source]))
        received = self.group.recv_async(out, source, tag)
        self.pending.append((received, inputs[source], out, "recv"))


def run_programs(group, seed, seconds):
    until = time.monotonic() + seconds
    programs = 0
    while True:
        # Makes all ranks stop after the same program.
        if group.allreduce(int(time.monotonic() > until), "max"):
            return programs
        Program(seed + programs, group).run()
        programs += 1


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_random_programs_give_what_numpy_gives(size):
    seed = random.randrange(10**9)
    print("seed", seed)
    programs = collectives_ranks.run(size, run_programs, seed, SECONDS)
    assert min(programs) == max(programs) > 0


def in_two_groups(group, seed):
    """Programs of two groups at once, on two threads."""
    pairs = group.split(group.rank % 2)
    handle = collectives._turns.Turns().start(
        lambda: run_programs(pairs, seed, 1))
    run_programs(group, seed + 1, 1)
    handle.wait()
    assert pairs.size == 2 and pairs.rank == group.rank // 2
    pairs.close()


def test_groups_within_a_group_run_at_the_same_time():
    seed = random.randrange(10**9)
    print("seed", seed)
    collectives_ranks.run(4, in_two_groups, seed)


@pytest.mark.skipif(not two_hosts.can_make(),
                    reason="only root makes network namespaces")
def test_random_programs_between_two_hosts():
    seed = random.randrange(10**9)
    print("seed", seed)
    with two_hosts.TwoHosts() as hosts:
        address = f"{two_hosts.ADDRESSES[0]}:29501"
        collectives_ranks.run(3, run_programs, seed, SECONDS, hosts=hosts,
                              address=address)


if __name__ == "__main__":
    run_pytest.main(__file__)
