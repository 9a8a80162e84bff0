#!/usr/bin/python3 -B
"""Tests workers and readers of parameter servers: values, copies, waits."""

import re
import threading

import run_pytest

import numpy as np
import peer
import pytest
from teams import RATE, dense, sparse, workers

import penstock
from penstock import _ps_calls, ps

BIG = 1_000_000  # elements; sent by reference


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
            # Checks the values of both workers, before either has pushed.
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
    with workers([sparse()], {}, servers=2) as (worker,):
        for step in worker.steps(20):
            some = draw.choice(ids, size=draw.integers(1, 60))
            pulled = worker.pull(step, rows={"emb": some})["emb"]
            np.testing.assert_array_equal(
                pulled, [rows[id_] for id_ in some.tolist()])
            # Draws whole numbers, because their sums are exact.
            gradients = draw.integers(-9, 9, (len(some), 8)).astype("f4")
            worker.push(step, rows={"emb": (some, gradients)})
            for id_, gradient in zip(some.tolist(), gradients):
                rows[id_] -= RATE * gradient


def test_what_was_pulled_is_shown_where_it_was_received():
    model = [dense(shape=BIG), dense("small", shape=5), sparse(dim=64)]
    values = {"w": np.arange(BIG, dtype="f4"), "small": np.ones(5, "f4")}
    with workers(model, values) as (worker,):
        pulled = worker.pull(0, rows={"emb": np.arange(5000)})
        for name in pulled:
            array = pulled[name]
            assert not array.flags.writeable
            # Expects memory that belongs to the server and that this process
            # may only read.
            assert re.search(" r--s .* /memfd:", peer.mapping_of(array)), name
            lent = np.from_dlpack(pulled.tensor(name))
            for other in (pulled[name], lent):
                assert other.ctypes.data == array.ctypes.data
        array = pulled["w"]
        del pulled, lent, other
        worker.close()
        np.testing.assert_array_equal(array, values["w"])


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
        # Writes to the pushed array, which a program must not do. The worker
        # still waits for the other worker's push, and no copy of the array
        # exists.
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


class OnlyDlpack:
    """A tensor of another package, which has only __dlpack__."""

    def __init__(self, array):
        self._array = array

    def __dlpack__(self, stream=None):
        return self._array.__dlpack__(stream=stream)

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()


@pytest.mark.parametrize("make", [
    np.asarray, np.asfortranarray, OnlyDlpack, penstock.Tensor,
    lambda array: np.repeat(array, 2, axis=1)[:, ::2]])
def test_gradients_and_values_may_be_of_any_make(make):
    gradient = np.arange(12, dtype="f4").reshape(4, 3)
    with workers([dense(), sparse(dim=3)], {"w": make(gradient)}) as (worker,):
        np.testing.assert_array_equal(worker.pull(0)["w"], gradient)
        worker.push(0, {"w": make(gradient)},
                    rows={"emb": (range(4), make(gradient))})
        pulled = worker.pull(1, rows={"emb": list(range(4))})
        np.testing.assert_array_equal(pulled["w"], gradient * (1 - RATE))
        np.testing.assert_array_equal(pulled["emb"], gradient * -RATE)


@pytest.mark.parametrize("dtype", ["f32", "f64", "f16", "bf16"])
def test_tables_of_each_type_are_trained_in_it(dtype):
    table = ps.Dense("w", dtype, (2, 3), optimizer=ps.Sgd(0.5))

    def tensor_of(numbers):
        array = np.array(numbers, "f4").reshape(2, 3)
        if dtype == "bf16":  # the upper half of f32
            return penstock.Tensor.from_bits(
                (array.view("u4") >> 16).astype("u2"), dtype)
        return penstock.Tensor(array.astype(f"f{int(dtype[1:]) // 8}"))
    with workers([table], {"w": tensor_of([1, 2, 3, 4, 5, 6])}) as (worker,):
        worker.push(0, {"w": tensor_of([1, 2, 4, 8, 2, 4])})
        tensor = worker.pull(1).tensor("w")
        expected = tensor_of([0.5, 1, 1, 0, 4, 4])
        assert tensor.dtype == expected.dtype == dtype
        np.testing.assert_array_equal(tensor.bits(), expected.bits())


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
        # Expects an error of a few gradients, because error feedback keeps
        # parts of gradients back. Rounding keeps nothing back.
        assert left.mean() < tolerance * RATE * 10


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


def test_what_happens_as_a_call_begins_costs_no_other_its_future():
    with workers([dense()], {"w": np.zeros((4, 3), "f4")}) as (worker,):
        def interrupted(number):
            worker._worker.start_pull(0, None, None, None, number)
            raise KeyboardInterrupt

        def calls_another(number):  # as a destructor may
            others.append(worker.pull_async(0))
            return worker._worker.start_pull(0, None, None, None, number)
        others = []
        with pytest.raises(KeyboardInterrupt):
            _ps_calls.futures.start(interrupted, _ps_calls.pulled_of)
        one = _ps_calls.futures.start(calls_another, _ps_calls.pulled_of)
        for future in (one, *others, worker.pull_async(0)):
            assert future.result(timeout=60).clock == 0


def test_a_push_without_room_is_tried_again_until_its_time_is_over():
    # Chooses the numbers of rows. The table has 25 MB, of which 17 are not for
    # rows. With few rows, an attempt takes almost no time, and the timeout ends
    # between two attempts.
    few, many = 300, 150_000
    with workers([sparse(budget_bytes=25 * 10**6)], {}, push_timeout=2
                 ) as (worker,):
        with pytest.raises(MemoryError, match="'emb'.*gave up after") as raised:
            for step in range(many // few):
                ids = np.arange(step * few, (step + 1) * few)
                worker.push(step, rows={"emb": (ids, np.ones((few, 8), "f4"))})
        assert isinstance(raised.value, penstock.ResourceExhausted)
        assert "budget_bytes" in str(raised.value)


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
        # Pushes alone, because nobody waits for a worker that has left.
        team[1].push(0, {"w": np.ones((4, 3))})
        assert team[1].pull(1).clock == 1


if __name__ == "__main__":
    run_pytest.main(__file__)
