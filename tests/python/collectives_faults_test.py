#!/usr/bin/python3 -B
"""Tests how groups of ranks end: deaths, mismatches, aborts, signals, forks."""

import os
import signal
import threading
import time

import run_pytest

import numpy as np
import pytest

import collectives_ranks
from collectives_ranks import raises, run
from penstock import collectives
from penstock.collectives import _turns


def calls_that_differ(group, first, second):
    with raises(collectives.InvalidArgument, "rank 0", "rank 1") as caught:
        (first if group.rank == 0 else second)(group)
    # Expects that the group has ended, and that later calls name the same
    # cause.
    with raises(collectives.InvalidArgument, str(caught.value)):
        group.barrier()


@pytest.mark.parametrize("first,second", [
    (lambda g: g.allreduce(np.ones(3)), lambda g: g.allreduce(np.ones(4))),
    (lambda g: g.allreduce(np.ones(3)),
     lambda g: g.allreduce(np.ones(3, "f4"))),
    (lambda g: g.allreduce(np.ones(3)), lambda g: g.allreduce(np.ones(3),
                                                              "max")),
    (lambda g: g.allgather(np.ones(3)), lambda g: g.allgather(np.ones(0))),
    (lambda g: g.broadcast(np.ones(3), 0), lambda g: g.broadcast(np.ones(3),
                                                                 1)),
    (lambda g: g.barrier(), lambda g: g.allreduce(1)),
], ids=["size", "type", "op", "no elements", "root", "operation"])
def test_calls_that_differ_are_reported_with_both_ranks(first, second):
    run(2, calls_that_differ, first, second)


