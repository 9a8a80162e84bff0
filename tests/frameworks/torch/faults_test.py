"""Tests wrong arguments, lost ranks and the end of a group."""

import os
import signal
import subprocess
import sys
import threading
import time
import unittest

import ranks
import two_hosts

import torch
import torch.distributed as dist

# The longest time, in seconds, after which a rank's death ends all waits.
PROMISE = 2

# Later releases than 2.6 have abort(), shutdown() and options of backends, and
# split_group() without a GPU.
HAS_ABORT = hasattr(torch._C._distributed_c10d.Backend, "abort")


def says(text, function, *arguments, **named):
    """Calls a function that must fail with a text, and returns the error."""
    try:
        function(*arguments, **named)
    except (RuntimeError, ValueError) as error:
        assert text in str(error), f"{text!r} is not in {error}"
        return error
    raise AssertionError(f"no error with {text!r}")


def wrong_arguments():
    backend = dist.distributed_c10d._get_default_group()._get_backend(
        torch.device("cpu"))
    says("cannot reduce Float8", dist.all_reduce,
         torch.ones(3).to(torch.float8_e4m3fn))
    product = dist.AllreduceOptions()
    product.reduceOp = dist.ReduceOp.PRODUCT
    says("sum and average only", backend.allreduce,
         [torch.ones(3, dtype=torch.complex64)], product)
    says("average", dist.all_reduce, torch.ones(3, dtype=torch.int32),
         dist.ReduceOp.AVG)
    says("takes dense tensors", backend.broadcast,
         [torch.ones(3).to_sparse()])
    says("takes tensors of the CPU", backend.broadcast,
         [torch.ones(3, device="meta")])
    says("takes one tensor, not 2", backend.allreduce,
         [torch.ones(3), torch.ones(3)])
    says("list of 1 tensors for 2 ranks", backend.allgather,
         [[torch.ones(3)]], [torch.ones(3)])
    says("3 rows cannot be divided into 2 equal parts", dist.all_to_all_single,
         torch.ones(3), torch.ones(3))
    says("the sizes are 3 rows together", dist.all_to_all_single,
         torch.ones(4), torch.ones(4), [1, 2], [2, 2])
    says("elements, expected", dist.all_gather_into_tensor, torch.ones(5),
         torch.ones(2))
    # Expects that none of these errors has ended the group.
    value = torch.ones(3)
    dist.all_reduce(value)
    assert value.tolist() == [2] * 3, value


def kinds_of_sums():
    flags = torch.tensor([True, False, dist.get_rank() == 1])
    dist.all_reduce(flags)
    assert flags.tolist() == [True, False, True], flags
    pairs = torch.tensor([1 + 2j, 3j]) * (dist.get_rank() + 1)
    dist.all_reduce(pairs)
    assert pairs.tolist() == [3 + 6j, 9j], pairs
    mean = torch.full((2,), 30000., dtype=torch.float16)
    dist.all_reduce(mean, dist.ReduceOp.AVG)
    assert mean.tolist() == [30000] * 2, mean
    parameter = torch.nn.Parameter(torch.ones(2, 3).t())
    dist.broadcast(parameter, 0)
    nothing = torch.empty(0, 3)
    dist.all_reduce(nothing)


def futures():
    values = [torch.ones(i + 1) for i in range(20)]
    works = [dist.all_reduce(value, async_op=True) for value in values]
    seen = []
    inner = []

    def then(future):
        # Lets a callback wait for an operation that begins later.
        another = torch.ones(1)
        dist.all_reduce(another, async_op=True).wait()
        inner.append(another.item())
        return future.value()[0].sum()

    sums = [work.get_future().then(then) for work in works]
    for index, future in enumerate(sums):
        seen.append(future.wait().item())
        assert works[index].is_completed()
    assert seen == [2. * (i + 1) for i in range(20)], seen
    assert inner == [2.] * 20, inner
    assert works[0].result()[0] is not None


def chained_futures():
    """Waits in callbacks for the futures of later operations."""
    def second(future):
        mean = future.value()[0] / dist.get_world_size()
        later = dist.all_reduce(mean, async_op=True).get_future()
        return later.wait()[0]

    for i in range(5):
        # Starts the second operation before the callback of the first one
        # runs.
        works = [dist.all_reduce(torch.full((3,), float(i)), async_op=True)
                 for _ in range(2)]
        other = works[1].get_future()
        chain = works[0].get_future().then(
            lambda future: second(future) + other.wait()[0])
        value = chain.wait()
        assert value.tolist() == [2. * i * dist.get_world_size()] * 3, value


def power_sgd():
    from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook
    torch.manual_seed(1)
    model = torch.nn.parallel.DistributedDataParallel(
        torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.Linear(32, 8)))
    model.register_comm_hook(
        powerSGD_hook.PowerSGDState(None, start_powerSGD_iter=2),
        powerSGD_hook.powerSGD_hook)
    for _ in range(4):
        model(torch.ones(2, 32) * (dist.get_rank() + 1)).sum().backward()
    sums = [parameter.grad.sum() for parameter in model.parameters()]
    gathered = [torch.empty(len(sums)) for _ in range(dist.get_world_size())]
    dist.all_gather(gathered, torch.stack(sums))
    assert torch.equal(gathered[0], gathered[1]), gathered


