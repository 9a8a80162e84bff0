#!/usr/bin/python3 -B
"""Tests several workers of a training, in threads and in processes: the model
that they train together, which workers wait, and what remains after them."""

import concurrent.futures
import contextlib
import subprocess
import sys
import threading

import run_pytest

import numpy as np
import peer
import pytest
from teams import RATE, dense, sparse, workers

import penstock
from penstock import ps


def gradients_of(rank, steps):
    """Returns gradients of whole numbers, because their means are exact."""
    draw = np.random.default_rng(rank)
    return [draw.integers(-9, 9, 5).astype("f4") for _ in range(steps)]


def test_synchronous_workers_in_threads_make_the_means_of_all():
    def train(worker, gradients):
        seen = []
        for step in worker.steps(len(gradients)):
            seen.append(worker.pull(step)["w"].copy())
            assert worker.push(step, {"w": gradients[step]}).counted
        return seen
    with workers([dense(shape=5)], {"w": np.zeros(5, "f4")}, count=3) as team, \
            concurrent.futures.ThreadPoolExecutor(3) as pool:
        # Expects exact values: the mean of three equal gradients is exact, too.
        steps = gradients_of(0, 20)
        trained = [pool.submit(train, worker, steps) for worker in team]
        expected = -RATE * np.cumsum([np.zeros(5, "f4"), *steps[:-1]], axis=0)
        for seen in trained:
            np.testing.assert_array_equal(seen.result(timeout=60), expected)


TRAINS = """
import sys
import numpy as np
from penstock import ps
rank, address = int(sys.argv[1]), sys.argv[2]
draw = np.random.default_rng(rank)
chief = {} if rank else {
    "model": [ps.Dense("w", "f32", 5, optimizer=ps.Sgd(0.125))],
    "values": {"w": np.zeros(5, "f4")}}
with ps.Worker([address], rank=rank, **chief) as worker:
    for step in worker.steps(20):
        worker.pull(step)
        worker.push(step, {"w": draw.integers(-9, 9, 5).astype("f4")})
    print(*worker.pull(20)["w"])
"""


def test_synchronous_workers_in_processes_make_the_means_of_both():
    with peer.ps_server(workers=2) as address:
        processes = [subprocess.Popen(
            [sys.executable, "-B", "-c", TRAINS, str(rank), address], text=True,
            stdout=subprocess.PIPE) for rank in range(2)]
        expected = -RATE * sum(
            (sum(gradients_of(rank, 20)) for rank in range(2))) / 2
        for process in processes:
            told, _ = process.communicate(timeout=60)
            assert process.returncode == 0
            np.testing.assert_array_equal(
                [float(number) for number in told.split()], expected)


def applied(worker, least):
    """Returns the value of an asynchronous table once its first element is at
    most `least`. Acknowledged pushes are applied soon."""
    while (value := worker.pull(0)["w"]).flat[0] > least:
        pass
    return value


def test_asynchronous_workers_lose_no_push():
    def train(worker):
        for step in worker.steps(30):
            worker.pull(step)
            assert worker.push(step, {"w": np.ones(5)}).counted
    table = dense(shape=5, staleness=ps.UNLIMITED)
    with workers([table], {"w": np.zeros(5, "f4")}, count=3) as team:
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            for done in [pool.submit(train, worker) for worker in team]:
                done.result(timeout=60)
        final = applied(team[0], -90 * RATE)
        np.testing.assert_array_equal(final, np.full(5, -90 * RATE))


def test_threads_may_share_a_worker():
    model = [dense(staleness=ps.UNLIMITED), sparse(staleness=ps.UNLIMITED)]
    ends = threading.Event()

    def read():
        count = 0
        while not ends.is_set() or count == 0:
            pulled = worker.pull(0, rows={"emb": [1, 2]})
            # Expects equal elements in each row, because each push changes
            # all of them by the same number. Two rows may differ: a pull may
            # come between their changes.
            for row in pulled["emb"]:
                assert len(np.unique(row)) == 1
            count += 1
        return count
    with workers(model, {"w": np.zeros((4, 3), "f4")}) as (worker,), \
            concurrent.futures.ThreadPoolExecutor(4) as pool:
        readers = [pool.submit(read) for _ in range(4)]
        try:
            for step in worker.steps(50):
                worker.push(step, {"w": np.ones((4, 3))},
                            rows={"emb": ([1, 2], np.ones((2, 8), "f4"))})
        finally:
            ends.set()
        assert all(reader.result(timeout=60) for reader in readers)
        assert np.unique(applied(worker, -50 * RATE)) == -50 * RATE