def a_rank_dies(group, folder):
    group.barrier()
    if group.rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    handle = group.allreduce_async(np.ones(100))
    with raises(collectives.Unavailable, "rank 1 has died"):
        handle.wait()
    with raises(collectives.Unavailable, "rank 1 has died"):
        group.barrier()
    # Expects that the remaining ranks can form a group without being
    # restarted.
    with collectives.init(group.rank // 2, 2, folder=folder) as again:
        return int(again.allreduce(1))


def test_a_killed_rank_is_named_and_the_others_form_a_new_group(tmp_path):
    assert run(3, a_rank_dies, tmp_path / "again", may_die=[1]) == [2, None, 2]


def a_rank_leaves(group):
    if group.rank == 1:
        return
    with raises(collectives.Unavailable, "rank 1 has left"):
        group.barrier()


def test_a_rank_that_leaves_is_named():
    run(2, a_rank_leaves)


def a_rank_is_late(group):
    if group.rank == 1:
        time.sleep(1.5)  # until rank 0 has given up
    with raises(collectives.DeadlineExceeded, "rank 1 did not call"):
        group.allreduce(1)


def test_a_late_rank_is_named():
    port = collectives_ranks.free_port()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(collectives_ranks, "TIMEOUT", 0.5)
        run(2, a_rank_is_late, address=f"127.0.0.1:{port}")


def abort_ends_all(group):
    if group.rank == 2:
        with raises(collectives.Cancelled, "rank 0 aborted"):
            group.recv(np.zeros(1), 1)
        return
    handle = group.barrier_async()
    if group.rank == 0:
        with raises(collectives.DeadlineExceeded, "continues"):
            handle.wait(0.05)
        assert not handle.done()
        group.abort()
    with raises(collectives.Cancelled, "rank 0 aborted"):
        handle.wait()
    assert handle.done()


def test_abort_ends_pending_operations_on_all_ranks():
    run(3, abort_ends_all)


def an_exception_aborts(group):
    with pytest.raises(KeyError if group.rank == 0 else collectives.Cancelled):
        with group:
            if group.rank == 0:
                raise KeyError("of the program")
            group.barrier()
    with raises(collectives.FailedPrecondition, "closed"):
        group.barrier()


def test_an_exception_in_the_with_statement_aborts_the_group():
    run(2, an_exception_aborts)


def interrupt(number=signal.SIGINT):
    """Sends this process a signal soon."""
    threading.Timer(0.2, os.kill, [os.getpid(), number]).start()


def ctrl_c(group):
    if group.rank == 1:
        with raises(collectives.Cancelled, "rank 0 aborted"):
            group.recv(np.zeros(1), 0)
        return
    interrupt()
    with raises(KeyboardInterrupt):
        group.recv(np.zeros(1), 1)
    with raises(collectives.Cancelled, "rank 0 aborted"):
        group.barrier()


def test_ctrl_c_ends_a_wait_and_the_group():
    run(2, ctrl_c)


def ctrl_c_behind(group):
    """Rank 1 calls the operation only after rank 0 was interrupted."""
    if group.rank == 1:
        with raises(collectives.Cancelled, "rank 0 aborted"):
            group.recv(np.zeros(1), 0)
        return
    first = group.allreduce_async(np.ones(3))
    interrupt()
    with raises(KeyboardInterrupt):
        group.allreduce(np.ones(3))
    assert first.done()
    with raises(collectives.Cancelled, "rank 0 aborted"):
        first.wait()


def test_ctrl_c_behind_an_operation_in_the_background_ends_the_group():
    run(2, ctrl_c_behind)


def closing_handler(group, wait):
    if group.rank == 1:
        with raises(collectives.Cancelled, "rank 0 aborted"):
            group.recv(np.zeros(1), 0, tag=5)
        return
    errors = []

    def leave(*_):
        try:
            group.barrier()
        except collectives.FailedPrecondition as error:
            errors.append(str(error))
        group.close()
        if wait != "returns":
            raise SystemExit

    signal.signal(signal.SIGTERM, leave)
    interrupt(signal.SIGTERM)
    if wait == "returns":
        with raises(collectives.Cancelled, "rank 0 aborted"):
            group.barrier()
    elif wait == "behind":
        group.barrier_async()
        with raises(SystemExit):
            group.barrier()
    else:
        with raises(SystemExit):
            group.barrier()
    assert len(errors) == 1 and "signal handler" in errors[0]
    with raises(collectives.FailedPrecondition, "closed"):
        group.barrier()


@pytest.mark.parametrize("wait", ["returns", "raises", "behind"])
def test_a_signal_handler_may_close_the_group_during_a_wait(wait):
    run(2, closing_handler, wait)


def waiting_handler(group):
    """Tests that a signal handler cannot wait for an operation that comes
    after the interrupted one."""
    errors, handles = [], []

    def wait(*_):
        handles.append(group.allreduce_async(np.ones(3)))
        for timeout in (None, 5):
            try:
                handles[0].wait(timeout)
            except collectives.FailedPrecondition as error:
                errors.append(str(error))

    signal.signal(signal.SIGUSR1, wait)
    if group.rank == 0:
        interrupt(signal.SIGUSR1)
        group.barrier()
        assert len(errors) == 2 and "after the interrupted one" in errors[0]
        result = handles[0].wait()
        assert result.tolist() == [2, 2, 2]
        # Expects that a handler can wait for an operation that comes after
        # another thread's operation.
        later = group.allreduce_async(np.ones(3))
        signal.signal(signal.SIGUSR1, lambda *_: later.wait())
        interrupt(signal.SIGUSR1)
        group.barrier()
    else:
        time.sleep(0.6)
        group.barrier()
        group.allreduce(np.ones(3))
        time.sleep(0.6)
        group.allreduce(np.ones(3))
        group.barrier()


def test_a_signal_handler_cannot_wait_behind_the_interrupted_operation():
    run(2, waiting_handler)


def other_signals(group):
    """Expects that a signal whose handler returns does not end a wait."""
    seen = []
    signal.signal(signal.SIGUSR1, lambda *_: seen.append(1))
    if group.rank == 0:
        threading.Timer(0.1, os.kill, [os.getpid(), signal.SIGUSR1]).start()
        group.barrier()
        return len(seen)
    time.sleep(0.4)
    return group.barrier()


def test_a_signal_handler_runs_during_a_wait():
    assert run(2, other_signals)[0] == 1


def forks(group):
    # Starts two operations that are pending at the fork.
    handles = [group.recv_async(np.zeros(1), 1 - group.rank, tag=tag)
               for tag in (1, 1)]
    time.sleep(0.05)  # until the first one runs
    child = os.fork()
    if child == 0:
        try:
            for handle in handles:
                with raises(collectives.FailedPrecondition, "parent"):
                    handle.wait(5)
            with raises(collectives.FailedPrecondition, "parent"):
                group.barrier()
            with raises(collectives.FailedPrecondition, "parent"):
                group.send_async(np.ones(1), 0)
            group.close()
            with collectives.init(0, 1) as own:
                assert own.allreduce(3) == 3
        except BaseException:  # pylint: disable=broad-except
            os._exit(1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    for _ in handles:
        group.send(np.ones(1), 1 - group.rank, tag=1)
    assert [handle.wait()[0] for handle in handles] == [1, 1]
    return int(group.allreduce(1))


def test_a_forked_child_leaves_the_group_to_its_parent():
    assert run(2, forks) == [2, 2]


def interrupted_child(folder):
    # Makes rank 1 join the group and call nothing.
    rank = 0 if os.fork() else 1
    group = collectives.init(rank, 2, folder=folder, timeout=11)
    if rank == 1:
        time.sleep(60)
    interrupt()
    with raises(KeyboardInterrupt):
        group.barrier()


def fork_and_wait(function, *arguments):
    """Runs a function in a forked child of this thread."""
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        code = 1
        try:
            function(*arguments)
            code = 0
        finally:
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    os.killpg(child, signal.SIGKILL)
    return code


def test_ctrl_c_in_a_child_of_another_thread(tmp_path):
    forking = _turns.Turns().start(
        lambda: fork_and_wait(interrupted_child, tmp_path / "ranks"))
    assert forking.wait(30) == 0


def test_another_thread_forms_a_part(monkeypatch):
    """Tests that Ctrl-C still ends a wait of the main thread afterwards."""
    with collectives.init(0, 1) as group:
        monkeypatch.setattr(group, "_form", lambda *_: threading.get_ident())
        assert group.split(0) != threading.get_ident()

if __name__ == "__main__":
    run_pytest.main(__file__)
