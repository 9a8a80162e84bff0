"""Tests one-sided windows: put(), signal() and wait_signal()."""

import datetime
import os
import resource
import signal
import threading
import time
import unittest

import ranks
import two_hosts

import torch
import torch.distributed as dist


def fails(text, function, *arguments):
    try:
        function(*arguments)
    except RuntimeError as error:
        assert text in str(error), error
        return
    raise AssertionError(f"no error with the text {text!r}")


def ring(rounds):
    """Each rank writes its number into the next rank's window, and signals."""
    rank, size = dist.get_rank(), dist.get_world_size()
    assert dist._supports_window()
    # Gives each rank a memory of a different size.
    memory = torch.zeros(rounds * 1000 + rank, dtype=torch.int64)
    window = dist._new_window(memory)
    to, source = (rank + 1) % size, (rank - 1) % size
    for turn in range(rounds):
        # Alternates between sizes that different threads copy.
        count = 1000 if turn % 2 == 0 else 0
        values = torch.full((2, count), 100 * turn + rank).t()[:, 0]
        window.put(values, to, turn * 1000, turn % 3 != 0)
        window.signal(to, turn % 3 != 1)
    for turn in range(rounds):
        window.wait_signal(source, False)
        expected = 100 * turn + source if turn % 2 == 0 else 0
        part = memory[turn * 1000:(turn + 1) * 1000]
        assert (part == expected).all(), (turn, part)
    assert (memory[rounds * 1000:] == 0).all()
    window.tensor_deregister()


def large_writes():
    """Tests both ranks that write to both ranks while both wait."""
    rank = dist.get_rank()
    count = 1 << 20
    memory = torch.zeros(2 * count)
    window = dist._new_window()
    window.tensor_register(memory, True)
    values = torch.arange(count, dtype=torch.float32) + rank
    works = [window.put(values, to, rank * count, True) for to in range(2)]
    for to in range(2):
        works.append(window.signal(to, True))
    works += [window.wait_signal(source, True) for source in range(2)]
    for work in works:
        work.wait()
    for source in range(2):
        assert (memory[source * count:][:count] == values - rank + source).all()
    assert window.map_remote_tensor(rank).data_ptr() == memory.data_ptr()
    dist.barrier()


def conjugates():
    """Tests that put() writes the values of a view, and not the memory below
    the view."""
    rank = dist.get_rank()
    view = torch.tensor([1 + 2j]).conj()
    for values, expected in ((view, 1 - 2j), (view.imag, -2)):
        assert values.is_conj() or values.is_neg()
        memory = torch.zeros(1, dtype=values.dtype)
        window = dist._new_window(memory)
        window.put(values, 1 - rank, 0, False)
        window.signal(1 - rank, False)
        window.wait_signal(1 - rank, False)
        assert memory.item() == expected, memory
        window.tensor_deregister()
        fails("resolve_conj", window.tensor_register, values)


def wrong_arguments():
    rank = dist.get_rank()
    window = dist._new_window()
    one = torch.ones(1)
    fails("the window has no tensor", window.put, one, 1, 0, False)
    fails("not contiguous", window.tensor_register, torch.ones(4)[::2])
    fails("different types", window.tensor_register,
          torch.ones(4, dtype=torch.float64 if rank else torch.float32))
    window.tensor_register(torch.ones(4))
    fails("call tensor_deregister() first", window.tensor_register, one)
    fails("rank is 2, expected 0 to 1", window.signal, 2, False)
    fails("another type", window.put, one.double(), 1, 0, False)
    fails("outside of the window", window.put, one, 1, 4, False)
    fails("outside of the window", window.put, one, 1, -1, False)
    fails("cannot map", window.map_remote_tensor, 1 - rank)
    window.put(one, 1 - rank, 3, False)
    # Expects that another window has signals of its own.
    other = dist._new_window()
    other.signal(1 - rank, False)
    options = torch._C._distributed_c10d.WaitSignalOptions()
    options.timeout = datetime.timedelta(milliseconds=100)
    fails("timed out", window.wait_signal, 1 - rank, False, options)
    other.wait_signal(1 - rank, False)
    # Expects that the wait that has timed out has consumed no signal.
    dist.barrier()
    window.signal(1 - rank, False)
    window.wait_signal(1 - rank, False, options)
    window.tensor_deregister()
    dist.barrier()


