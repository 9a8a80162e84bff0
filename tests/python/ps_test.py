#!/usr/bin/python3 -B
"""Workers and readers of parameter servers: values, copies, waits."""

import concurrent.futures
import contextlib
import subprocess
import sys
import threading

import run_pytest

import numpy as np
import peer
import pytest

import penstock
from penstock import ps

RATE = np.float32(0.125)
BIG = 1_000_000  # elements; sent by reference


@contextlib.contextmanager
def workers(model, values, count=1, servers=1, **options):
    """All workers of a training, the chief first."""
    with contextlib.ExitStack() as stack:
        addresses = [stack.enter_context(peer.ps_server(workers=count))
                     for _ in range(servers)]
        yield [stack.enter_context(
            ps.Worker(addresses, rank=rank, model=None if rank else model,
                      values=None if rank else values, **options))
               for rank in range(count)]


def dense(name="w", shape=(4, 3), **options):
    return ps.Dense(name, "f32", shape, optimizer=ps.Sgd(float(RATE)),
                    **options)


def sparse(name="emb", dim=8, **options):
    return ps.Sparse(name, dim, optimizer=ps.Sgd(float(RATE)), **options)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("servers", [1, 2])
def test_synchronous_sgd_is_what_numpy_makes_of_the_means(servers, seed):
    draw = np.random.default_rng(seed)
    shapes = {"a": (7,), "b": (3, 5), "c": ()}
    values = {name: np.asarray(draw.normal(size=shape), "f4")
              for name, shape in shapes.items()}
    expected = {name: value.copy() for name, value in values.items()}
    model = [dense(name, shape) for name, shape in shapes.items()]
    with workers(model, values, count=2, servers=servers) as team:
        for step in range(5):
            # Of both, before either has pushed.
            for pulled in [worker.pull(step) for worker in team]:
                assert (pulled.clock, set(pulled)) == (step, set(shapes))
                for name in shapes:
                    np.testing.assert_array_equal(pulled[name], expected[name])
            steps = [{name: np.asarray(draw.normal(size=shape), "f4")
                      for name, shape in shapes.items()} for _ in team]
            pushes = [worker.push_async(step, gradients)
                      for worker, gradients in zip(team, steps)]
            for push in pushes:
                assert push.result(timeout=60).counted
            for name in shapes:
                expected[name] -= RATE * (
                    (steps[0][name] + steps[1][name]) * np.float32(0.5))


@pytest.mark.parametrize("seed", range(3))
def test_rows_are_what_numpy_makes_of_the_sums(seed):
    draw = np.random.default_rng(seed)
    ids = draw.integers(-2**63, 2**63 - 1, size=50)
    rows = {id_: np.zeros(8, "f4") for id_ in ids.tolist()}
    with workers([sparse(staleness=ps.UNLIMITED)], {}, servers=2) as (worker,):
        for step in worker.steps(20):
            some = draw.choice(ids, size=draw.integers(1, 60))
            pulled = worker.pull(step, rows={"emb": some})["emb"]
            np.testing.assert_array_equal(
                pulled, [rows[id_] for id_ in some.tolist()])
            # Whole numbers, whose sums are exact.
            gradients = draw.integers(-9, 9, (len(some), 8)).astype("f4")
            worker.push(step, rows={"emb": (some, gradients)})
            for id_, gradient in zip(some.tolist(), gradients):
                rows[id_] -= RATE * gradient


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
        np.testing.assert_array_equal(team[0].pull(30)["w"],
                                      np.full(5, -90 * RATE))


def test_what_was_pulled_is_shown_where_it_was_received():
    with workers([dense(shape=BIG)], {"w": np.arange(BIG, dtype="f4")}
                 ) as (worker,):
        pulled = worker.pull(0)
        array = pulled["w"]
        assert not array.flags.writeable
        assert "memfd" in peer.mapping_of(array), peer.mapping_of(array)
        lent = np.from_dlpack(pulled.tensor("w"))
        for other in (pulled["w"], lent):
            assert other.ctypes.data == array.ctypes.data
        del pulled, lent
        worker.close()
        np.testing.assert_array_equal(array, np.arange(BIG, dtype="f4"))


def test_gradients_in_the_pool_are_sent_from_there():
    with workers([dense(shape=BIG)], {"w": np.zeros(BIG, "f4")}, count=2
                 ) as team:
        assert {path.path for path in penstock.describe_paths()} == {"shm"}
        gradient = penstock.Tensor.empty(BIG, "f4")
        array = gradient.numpy(writable=True)
        array[:] = 1
        for worker in team:
            worker.pull(0)
        team[0].push(0, {"w": gradient})
        # As nobody should: it waits for the other's, and nobody has a copy.
        array[0] = 41
        team[1].push(0, {"w": np.ones(BIG, "f4")})
        assert team[0].pull(1)["w"][0] == -21 * RATE
        assert team[0].pull(1)["w"][1] == -RATE


def test_pytorch_takes_what_was_pulled_and_gives_gradients():
    torch = pytest.importorskip("torch", reason="no PyTorch here: pip install "
                                                "torch")
    with workers([dense(shape=BIG)], {"w": np.ones(BIG, "f4")}) as (worker,):
        pulled = worker.pull(0)
        value = torch.from_dlpack(pulled.tensor("w"))
        assert value.data_ptr() == pulled["w"].ctypes.data
        worker.push(0, {"w": torch.full((BIG,), 2.0)})
        assert worker.pull(1)["w"][0] == 1 - 2 * RATE


