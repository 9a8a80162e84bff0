"""Tests tensors in memory that other ranks read in place."""

import os
import re
import unittest

import ranks

import penstock.torch
import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard

POOL = 64 << 20
LARGE = 1 << 20  # elements of 4 bytes


def in_pool(tensor):
    """Returns True if the tensor lies in a segment of a group."""
    with open("/proc/self/maps") as maps:
        for line in maps:
            begin, end = (int(word, 16) for word in line.split()[0].split("-"))
            if begin <= tensor.data_ptr() < end:
                return "penstock-collective" in line
    return False


def form_again():
    """Forms the default group again, with a pool."""
    rank, size = dist.get_rank(), dist.get_world_size()
    store = dist.distributed_c10d._get_default_store()
    dist.barrier()
    dist.destroy_process_group()
    penstock.torch.use_pool(POOL)
    dist.init_process_group("penstock", store=store, rank=rank,
                            world_size=size, timeout=ranks.TIMEOUT)


def tensors_in_the_pool():
    before = torch.ones(LARGE)
    form_again()
    rank, size = dist.get_rank(), dist.get_world_size()
    assert not in_pool(before)
    assert not in_pool(torch.ones(100))
    for _ in range(20):  # memory is reused
        value = torch.full((LARGE,), float(rank + 1))
        assert in_pool(value)
        dist.all_reduce(value)
        assert (value == size * (size + 1) / 2).all(), value
        value.fill_(rank)
        dist.broadcast(value, 1)
        assert (value == 1).all(), value
    # Mixes ranks whose tensors lie in the pool with ranks whose tensors lie
    # elsewhere.
    value = before if rank == 0 else torch.ones(LARGE)
    dist.all_reduce(value)
    assert (value == size).all()
    # Fills the pool, so that tensors lie in other memory.
    many = [torch.ones(LARGE) for _ in range(POOL // (4 * LARGE) + 2)]
    assert in_pool(many[0]) and not in_pool(many[-1])
    dist.all_reduce(many[-1])
    assert (many[-1] == size).all()
    # Expects copies from other groups, which have no pool.
    group = dist.new_group()
    dist.all_reduce(many[0], group=group)
    assert (many[0] == size).all()


def tensors_outlive_the_group():
    form_again()
    value = torch.arange(LARGE)
    assert in_pool(value)
    form_again()
    assert value.sum().item() == LARGE * (LARGE - 1) // 2
    del value
    other = torch.ones(LARGE)
    dist.all_reduce(other)
    assert (other == dist.get_world_size()).all()
    child = os.fork()
    if child == 0:
        fresh = torch.ones(LARGE)
        ok = not in_pool(fresh) and (other == dist.get_world_size()).all()
        del other
        os._exit(0 if ok else 1)
    assert os.waitpid(child, 0)[1] == 0
    dist.barrier()


def ddp():
    form_again()
    torch.manual_seed(1)
    model = torch.nn.parallel.DistributedDataParallel(
        torch.nn.Linear(512, 512), gradient_as_bucket_view=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(4):
        optimizer.zero_grad()
        model(torch.ones(2, 512) * (dist.get_rank() + step)).sum().backward()
        optimizer.step()
    assert in_pool(model.module.weight.grad)
    sums = torch.stack([p.grad.sum() for p in model.parameters()])
    gathered = [torch.empty_like(sums) for _ in range(dist.get_world_size())]
    dist.all_gather(gathered, sums)
    assert all(torch.equal(gathered[0], other) for other in gathered), gathered


def uses():
    """Returns how many operations read the pool in place, and how many copied."""
    text = penstock.torch.describe()
    found = re.search(r"(\d+) large operations read it in place, (\d+) copied",
                      text)
    assert found, text
    return int(found[1]), int(found[2])


def all_operations():
    form_again()
    rank, size = dist.get_rank(), dist.get_world_size()
    whole = torch.arange(LARGE * size, dtype=torch.float32) + rank
    part = torch.full((LARGE,), float(rank))
    result, results = torch.empty_like(part), torch.empty_like(whole)
    blocks = list(results.chunk(size))
    ranks_sum = size * (size - 1) / 2

    dist.all_gather_into_tensor(results, part)
    assert all((blocks[i] == i).all() for i in range(size))
    blocks[rank].fill_(rank + 5)
    dist.all_gather_into_tensor(results, blocks[rank])  # in place, as FSDP2
    assert all((blocks[i] == i + 5).all() for i in range(size))
    dist.all_gather(blocks, part)
    assert all((blocks[i] == i).all() for i in range(size))
    dist.reduce_scatter_tensor(result, whole)
    first = torch.arange(LARGE * rank, LARGE * (rank + 1), dtype=torch.float32)
    assert torch.allclose(result, first * size + ranks_sum)
    dist.all_to_all_single(results, whole)
    assert all(torch.equal(blocks[i], first + i) for i in range(size))
    dist.gather(part, blocks if rank == 0 else None, 0)
    assert rank > 0 or all((blocks[i] == i).all() for i in range(size))
    dist.scatter(result, list(whole.chunk(size)) if rank == 0 else None, 0)
    assert torch.equal(result, first)
    result.fill_(rank)
    dist.reduce(result, 0)
    assert rank > 0 or (result == ranks_sum).all()
    dist.all_reduce(part)
    assert (part == ranks_sum).all()
    assert uses() == (9, 0), penstock.torch.describe()
    # Expects a copy if one rank's tensor lies elsewhere.
    if rank == 0:
        whole = torch.from_numpy(whole.numpy().copy())
        assert not in_pool(whole)
    dist.reduce_scatter_tensor(result, whole)
    assert uses() == (9, 1), penstock.torch.describe()


def fsdp2():
    form_again()
    torch.manual_seed(1)
    model = torch.nn.Linear(1024, 512)
    expected = [parameter.detach().clone() for parameter in model.parameters()]
    fully_shard(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    before = uses()
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.ones(2, 1024)).sum().backward()
        optimizer.step()
    in_place, copied = (now - then for now, then in zip(uses(), before))
    assert in_place >= 3 * 2 and copied == 0, penstock.torch.describe()
    # Each gradient is 2, because each rank has two equal rows.
    for parameter, old in zip(model.parameters(), expected):
        assert torch.allclose(parameter.full_tensor(), old - 3 * 0.2, atol=1e-5)


def pool_of_rank_0():
    if dist.get_rank() == 0:
        penstock.torch.use_pool(POOL)
    group = dist.new_group()
    value = torch.ones(LARGE)
    assert in_pool(value)
    dist.all_reduce(value, group=group)
    assert (value == dist.get_world_size()).all()


class PoolTest(unittest.TestCase):

    def test_large_tensors_lie_in_the_pool_while_there_is_room(self):
        ranks.run(2, tensors_in_the_pool)
        ranks.run(3, tensors_in_the_pool)

    def test_tensors_outlive_their_group_and_are_not_freed_by_a_child(self):
        ranks.run(2, tensors_outlive_the_group)

    def test_ddp_has_its_gradients_in_the_pool(self):
        ranks.run(2, ddp)

    def test_all_operations_read_the_pool_in_place(self):
        ranks.run(2, all_operations)
        ranks.run(3, all_operations)

    def test_fsdp2_gathers_and_reduces_in_the_pool(self):
        ranks.run(2, fsdp2)

    def test_the_pool_of_rank_0_counts_for_all(self):
        ranks.run(2, pool_of_rank_0)

    def test_a_size_without_sense_is_refused(self):
        for nbytes in (0, -1, 1 << 40):
            with self.assertRaises(ValueError):
                penstock.torch.use_pool(nbytes)


if __name__ == "__main__":
    unittest.main()
