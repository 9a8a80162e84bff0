"""Tests groups that are formed again without restarting their processes."""

import datetime
import os
import signal
import unittest

import ranks
import two_hosts

import torch
import torch.distributed as dist


def start():
    """Makes a default group that reconfigure() forms later."""
    rank, size = dist.get_rank(), dist.get_world_size()
    store = dist.distributed_c10d._get_default_store()
    dist.barrier()
    dist.destroy_process_group()
    dist.init_process_group("penstock", store=store, rank=rank,
                            world_size=size, timeout=ranks.TIMEOUT,
                            enable_reconfigure=True)
    assert dist._supports_reconfigure()
    return store


def handles(store, members, attempt, rank):
    """Exchanges the handles of the members."""
    store.set(f"handle {attempt} {rank}", dist._get_reconfigure_handle())
    return [store.get(f"handle {attempt} {member}").decode()
            for member in members]


def check_sum(size):
    assert dist.get_world_size() == size, dist.get_world_size()
    for count in (3, 1 << 18):
        value = torch.ones(count)
        dist.all_reduce(value)
        assert (value == size).all(), value


def those_that_remain():
    rank = dist.get_rank()
    store = start()
    try:
        dist.all_reduce(torch.ones(3))
        raise AssertionError("a group before reconfigure()")
    except RuntimeError as error:
        assert "call reconfigure() first" in str(error), error
    dist._reconfigure(1, handles(store, [2, 1, 0], 1, rank)).wait()
    assert dist.get_rank() == 2 - rank
    check_sum(3)
    if rank == 0:
        dist._new_window()  # the others do not make theirs
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    try:
        dist.all_reduce(torch.ones(3))
        raise AssertionError("reduced with a dead rank")
    except dist.DistBackendError as error:
        assert "rank 1 has died" in str(error), error
    dist._reconfigure(2, set(handles(store, [0, 2], 2, rank))).wait()
    check_sum(2)
    # Expects that messages work in the new group.
    if dist.get_rank() == 0:
        dist.send(torch.ones(3), 1)
    else:
        dist.recv(torch.empty(3), 0)
    # Expects that windows work, although the ranks have made different numbers
    # of windows.
    window = dist._new_window()
    window.signal(1 - dist.get_rank(), False)
    window.wait_signal(1 - dist.get_rank(), False)
    # Forms a group of one rank.
    dist._reconfigure(3, [dist._get_reconfigure_handle()]).wait()
    check_sum(1)


def wrong_handles():
    rank = dist.get_rank()
    store = start()
    own = dist._get_reconfigure_handle()
    for wrong in (["nonsense"], [own + "x", own], []):
        try:
            dist._reconfigure(1, wrong,
                              timeout=datetime.timedelta(seconds=5)).wait()
            raise AssertionError("took wrong handles")
        except dist.DistBackendError as error:
            print(error)
        own = dist._get_reconfigure_handle()
    # Expects that the error names a rank that does not come.
    if rank == 0:
        pair = [own, own.replace(":", ":1", 1)]
        late = datetime.timedelta(seconds=1)
        try:
            dist._reconfigure(2, pair, timeout=late).wait()
            raise AssertionError("formed a group alone")
        except dist.DistBackendError as error:
            print(error)
    dist._reconfigure(3, handles(store, [0, 1], 3, rank)).wait()
    check_sum(2)


@unittest.skipUnless(hasattr(dist, "_reconfigure"), "needs PyTorch 2.15")
@unittest.skipUnless(hasattr(dist, "_reconfigure"),
                     "this release of PyTorch cannot form a group again")
class ReconfigurationTest(unittest.TestCase):

    def test_those_that_remain_form_a_group(self):
        ranks.run(3, those_that_remain, may_die=[1])

    def test_wrong_handles_are_refused_and_another_attempt_succeeds(self):
        ranks.run(2, wrong_handles)

    @unittest.skipUnless(two_hosts.can_make(), "needs network namespaces")
    def test_ranks_of_two_hosts(self):
        with two_hosts.TwoHosts() as hosts:
            ranks.run(3, those_that_remain, may_die=[1], hosts=hosts)


if __name__ == "__main__":
    unittest.main()