def mismatch(first, second, text):
    function = (first, second)[dist.get_rank()]
    error = says(text, function)
    assert "rank 0" in str(error) and "rank 1" in str(error), error


def different_sizes():
    mismatch(lambda: dist.all_reduce(torch.ones(3)),
             lambda: dist.all_reduce(torch.ones(4)), "3 f32")


def different_operations():
    mismatch(lambda: dist.all_reduce(torch.ones(3)),
             lambda: dist.broadcast(torch.ones(3), 0), "broadcast")


def killed(asynchronous):
    dist.barrier()
    if dist.get_rank() == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    begin = time.monotonic()
    work = dist.all_reduce(torch.ones(3), async_op=asynchronous) \
        if asynchronous else None
    error = says("rank 1 has died",
                 work.wait if asynchronous else
                 lambda: dist.all_reduce(torch.ones(3)))
    assert time.monotonic() - begin < PROMISE
    assert isinstance(error, dist.DistBackendError), type(error)
    says("rank 1 has died", dist.barrier)


def aborted():
    backend = dist.distributed_c10d._get_default_group()._get_backend(
        torch.device("cpu"))
    if dist.get_rank() == 0:
        work = dist.all_reduce(torch.ones(3), async_op=True)
        threading.Timer(0, backend.abort).start()
        # Accepts CANCELLED, or the error that rank 1 has left, whichever comes
        # first.
        says("penstock:all_reduce", work.wait)
    else:
        says("rank 0 has died or left", dist.recv, torch.ones(3), 0)


def shut_down():
    group = dist.new_group()
    dist.barrier(group=group)
    group.shutdown()
    says("shut down", dist.barrier, group=group)
    dist.barrier()


def forked():
    child = os.fork()
    if child == 0:
        try:
            says("the child of a fork", dist.barrier)
            if HAS_ABORT:
                dist.distributed_c10d._get_default_group()._get_backend(
                    torch.device("cpu")).abort()
            dist.destroy_process_group()
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    dist.barrier()


def properties():
    group = dist.distributed_c10d._get_default_group()
    backend = group._get_backend(torch.device("cpu"))
    assert dist.get_backend() == "penstock" and backend.name() == "penstock"
    if HAS_ABORT:
        assert backend.options._timeout == ranks.TIMEOUT, backend.options
    before = backend._get_sequence_number_for_group()
    dist.barrier()
    assert backend._get_sequence_number_for_group() == before + 1
    if not HAS_ABORT:
        return  # split_group() needs a GPU
    half = dist.split_group(split_ranks=[[0], [1]])
    value = torch.ones(2)
    dist.all_reduce(value, group=half)
    assert value.tolist() == [1, 1], value


def messages():
    rank, size = dist.get_rank(), dist.get_world_size()
    right, left = (rank + 1) % size, (rank - 1) % size
    # Sends in a circle: every rank sends before it receives.
    works, values = [], []
    for tag in (0, 7):
        works.append(dist.isend(torch.full((5, tag + 1), float(rank)), right,
                                tag=tag))
    for tag in (7, 0):
        values.append(torch.empty(tag + 1, 5).t())
        works.append(dist.irecv(values[-1], left, tag=tag))
    for work in works:
        work.wait()
    assert all((value == left).all() for value in values), values
    large = torch.arange(1 << 20)
    if rank == 0:
        sources = [dist.recv(large) for _ in range(size - 1)]
        assert sorted(sources) == list(range(1, size)), sources
    else:
        dist.send(large, 0)
    dist.barrier()  # or rank 0 would take a later message for a large one
    for work in dist.batch_isend_irecv([
            dist.P2POp(dist.isend, torch.ones(3), right),
            dist.P2POp(dist.irecv, torch.ones(3), left)]):
        work.wait()
    objects = [None]
    if rank == 0:
        dist.send_object_list([{"a": 1}], 1)
    elif rank == 1:
        dist.recv_object_list(objects, 0)
        assert objects == [{"a": 1}], objects
    dist.barrier()


def receives_that_copy():
    """Receives into tensors with gaps between their elements."""
    for count in (3, 1 << 15):
        if dist.get_rank() == 0:
            dist.send(torch.arange(2. * count), 1)
            dist.send(torch.ones(count), 1)
            dist.send(torch.ones(count), 1)
            continue
        with torch.inference_mode():
            value = torch.empty(2, count).t()
        dist.recv(value, 0)
        assert value.flatten().tolist() == list(range(2 * count)), value
        # Refuses a tensor whose elements all lie at one address.
        says("single memory location", dist.recv,
             torch.empty(1).expand(count), 0)
        dist.recv(torch.empty(count), 0)