def test_values_come_in_a_shorter_type_if_asked_for():
    values = {"w": np.arange(12, dtype="f4").reshape(4, 3)}
    with workers([dense()], values) as (worker,):
        half = worker.pull(0, dtype="f16")["w"]
        assert half.dtype == np.float16
        np.testing.assert_array_equal(half, values["w"])
        pulled = worker.pull(0, dtype="bf16")
        np.testing.assert_array_equal(pulled.tensor("w").bits(),
                                      values["w"].view("u4") >> 16)
        with pytest.raises(penstock.InvalidArgument, match="bits"):
            print(pulled["w"])


def test_only_what_is_asked_for_comes():
    model = [dense("a"), dense("b"), sparse()]
    values = {"a": np.zeros((4, 3)), "b": np.ones((4, 3))}
    values = {name: value.astype("f4") for name, value in values.items()}
    with workers(model, values) as (worker,):
        assert set(worker.pull(0)) == {"a", "b"}
        pulled = worker.pull(0, dense=["b"], rows={"emb": [3, 3, 4]})
        assert set(pulled) == {"b", "emb"} and len(pulled) == 2
        assert pulled["emb"].shape == (3, 8)
        assert worker.pull(0, dense=[], rows={"emb": []})["emb"].shape == (0, 8)
        assert worker.tables == (
            ("a", "dense", "f32", (4, 3), "sgd", 0),
            ("b", "dense", "f32", (4, 3), "sgd", 0),
            ("emb", "sparse", "f32", (8,), "sgd", 0))


def test_a_reader_sees_what_workers_have_made_and_nobody_waits_for_it():
    with peer.ps_server() as address:
        with pytest.raises(penstock.Error, match="no server has a model"):
            ps.Reader([address], wait_for_values=False)
        with ps.Worker([address], rank=0, model=[dense()],
                       values={"w": np.zeros((4, 3), "f4")}) as worker, \
                ps.Reader([address]) as reader:
            for step in worker.steps(3):
                worker.pull(step)
                worker.push(step, {"w": np.ones((4, 3))})
            np.testing.assert_array_equal(
                reader.pull(3)["w"], np.full((4, 3), -3 * RATE))
            future = reader.pull_async()
            assert set(future.result(timeout=60)) == {"w"}
            assert not future.cancel()
            assert reader.tables == worker.tables


@pytest.mark.parametrize("how, tolerance", [
    (ps.Half(), 0.01), (ps.Half("f16"), 0.001), (ps.Int8(), 0.02),
    (ps.TopK(0.25, "f32"), 2), (ps.RandomK(0.25, "f32", seed=7), 2)])
def test_compressed_gradients_add_up_to_what_was_pushed(how, tolerance):
    with workers([dense(shape=4096)], {"w": np.zeros(4096, "f4")},
                 compression={"w": how}) as (worker,):
        draw = np.random.default_rng(1)
        total = np.zeros(4096)
        for step in worker.steps(40):
            worker.pull(step)
            gradient = draw.uniform(0.5, 1, 4096).astype("f4")
            worker.push(step, {"w": gradient})
            total += gradient
        left = np.abs(worker.pull(40)["w"] + RATE * total)
        # Error feedback keeps a few gradients back; rounding has no memory.
        assert left.mean() < tolerance * RATE * 10


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
                # The step under way, or the next one.
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


def test_threads_may_share_a_worker():
    model = [dense(staleness=ps.UNLIMITED), sparse(staleness=ps.UNLIMITED)]
    ends = threading.Event()

    def read():
        count = 0
        while not ends.is_set() or count == 0:
            pulled = worker.pull(0, rows={"emb": [1, 2]})
            # Each push changes all elements by the same.
            assert len(np.unique(pulled["emb"])) == 1
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
        assert worker.pull(50)["w"][0, 0] == -50 * RATE


def test_futures_of_many_calls_come_in_the_order_in_which_they_end():
    with workers([dense()], {"w": np.zeros((4, 3), "f4")}, count=2) as team:
        for worker in team:
            worker.pull(0)
        team[0].push(0, {"w": np.ones((4, 3))})
        waits = team[0].pull_async(1)  # for the other's push
        ready = team[1].pull_async(0)
        assert ready.result(timeout=60).clock == 0
        assert not waits.done()
        on_end = threading.Event()
        waits.add_done_callback(lambda _: on_end.set())
        team[1].push(0, {"w": np.zeros((4, 3))})
        assert on_end.wait(timeout=60)
        assert waits.result().waited > 0
        assert waits.result()["w"][0, 0] == -RATE / 2


def test_a_closed_worker_says_so_and_ends_its_calls():
    with workers([dense()], {"w": np.zeros((4, 3), "f4")}, count=2) as team:
        for worker in team:
            worker.pull(0)
        team[0].push(0, {"w": np.ones((4, 3))})
        waits = team[0].pull_async(1)
        team[0].close()
        team[0].close()
        with pytest.raises(penstock.Error) as raised:
            waits.result(timeout=60)
        assert raised.value.code == "CANCELLED"
        for call in (lambda: team[0].pull(1), lambda: team[0].push_async(1)):
            with pytest.raises(penstock.FailedPrecondition, match="closed"):
                call()
        # Nobody waits for one that has left.
        team[1].push(0, {"w": np.ones((4, 3))})
        assert team[1].pull(1).clock == 1


if __name__ == "__main__":
    run_pytest.main(__file__)
