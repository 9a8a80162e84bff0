"""Ranks of a group as forked processes of a test."""

import contextlib
import multiprocessing
import os
import socket
import sys
import tempfile
import time
import traceback

import pytest

from penstock import collectives

# The timeout of operations, longer than any test. An operation that times out
# has found a hang.
TIMEOUT = 60


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _run(rank, size, function, arguments, results, options, hosts):
    try:
        if hosts is not None:
            hosts.enter(rank % 2)
        with collectives.init(rank, size, timeout=TIMEOUT,
                              **options) as group:
            results.put((rank, None, function(group, *arguments)))
    except BaseException:  # pylint: disable=broad-except
        results.put((rank, traceback.format_exc(), None))
    sys.stdout.flush()
    os._exit(0)  # runs nothing of the test's own process


class _Starved(AssertionError):
    """An error that says that the machine kept a rank from running for 1.5
    s."""


def run(size, function, *arguments, **options):
    """Runs like run_once(). Tries again if the machine is so overloaded that a
    running rank counts as stopped."""
    for _ in range(2):
        try:
            return run_once(size, function, *arguments, **options)
        except _Starved as starved:
            print("again:", starved)
    return run_once(size, function, *arguments, **options)


def run_once(size, function, *arguments, may_die=(), hosts=None, **options):
    """Calls ``function`` in ``size`` ranks, each with its group. Returns the
    results, by rank.

    ``options`` are those of init(); a folder is the default. With ``hosts``, odd
    ranks are on another host than even ones. Ranks of ``may_die`` may end
    without a result, which is then ``None``. Raises ``AssertionError`` with the
    traceback of a rank that raises.
    """
    context = multiprocessing.get_context("fork")
    results = context.SimpleQueue()
    with tempfile.TemporaryDirectory() as folder:
        if not options.keys() & {"address", "folder", "store"}:
            options["folder"] = os.path.join(folder, "ranks")
        ranks = [context.Process(target=_run,
                                 args=(rank, size, function, arguments,
                                       results, options, hosts))
                 for rank in range(size)]
        for process in ranks:
            process.start()
        values = [None] * size
        try:
            for _ in range(size - len(may_die)):
                rank, error, values[rank] = results.get()
                if error is not None:
                    kind = (_Starved if "is its process stopped?" in error
                            else AssertionError)
                    raise kind(f"rank {rank}:\n{error}")
            for process in ranks:
                process.join()
        finally:
            for process in ranks:
                process.kill()
                process.join()
    return values


@contextlib.contextmanager
def raises(kind, *texts):
    """Expects that the call raises an error with these texts, soon."""
    begun = time.monotonic()
    with pytest.raises(kind) as caught:
        yield caught
    assert time.monotonic() - begun < 10  # two, and a busy machine
    for text in texts:
        assert text in str(caught.value), caught.value