def killed_sender():
    dist.barrier()
    if dist.get_rank() == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    begin = time.monotonic()
    says("rank 1 has died", dist.recv, torch.ones(3), 1)
    assert time.monotonic() - begin < PROMISE
    says("rank 1 has died", dist.send, torch.ones(3), 1)


def overlaps():
    """Scatters and gathers with an input and an output that are views of one
    tensor."""
    rank, size = dist.get_rank(), dist.get_world_size()
    count = 1 << 18
    for block in range(size):
        whole = torch.arange(float(size * count))
        parts = list(whole.chunk(size))
        wanted = parts[rank] * size
        dist.reduce_scatter(parts[block], parts)
        assert torch.equal(parts[block], wanted), (block, parts[block], wanted)

        whole = torch.arange(float(size * count))
        parts = list(whole.chunk(size))
        wanted = parts[rank].clone()
        dist.scatter(parts[block], parts if rank == 0 else None)
        assert torch.equal(parts[block], wanted), (block, parts[block], wanted)

        parts = list(torch.full((size * count,), float(rank)).chunk(size))
        dist.all_gather(parts, parts[block])
        for one, part in enumerate(parts):
            assert torch.equal(part, torch.full((count,), float(one))), part


def again():
    """Forms groups that reuse the store and the names of earlier groups."""
    rank, size = dist.get_rank(), dist.get_world_size()
    store = dist.distributed_c10d._get_default_store()
    for _ in range(2):
        dist.barrier()
        dist.destroy_process_group()
        dist.init_process_group("penstock", store=store, rank=rank,
                                world_size=size, timeout=ranks.TIMEOUT)
        value = torch.ones(3)
        dist.all_reduce(value)
        assert value.tolist() == [size] * 3, value


LONELY_SCRIPT = """
import datetime, torch.distributed as dist
store = dist.TCPStore("127.0.0.1", 0, 2, True, wait_for_workers=False,
                      use_libuv=False,
                      timeout=datetime.timedelta(seconds=1))
try:
    dist.init_process_group("penstock", store=store, rank=0, world_size=2,
                            timeout=datetime.timedelta(milliseconds=1))
except dist.DistBackendError as error:
    print(error)
"""


@unittest.skipUnless(two_hosts.can_make(), "needs network namespaces")
class TwoHostsTest(unittest.TestCase):

    def test_faults_are_reported_between_hosts(self):
        with two_hosts.TwoHosts() as hosts:
            for fault in (different_sizes, different_operations, aborted,
                          properties, again):
                ranks.run(2, fault, hosts=hosts)
            ranks.run(3, messages, hosts=hosts)
            ranks.run(3, killed, False, may_die=[1], hosts=hosts)
            ranks.run(2, killed_sender, may_die=[1], hosts=hosts)


class FaultsTest(unittest.TestCase):

    def test_wrong_arguments_are_refused_and_the_group_goes_on(self):
        ranks.run(2, wrong_arguments)

    def test_sums_of_all_kinds_of_numbers(self):
        ranks.run(2, kinds_of_sums)

    def test_callbacks_may_wait(self):
        ranks.run(2, futures)

    def test_callbacks_may_wait_for_futures(self):
        ranks.run(2, chained_futures)

    def test_a_hook_of_ddp_that_waits_for_other_operations(self):
        ranks.run(2, power_sgd)

    def test_mismatches_name_both_ranks(self):
        ranks.run(2, different_sizes)
        ranks.run(2, different_operations)

    def test_a_rank_that_dies_is_named(self):
        for asynchronous in (False, True):
            ranks.run(3, killed, asynchronous, may_die=[1])

    def test_messages_arrive(self):
        ranks.run(3, messages)

    def test_a_receive_that_cannot_copy_fails(self):
        ranks.run(2, receives_that_copy)

    def test_a_sender_that_dies_is_named(self):
        ranks.run(2, killed_sender, may_die=[1])

    @unittest.skipUnless(HAS_ABORT, "PyTorch 2.6 calls no backend's abort()")
    def test_an_abort_ends_the_operations_of_all_ranks(self):
        ranks.run(2, aborted)

    @unittest.skipUnless(HAS_ABORT, "PyTorch 2.6 has no shutdown()")
    def test_a_group_that_was_shut_down_says_so(self):
        ranks.run(2, shut_down)

    def test_a_forked_child_is_told(self):
        ranks.run(2, forked)

    def test_the_group_has_its_properties(self):
        ranks.run(2, properties)

    def test_inputs_and_outputs_may_be_views_of_one_tensor(self):
        ranks.run(3, overlaps)

    def test_groups_are_formed_again_in_the_same_store(self):
        ranks.run(2, again)

    def test_a_rank_that_does_not_come_is_named(self):
        said = subprocess.run([sys.executable, "-c", LONELY_SCRIPT],
                              check=True, text=True,
                              stdout=subprocess.PIPE).stdout
        self.assertIn("rank 1 has not come", said)


if __name__ == "__main__":
    unittest.main()