DIES = """
import os, signal, sys
import numpy as np
from penstock import ps
worker = ps.Worker([sys.argv[1]], rank=1)
worker.pull(0)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_others_go_on_when_a_worker_dies_and_it_may_come_again():
    with peer.ps_server("--lease=1", workers=2) as address:
        with ps.Worker([address], rank=0, model=[dense()],
                       values={"w": np.zeros((4, 3), "f4")}) as worker:
            died = subprocess.run([sys.executable, "-B", "-c", DIES, address],
                                  check=False, timeout=60)
            assert died.returncode == -9
            for step in worker.steps(3):
                worker.pull(step)
                worker.push(step, {"w": np.ones((4, 3))})
            assert worker.pull(3)["w"][0, 0] == -3 * RATE
            with ps.Worker([address], rank=1) as again:
                # Expects the current step, or the next one.
                assert again.pull(again.clock).clock >= 3


def test_a_chief_that_is_started_anew_goes_on():
    values = {"w": np.ones((4, 3), "f4")}
    with peer.ps_server() as address:
        for expected in (0, 1):
            with ps.Worker([address], rank=0, model=[dense()],
                           values=values) as worker:
                assert (worker.clock, worker.restored_step) == (expected, 0)
                worker.pull(worker.clock)
                worker.push(worker.clock, {"w": np.ones((4, 3))})
        with pytest.raises(penstock.FailedPrecondition, match="another model"):
            ps.Worker([address], rank=0, model=[dense(shape=7)], values=values)


def test_a_worker_may_be_ahead_by_the_staleness_of_the_table():
    with workers([dense(staleness=1)], {"w": np.zeros((4, 3), "f4")}, count=2
                 ) as (ahead, behind):
        for step in range(2):
            assert ahead.pull(step).clock <= step  # does not wait for others
            ahead.push(step, {"w": np.ones((4, 3))})
        waits = ahead.pull_async(2)
        behind.pull(0)
        behind.push(0, {"w": np.ones((4, 3))})
        assert waits.result(timeout=60)["w"][0, 0] == -3 * RATE


def test_a_push_that_comes_when_its_step_is_over_is_late_and_says_so():
    with workers([dense(backup_workers=1)], {"w": np.zeros((4, 3), "f4")},
                 count=2) as (fast, slow):
        for worker in (fast, slow):
            worker.pull(0)
        assert fast.push(0, {"w": np.ones((4, 3))}) == ps.Pushed(("counted",))
        assert fast.pull(1).clock == 1
        late = slow.push(0, {"w": np.ones((4, 3))})
        assert late == ps.Pushed(("late",)) and not late.counted
        assert slow.pull(1)["w"][0, 0] == -RATE


def test_a_server_that_is_gone_is_named():
    with contextlib.ExitStack() as server:
        address = server.enter_context(peer.ps_server())
        with ps.Worker([address], rank=0, model=[dense()], pull_timeout=0.5,
                       values={"w": np.zeros((4, 3), "f4")}) as worker:
            server.close()
            with pytest.raises(TimeoutError, match=address):
                worker.pull(0)


def train(worker, begin, end):
    for step in range(begin, end):
        worker.pull(step)
        worker.push(step, {"w": np.ones((4, 3), "f4")},
                    rows={"emb": ([7, -7], np.ones((2, 8), "f4"))})
    worker.pull(end)  # once all is applied


@pytest.mark.parametrize("before, after", [(1, 1), (2, 1), (1, 2)])
def test_a_training_goes_on_from_a_checkpoint(before, after, tmp_path):
    arguments = {"rank": 0, "model": [dense(), sparse()],
                 "values": {"w": np.zeros((4, 3), "f4")}}
    flags = [f"--checkpoints={tmp_path}"]
    with contextlib.ExitStack() as stack:
        servers = [stack.enter_context(peer.ps_server(*flags))
                   for _ in range(before)]
        worker = stack.enter_context(ps.Worker(servers, **arguments))
        train(worker, 0, 3)
        full = worker.checkpoint()
        assert full[:2] + full[3:] == (3, False, ()) and full.bytes > 0
        assert worker.restored_step == 0
    with contextlib.ExitStack() as stack:
        servers = [stack.enter_context(peer.ps_server(*flags,
                                                      "--restore=newest"))
                   for _ in range(after)]
        worker = stack.enter_context(ps.Worker(servers, **arguments))
        assert (worker.restored_step, worker.clock) == (3, 3)
        pulled = worker.pull(3, rows={"emb": [-7]})
        for name in ("w", "emb"):
            assert np.unique(pulled[name]) == -3 * RATE
        train(worker, 3, 4)
        assert worker.checkpoint().step == 4
        train(worker, 4, 5)
        with ps.Reader(servers) as reader:
            kept = reader.checkpoint(incremental=True, keep=1)
        # Expects that all checkpoints stay: step 5, its base of step 4, and
        # step 3. If the base were damaged, step 3 would be the only good
        # checkpoint.
        assert kept[:2] + kept[3:] == (5, True, ())


def test_servers_take_checkpoints_by_themselves(tmp_path):
    secret, folder = tmp_path / "secret", tmp_path / "checkpoints"
    secret.write_text("a" * 44 + "\n")
    secret.chmod(0o600)
    folder.mkdir()
    flags = [f"--checkpoints={folder}", "--checkpoint-every=0.1",
             "--keep-checkpoints=1", f"--secret={secret}"]
    with contextlib.ExitStack() as stack:
        servers = [stack.enter_context(peer.ps_server(*flags))
                   for _ in range(2)]
        worker = stack.enter_context(
            ps.Worker(servers, rank=0, model=[dense(), sparse()],
                      values={"w": np.zeros((4, 3), "f4")}, secret=secret))

        def taken():
            return {path.parent for path in folder.glob("step-*/manifest")}

        step, first = 0, set()
        while not first or first & taken():  # until others have taken its place
            train(worker, step, step + 1)
            step += 1
            first = first or taken()
        assert taken()


def test_a_closed_client_takes_no_checkpoint():
    with workers([dense()], {"w": np.zeros((4, 3), "f4")}) as (worker,):
        worker.close()
        with pytest.raises(penstock.FailedPrecondition,
                           match="worker 0 of .* is closed"):
            worker.checkpoint()
        assert worker.tables[0].name == "w"  # known all the same


if __name__ == "__main__":
    run_pytest.main(__file__)