def writes_after_the_end():
    """Tests that a write to a rank that has given up its memory is refused."""
    rank = dist.get_rank()
    memory = torch.zeros(4)
    window = dist._new_window(memory)
    if rank == 1:
        del window  # not collective, unlike tensor_deregister()
    dist.barrier()
    if rank == 0:
        fails("", window.put, torch.ones(4), 1, 0, False)
        fails("rank 1 has closed the window", window.wait_signal, 1, False)
    dist.barrier()
    assert (memory == 0).all()
    # Expects that the group still works.
    value = torch.ones(1)
    dist.all_reduce(value)
    assert value == 2


def waits_for_the_dead():
    rank = dist.get_rank()
    window = dist._new_window(torch.zeros(4))
    dist.barrier()
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    fails("rank 1", window.wait_signal, 1, False)
    fails("rank 1", window.put, torch.ones(4), 1, 0, False)


def writes_beyond_memory():
    """Fails one message, because the receiver has no memory for it. Later
    messages arrive."""
    os.environ["PENSTOCK_FABRICS"] = "tcp"  # copies at the receiver
    rank = dist.get_rank()
    group = dist.new_group(backend="penstock")
    memory = torch.zeros(16 << 20)
    window = group._get_backend(torch.device("cpu")).new_window(memory)
    window.put(torch.ones(1), 1 - rank, 0, False)
    dist.barrier()
    if rank == 1:
        with open("/proc/self/statm", encoding="ascii") as statm:
            used = int(statm.read().split()[0]) * resource.getpagesize()
        limits = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (used + (40 << 20), limits[1]))
    dist.barrier()
    if rank == 0:
        fails("RESOURCE_EXHAUSTED", window.put, torch.ones(16 << 20), 1, 0,
              False)
        window.put(torch.full((3,), 7.0), 1, 5, False)
        window.signal(1, False)
    else:
        window.wait_signal(0, False)
        assert memory[:10].tolist() == [1, 0, 0, 0, 0, 7, 7, 7, 0, 0], memory
        resource.setrlimit(resource.RLIMIT_AS, limits)
    dist.barrier()


def aborts_during_waits():
    rank = dist.get_rank()
    backend = dist.group.WORLD._get_backend(torch.device("cpu"))
    window = dist._new_window()
    waits = [window.wait_signal(source, True) for source in range(2)]
    dist.barrier()
    if rank == 0:
        threading.Timer(0.2, backend.abort).start()
        fails("CANCELLED", window.wait_signal, rank, False)
        fails("CANCELLED", waits[rank].wait)
    # Expects that the other rank notices the end by its lost connections.
    fails("", waits[1 - rank].wait)


def outlives_its_group():
    """The window is the last owner of threads that need Python's lock."""
    rank = dist.get_rank()
    window = dist._new_window()
    called = []

    def call(_):
        time.sleep(0.2)
        called.append(rank)

    window.wait_signal(rank, True).get_future().add_done_callback(call)
    dist.destroy_process_group()
    del window
    assert called == [rank]


@unittest.skipUnless(hasattr(dist, "_new_window"),
                     "this release of PyTorch has no windows")
class WindowTest(unittest.TestCase):
    def test_writes_arrive_before_the_signal(self):
        for size in (1, 2, 3):
            ranks.run(size, ring, 20)

    def test_large_writes_in_both_directions(self):
        ranks.run(2, large_writes)

    def test_conjugates_are_resolved(self):
        ranks.run(2, conjugates)

    def test_wrong_arguments_are_refused(self):
        ranks.run(2, wrong_arguments)

    def test_a_write_to_a_closed_window_is_refused(self):
        ranks.run(2, writes_after_the_end)

    def test_a_write_that_fails_shifts_no_others(self):
        ranks.run(2, writes_beyond_memory)

    def test_an_abort_ends_all_waits(self):
        ranks.run(2, aborts_during_waits)

    def test_a_window_may_be_the_last_owner(self):
        ranks.run(1, outlives_its_group)

    def test_a_dead_rank_ends_the_waits_for_it(self):
        ranks.run(2, waits_for_the_dead, may_die=[1])

    @unittest.skipUnless(two_hosts.can_make(), "only root makes namespaces")
    def test_between_hosts(self):
        with two_hosts.TwoHosts() as hosts:
            ranks.run(2, ring, 20, hosts=hosts)


if __name__ == "__main__":
    unittest.main()
