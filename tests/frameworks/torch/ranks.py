"""Ranks of a process group as forked processes of a test."""

import datetime
import multiprocessing
import os
import tempfile
import traceback

import two_hosts

import torch
import torch.distributed as dist

# The timeout of operations, longer than any test. An operation that times out
# has found a hang.
TIMEOUT = datetime.timedelta(seconds=60)


def _run(rank, size, store, backend, function, arguments, results, hosts):
    try:
        torch.set_num_threads(1)
        if hosts is not None:
            hosts.enter(rank % 2)
        dist.init_process_group(backend, init_method=store, rank=rank,
                                world_size=size, timeout=TIMEOUT)
        if hosts is not None:
            # Names the interface, because gloo would otherwise look for an
            # address of the machine's name.
            os.environ["GLOO_SOCKET_IFNAME"] = two_hosts.INTERFACE
        results.put((rank, None, function(*arguments)))
        if dist.is_initialized():
            dist.destroy_process_group()
    except BaseException:  # pylint: disable=broad-except
        results.put((rank, traceback.format_exc(), None))


def run(size, function, *arguments, backend="penstock", may_die=(),
        hosts=None):
    """Calls ``function`` in ``size`` ranks. Returns their results, by rank.

    With ``hosts``, odd ranks are on another host than even ones.
    Ranks of ``may_die`` may end without a result, which is then ``None``.
    Raises ``AssertionError`` with the traceback of a rank that raises.
    """
    context = multiprocessing.get_context("fork")
    results = context.SimpleQueue()
    with tempfile.TemporaryDirectory() as folder:
        store = f"file://{folder}/store"
        if hosts is not None:
            store = f"tcp://{two_hosts.ADDRESSES[0]}:29500"
        ranks = [context.Process(target=_run,
                                 args=(rank, size, store, backend, function,
                                       arguments, results, hosts))
                 for rank in range(size)]
        for process in ranks:
            process.start()
        values = [None] * size
        for _ in range(size - len(may_die)):
            rank, error, values[rank] = results.get()
            if error is not None:
                for process in ranks:
                    process.kill()
                raise AssertionError(f"rank {rank}:\n{error}")
        for process in ranks:
            process.join()
    return values
