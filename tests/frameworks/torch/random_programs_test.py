"""Tests that random programs of collective operations give the same results as
with gloo."""

import os
import random
import unittest

import ranks
import two_hosts

import torch
import torch.distributed as dist

FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
INTEGERS = [torch.int8, torch.int32, torch.int64, torch.uint8]
COMPLEX = [torch.complex64, torch.complex128]
OTHERS = [torch.bool, torch.int16, torch.float8_e4m3fn]
# Types that gloo does not move. gloo moves their bytes instead.
AS_BYTES = [torch.int16, torch.float8_e4m3fn] + COMPLEX
REDUCTIONS = [dist.ReduceOp.SUM, dist.ReduceOp.PRODUCT, dist.ReduceOp.MIN,
              dist.ReduceOp.MAX]


def shape(choose):
    dimensions = choose.randint(0, 3)
    most = choose.choice([1, 3, 17, 60])
    return [choose.randint(0, most) for _ in range(dimensions)]


def make(size, dtype, generator, choose):
    """Returns a tensor, which is often not contiguous."""
    if dtype.is_complex or dtype.is_floating_point:
        value = torch.randn(size, generator=generator).to(dtype)
    else:
        value = torch.randint(0, 5, size, generator=generator).to(dtype)
    way = choose.randint(0, 3)
    if way == 0 and value.dim() >= 2:
        return value.transpose(0, 1).contiguous().transpose(0, 1)
    if way == 1 and value.dim() >= 1:
        return torch.stack([value, value], dim=-1)[..., 0]
    return value


def close(ours, theirs, exact):
    if exact or not ours.dtype.is_floating_point:
        return torch.equal(raw(ours), raw(theirs))
    return torch.allclose(ours.double(), theirs.double(), equal_nan=True,
                          rtol=TOLERANCE[ours.dtype],
                          atol=TOLERANCE[ours.dtype])


TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-12, torch.float16: 2e-2,
             torch.bfloat16: 1e-1}


def raw(tensor):
    """Returns the tensor's bytes, for types that cannot be compared."""
    # The stride of a single element may be any.
    return tensor.clone(memory_format=torch.contiguous_format).flatten(
    ).as_strided([tensor.numel()], [1]).view(torch.uint8)


class Program:
    """A random program, equal on all ranks except for the numbers in the
    tensors."""

    def __init__(self, seed, gloo):
        self.rank, self.size = dist.get_rank(), dist.get_world_size()
        self.choose = random.Random(seed)
        self.numbers = torch.Generator().manual_seed(seed * 64 + self.rank)
        self.gloo = gloo

    def step(self):
        name = self.choose.choice([
            "all_reduce", "reduce", "broadcast", "all_gather",
            "all_gather_into_tensor", "gather", "scatter", "reduce_scatter",
            "reduce_scatter_tensor", "all_to_all", "all_to_all_single",
            "barrier"])
        self.asynchronous = self.choose.random() < 0.5
        self.root = self.choose.randrange(self.size)
        getattr(self, name)(name)

    def call(self, name, *arguments, group=None, **named):
        work = getattr(dist, name)(*arguments, group=group,
                                   async_op=self.asynchronous, **named)
        if self.asynchronous:
            work.wait()

    def tensor(self, size, dtype):
        return make(size, dtype, self.numbers, self.choose)

    def check(self, name, ours, theirs, exact=True):
        assert ours.shape == theirs.shape and close(ours, theirs, exact), (
            f"{name} of {ours.dtype} {list(ours.shape)}, root {self.root}: "
            f"{ours} instead of {theirs}")

    def reduced(self):
        """Returns an element type and a reduction that both libraries
        support."""
        op = self.choose.choice(REDUCTIONS)
        return self.choose.choice(FLOATS + INTEGERS), op

    def all_reduce(self, name):
        dtype, op = self.reduced()
        ours = self.tensor(shape(self.choose), dtype)
        theirs = ours.clone(memory_format=torch.contiguous_format)
        self.call(name, ours, op)
        self.call(name, theirs, op, group=self.gloo)
        self.check(name, ours, theirs, exact=False)

    def reduce(self, name):
        dtype, op = self.reduced()
        ours = self.tensor(shape(self.choose), dtype)
        theirs = ours.clone(memory_format=torch.contiguous_format)
        self.call(name, ours, self.root, op)
        self.call(name, theirs, self.root, op, group=self.gloo)
        if self.rank == self.root:
            self.check(name, ours, theirs, exact=False)

    def reduce_scatter(self, name):
        dtype, op = self.reduced()
        size = shape(self.choose)
        inputs = [self.tensor(size, dtype) for _ in range(self.size)]
        ours = self.tensor(size, dtype)
        self.call(name, ours, inputs, op)
        # Stacks the inputs, because gloo has no such operation for lists.
        sums = torch.stack([part.contiguous() for part in inputs])
        self.asynchronous = False
        self.call("all_reduce", sums, op, group=self.gloo)
        self.check(name, ours, sums[self.rank], exact=False)

    def reduce_scatter_tensor(self, name):
        dtype, op = self.reduced()
        rows, columns = self.choose.randint(0, 9), self.choose.randint(0, 9)
        whole = self.tensor([rows * self.size, columns], dtype)
        ours = self.tensor([rows, columns], dtype)
        self.call(name, ours, whole, op)
        sums = whole.clone(memory_format=torch.contiguous_format)
        self.asynchronous = False
        self.call("all_reduce", sums, op, group=self.gloo)
        self.check(name, ours, sums[self.rank * rows:][:rows], exact=False)

    # Compares copied tensors. The expected value is the sender's tensor, which
    # gloo gathers as bytes.
    def moved(self):
        return self.choose.choice(FLOATS + INTEGERS + COMPLEX + OTHERS)

    def all_of(self, tensor):
        """Returns the tensors of all ranks."""
        own = raw(tensor)
        gathered = [torch.empty_like(own) for _ in range(self.size)]
        dist.all_gather(gathered, own, group=self.gloo)
        return [part.view(tensor.dtype).view(tensor.shape) for part in gathered]

    def broadcast(self, name):
        ours = self.tensor(shape(self.choose), self.moved())
        wanted = self.all_of(ours)[self.root]
        self.call(name, ours, self.root)
        self.check(name, ours, wanted)

    def all_gather(self, name):
        size, dtype = shape(self.choose), self.moved()
        own = self.tensor(size, dtype)
        ours = [self.tensor(size, dtype) for _ in range(self.size)]
        self.call(name, ours, own)
        for one, wanted in zip(ours, self.all_of(own)):
            self.check(name, one, wanted)

    def all_gather_into_tensor(self, name):
        dtype = self.moved()
        own = self.tensor([self.choose.randint(0, 20), 3], dtype)
        ours = self.tensor([own.shape[0] * self.size, 3], dtype)
        self.call(name, ours, own)
        wanted = torch.cat([raw(part) for part in self.all_of(own)])
        self.check(name, raw(ours), wanted)

    def gather(self, name):
        size, dtype = shape(self.choose), self.moved()
        own = self.tensor(size, dtype)
        ours = [self.tensor(size, dtype) for _ in range(self.size)]
        self.call(name, own, ours if self.rank == self.root else None,
                  self.root)
        for one, wanted in zip(ours, self.all_of(own)):
            if self.rank == self.root:
                self.check(name, one, wanted)

    def scatter(self, name):
        size, dtype = shape(self.choose), self.moved()
        ours = self.tensor(size, dtype)
        parts = [self.tensor(size, dtype) for _ in range(self.size)]
        self.call(name, ours, parts if self.rank == self.root else None,
                  self.root)
        for to, part in enumerate(parts):
            wanted = self.all_of(part)[self.root]
            if to == self.rank:
                self.check(name, ours, wanted)

    def all_to_all(self, name):
        dtype = self.moved()
        sizes = [[self.choose.randint(0, 9) for _ in range(self.size)]
                 for _ in range(self.size)]
        most = max(max(row) for row in sizes)
        whole = [torch.zeros(most, dtype=dtype) for _ in range(self.size)]
        for to, part in enumerate(whole):
            count = sizes[self.rank][to]
            part[:count] = self.tensor([count], dtype)
        ours = [self.tensor([sizes[source][self.rank]], dtype)
                for source in range(self.size)]
        self.call(name, ours, [part[:count] for part, count in
                               zip(whole, sizes[self.rank])])
        for to, part in enumerate(whole):
            for source, wanted in enumerate(self.all_of(part)):
                if to == self.rank:
                    self.check(name, ours[source],
                               wanted[:sizes[source][to]])

    def all_to_all_single(self, name):
        dtype = self.moved()
        even = self.choose.random() < 0.5
        same = self.choose.randint(0, 9)
        sizes = [[same if even else self.choose.randint(0, 9)
                  for _ in range(self.size)] for _ in range(self.size)]
        sent = sizes[self.rank]
        received = [row[self.rank] for row in sizes]
        own = self.tensor([sum(sent), 2], dtype)
        ours = self.tensor([sum(received), 2], dtype)
        self.call(name, ours, own, None if even else received,
                  None if even else sent)
        # Computes the expected result: sends everything to every rank.
        most = max(sum(row) for row in sizes)
        padded = torch.zeros([most, 2], dtype=dtype)
        padded[:len(own)] = own
        wanted = []
        for source, part in enumerate(self.all_of(padded)):
            begin = sum(sizes[source][:self.rank])
            wanted.append(raw(part[begin:begin + sizes[source][self.rank]]))
        self.check(name, raw(ours), torch.cat(wanted))

    def barrier(self, name):
        self.call(name)


def play(seeds, steps):
    gloo = dist.new_group(backend="gloo")
    half = dist.new_group(list(range((dist.get_world_size() + 1) // 2)))
    for seed in seeds:
        program = Program(seed, gloo)
        for step in range(steps):
            try:
                program.step()
            except Exception as error:
                raise AssertionError(f"seed {seed}, step {step}") from error
    if dist.get_rank() < dist.get_world_size(half):
        one = torch.ones(3)
        dist.all_reduce(one, group=half)
        assert one.tolist() == [dist.get_world_size(half)] * 3, one


class RandomProgramsTest(unittest.TestCase):

    def test_results_are_those_of_gloo(self):
        first = int(os.environ.get("TORCH_SEED", random.randrange(1 << 30)))
        print("TORCH_SEED =", first)
        for size in (1, 2, 3):
            ranks.run(size, play, range(first, first + 3), 40)

    @unittest.skipUnless(two_hosts.can_make(), "needs network namespaces")
    def test_results_on_two_hosts_are_those_of_gloo(self):
        first = int(os.environ.get("TORCH_SEED", random.randrange(1 << 30)))
        print("TORCH_SEED =", first)
        with two_hosts.TwoHosts() as hosts:
            for size in (2, 3):
                ranks.run(size, play, range(first, first + 2), 40, hosts=hosts)


if __name__ == "__main__":
    unittest.main()
