#!/usr/bin/python3 -B
"""Tests client and server: calls, paths, copies, errors."""

import subprocess
import sys
import threading
import time

import run_pytest

import numpy as np
import peer
import pytest

import penstock

BIG = 1_000_000  # elements; sent by reference


@pytest.fixture(name="target")
def make_target():
    with peer.server() as target:
        yield target


@pytest.fixture(name="client")
def make_client():
    with penstock.TensorServer(budget_bytes=2**28) as server:
        with penstock.TensorClient(f"127.0.0.1:{server.port}") as client:
            yield client


def test_tensors_are_kept_by_name(client):
    arrays = {"a": np.arange(3), "b": np.ones((2, 2), "?"), "": None}
    del arrays[""]
    stored = client.put(arrays)
    assert stored > 24
    got = client.get(["b", "a"])
    assert list(got) == ["b", "a"]
    np.testing.assert_array_equal(got["a"].numpy(), arrays["a"])
    np.testing.assert_array_equal(got["b"].numpy(), arrays["b"])
    assert client.list() == [("a", "int64", (3,)), ("b", "bool", (2, 2))]
    replaced = client.exchange({"a": np.zeros(1), "c": np.zeros(1)})
    assert list(replaced) == ["a"] and replaced["a"].shape == (3,)
    assert client.delete(["a", "nothing"]) == 1


def test_a_name_that_is_given_twice_is_received_once(client):
    client.put({"x": np.arange(BIG), "y": np.arange(3)})
    into = np.zeros(BIG, "int64")
    got = client.get(["x", "y", "x"], into={"x": into})
    assert list(got) == ["x", "y"]
    assert np.shares_memory(got["x"].numpy(), into)
    np.testing.assert_array_equal(into, np.arange(BIG))
    assert client.delete(["x", "x"]) == 1


def test_masked_arrays_are_refused_on_both_ways(client):
    masked = np.ma.MaskedArray([1.0, 2.0], mask=[True, False])
    with pytest.raises(penstock.InvalidArgument, match="filled"):
        client.put({"x": masked})
    assert client.list() == []
    client.put({"x": np.arange(2.0)})
    with pytest.raises(penstock.InvalidArgument, match="filled"):
        client.get(["x"], into={"x": masked})


def test_a_shape_that_numpy_cannot_have_is_refused_when_it_is_shown(client):
    client.put({"x": penstock.Tensor.empty((0, 2**63 - 1))})
    got = client.get(["x"])["x"]
    assert got.shape == client.list()[0].shape == (0, 2**63 - 1)
    with pytest.raises(penstock.InvalidArgument, match="elements"):
        got.numpy()


def test_long_tensors_go_in_parts(client, target):
    long, short = np.arange(BIG), np.arange(5.0)
    with penstock.TensorClient(target, parts_above=2**20) as parts:
        assert parts.put({"long": long, "short": short}) > long.nbytes
        into = np.zeros(BIG, "int64")
        got = parts.get(["short", "long"], into={"long": into})
        assert list(got) == ["short", "long"]
        np.testing.assert_array_equal(into, long)
        assert np.shares_memory(got["long"].numpy(), into)
        np.testing.assert_array_equal(got["short"].numpy(), short)
        tensor = penstock.Tensor.empty((BIG,), "int64")
        parts.get(["long"], into={"long": tensor})
        np.testing.assert_array_equal(tensor.numpy(), long)
        with pytest.raises(penstock.InvalidArgument, match="long"):
            parts.get(["long"], into={"long": np.zeros(3)})
        with pytest.raises(penstock.NotFound, match="none"):
            parts.get(["long", "none"])
        parts.put({"long": tensor})
        np.testing.assert_array_equal(
            parts.get(["long"])["long"].numpy(), long)
    for wrong in (-1, 2**64, 1.5, None):
        with pytest.raises((penstock.InvalidArgument, TypeError),
                           match="parts_above"):
            penstock.TensorClient(target, parts_above=wrong)


def test_tensors_are_received_into_arrays(client):
    client.put({"a": np.arange(BIG), "b": np.ones((2, 2), "?")})
    a, b = np.zeros(BIG, "int64"), np.zeros((2, 2), "?")
    c = penstock.Tensor.empty((BIG,), "int64")
    got = client.get(["b", "a"], into={"a": a, "b": b})
    assert list(got) == ["b", "a"]
    np.testing.assert_array_equal(a, np.arange(BIG))
    np.testing.assert_array_equal(b, np.ones((2, 2), "?"))
    assert np.shares_memory(got["a"].numpy(), a)
    client.get(["a"], into={"a": c})
    np.testing.assert_array_equal(c.numpy(), np.arange(BIG))
    for round in range(3):
        client.exchange({"a": np.full(BIG, round)}, into={"a": a})
        assert a[7] == (round - 1 if round else 7)


def full(value):
    """Returns a Tensor in the pool that nobody else uses."""
    tensor = penstock.Tensor.empty(BIG, "f8")
    tensor.numpy(writable=True)[:] = value
    return tensor


def test_a_tensor_of_ones_own_is_received_into_where_it_is(client):
    client.put({"a": np.full(BIG, 1.0)})
    tensor = full(0)
    array = tensor.numpy()
    client.get(["a"], into={"a": tensor})
    assert array[0] == 1 and np.shares_memory(array, tensor.numpy())


def test_what_a_peer_has_stays_when_its_tensor_is_received_into(target):
    with penstock.TensorClient(target) as client:
        client.list()  # the path is agreed on
        tensor = full(1)
        client.put({"a": tensor, "b": np.full(BIG, 2.0)})
        assert penstock.describe_paths()[0].path == "shm"
        client.get(["b"], into={"b": tensor})
        assert tensor.numpy()[0] == 2
        assert client.get(["a"])["a"].numpy()[0] == 1


def test_a_tensor_is_exchanged_for_what_it_replaces(client):
    client.put({"a": np.full(BIG, 0.0)})
    tensor = full(1)
    for round in range(1, 5):
        client.exchange({"a": tensor}, into={"a": tensor})
        assert tensor.numpy()[0] == round - 1
        assert client.get(["a"])["a"].numpy()[0] == round
        tensor.numpy(writable=True)[:] = round + 1


def test_other_tensors_of_that_memory_stay_what_they_are(client):
    client.put({"a": np.full(BIG, 1.0), "b": np.full(BIG, 2.0)})
    tensor = full(0)
    same, lent = penstock.Tensor(tensor), tensor.__dlpack__()
    got = client.get(["a", "b"], into={"a": tensor, "b": same})
    assert (tensor.numpy()[0], same.numpy()[0]) == (1, 2)
    assert penstock.from_dlpack(lent).numpy()[0] == 0
    # Writes to the returned tensor, which is a different object with the same
    # memory.
    got["a"].numpy(writable=True)[:] = 3
    client.get(["a"], into={"a": got["b"]})
    assert (tensor.numpy()[0], same.numpy()[0]) == (1, 2)
    assert (got["a"].numpy()[0], got["b"].numpy()[0]) == (3, 1)


def test_a_call_that_fails_leaves_a_tensor_in_use_as_it_was(client):
    client.put({"a": np.full(BIG, 1.0), "b": np.zeros(3)})
    tensor = full(0)
    client.put({"c": tensor})
    for wrong in ({"b": np.zeros(4)}, {"b": tensor}, {"c": tensor}):
        with pytest.raises(penstock.InvalidArgument, match=r"into\['[bc]'\]"):
            client.get(["a", "b"], into={"a": tensor, **wrong})
        assert tensor.numpy()[0] == 0


def test_memory_that_does_not_fit_is_refused(client):
    client.put({"a": np.arange(6.0)})
    whole = np.zeros(12)
    read_only = np.zeros(6)
    read_only.setflags(write=False)
    for wrong in (read_only, whole[::2], np.zeros(6, ">f8"), [0.0] * 6, 3,
                  None, penstock.Tensor(np.zeros(6)), np.zeros(5),
                  np.zeros(6, "f4"), client.get(["a"])["a"]):
        with pytest.raises(penstock.InvalidArgument, match=r"into\['a'\]"):
            client.get(["a"], into={"a": wrong})
    with pytest.raises(penstock.InvalidArgument, match="no tensor of that"):
        client.get(["a"], into={"b": np.zeros(6)})
    with pytest.raises(penstock.InvalidArgument, match="a part of its memory"):
        client.exchange({"a": np.ones(6), "b": np.ones(6)},
                        into={"a": whole[:6], "b": whole[3:9]})
    for wrong in ({1: np.zeros(6)}, [np.zeros(6)]):
        with pytest.raises(TypeError):
            client.get(["a"], into=wrong)
    with pytest.raises(TypeError):
        client.get(["a"], {"a": whole})


class WithDLPack:
    """An array of another library, such as PyTorch."""

    def __init__(self, array):
        self.__dlpack__ = array.__dlpack__
        self.__dlpack_device__ = array.__dlpack_device__


def test_an_array_of_another_library_is_received_into_where_it_is(client):
    client.put({"a": np.arange(6.0).reshape(2, 3)})
    array = np.zeros((2, 3))
    client.get(["a"], into={"a": WithDLPack(array)})
    np.testing.assert_array_equal(array, np.arange(6.0).reshape(2, 3))
    for gaps in (np.zeros((3, 2)).T, np.zeros((2, 6))[:, ::2]):
        with pytest.raises(penstock.InvalidArgument, match="row-major"):
            client.get(["a"], into={"a": WithDLPack(gaps)})
        assert not gaps.any()


def test_each_type_and_shape_comes_through(client):
    tensors = {name: penstock.Tensor.empty((2, 3000), name)
               for name in ("f32", "f64", "f16", "bf16", "int8", "int16",
                            "int32", "int64", "uint8", "bool")}
    for tensor in tensors.values():
        tensor.bits(writable=True)[:] = 1
    tensors.update({"scalar": penstock.Tensor(7.5),
                    "none": penstock.Tensor(np.zeros((3, 0)))})
    client.put(tensors)
    for name, got in client.get(tensors).items():
        assert (got.dtype, got.shape) == (tensors[name].dtype,
                                          tensors[name].shape)
        np.testing.assert_array_equal(got.bits(), tensors[name].bits())


def test_two_processes_share_memory_and_copy_nothing(target):
    with penstock.TensorClient(target) as client:
        client.list()  # the path is agreed on
        mine = penstock.Tensor.empty(BIG, "f4")
        array = mine.numpy(writable=True)
        array[:] = np.arange(BIG)
        client.put({"x": mine})
        (path,) = penstock.describe_paths()
        assert path.path == "shm", path
        assert str(path).startswith("shm (")
        assert path.bytes_sent > mine.nbytes

        got = client.get(["x"])["x"].numpy()
        np.testing.assert_array_equal(got, array)
        assert not got.flags.writeable
        # Expects that the two processes share the memory.
        assert "memfd" in peer.mapping_of(got)
        # Writes to the memory, which a program must not do. The server has no
        # copy, so it sees this write.
        array[0] = 42
        assert client.get(["x"])["x"].numpy()[0] == 42
        # Writes in the right way, which does not change the server's tensor.
        mine.numpy(writable=True)[0] = 43
        assert client.get(["x"])["x"].numpy()[0] == 42


def test_an_array_may_be_written_to_when_put_has_returned(target):
    with penstock.TensorClient(target) as client:
        array = np.zeros(BIG, "f4")
        client.put({"x": array})
        array[:] = 1
        assert not client.get(["x"])["x"].numpy().any()


def test_received_memory_is_copied_before_it_is_written_to(target):
    with penstock.TensorClient(target) as client:
        client.put({"x": np.zeros(BIG, "f4")})
        got = client.get(["x"])["x"]
        got.numpy(writable=True)[0] = 1
        assert client.get(["x"])["x"].numpy()[0] == 0


def test_arrays_are_let_go_of_after_the_call(client):
    import sys
    array = np.zeros(BIG, "f4")
    before = sys.getrefcount(array)
    for _ in range(20):
        client.put({"x": array})
    client.list()
    end = time.monotonic() + 30
    while sys.getrefcount(array) > before and time.monotonic() < end:
        client.list()
    assert sys.getrefcount(array) == before


def test_what_is_missing_is_a_key_error(client):
    with pytest.raises(KeyError, match=r"list\(\)") as raised:
        client.get(["x"])
    assert isinstance(raised.value, penstock.NotFound)
    assert raised.value.code == "NOT_FOUND"
    assert not str(raised.value).startswith('"')


def test_above_the_budget_is_a_memory_error(client):
    with pytest.raises(MemoryError, match="budget") as raised:
        client.put({"x": penstock.Tensor.empty(2**28, "int8")})
    assert isinstance(raised.value, penstock.ResourceExhausted)


def test_nobody_there_is_a_timeout():
    with penstock.TensorServer() as server:
        target = f"127.0.0.1:{server.port}"
    with pytest.raises(TimeoutError, match="raise the timeout") as raised:
        penstock.TensorClient(target, timeout=0.2).list()
    assert isinstance(raised.value, penstock.DeadlineExceeded)


def test_an_address_that_cannot_be_used_is_a_connection_error():
    with penstock.TensorServer() as server:
        for address in (f"127.0.0.1:{server.port}", "no such host:1"):
            with pytest.raises(ConnectionError, match="Port 0") as raised:
                penstock.TensorServer(address)
            assert isinstance(raised.value, penstock.Unavailable)


@pytest.mark.parametrize("wrong", [
    lambda c: c.get("x"), lambda c: c.get([1]), lambda c: c.put({1: [1]}),
    lambda c: c.put([1]), lambda c: c.get(7)])
def test_arguments_of_other_types_are_type_errors(client, wrong):
    with pytest.raises(TypeError):
        wrong(client)


def test_other_wrong_arguments_are_value_errors(client):
    with pytest.raises(ValueError):
        client.put({"": [1]})
    with pytest.raises(ValueError):
        client.put({"\ud800": [1]})
    for timeout in (0, -1, float("nan")):
        with pytest.raises(ValueError, match="positive"):
            penstock.TensorClient("127.0.0.1:1", timeout=timeout)


def test_a_closed_client_says_so_and_has_no_path(client):
    client.list()
    assert len(penstock.describe_paths()) == 1
    client.close()
    client.close()
    with pytest.raises(penstock.FailedPrecondition, match="closed"):
        client.list()
    assert penstock.describe_paths() == []


def test_other_threads_run_while_one_waits():
    with penstock.TensorServer() as server:
        waits = threading.Thread(target=server.wait)
        waits.start()
        assert not server.wait(timeout=0.01)
        server.stop()
        server.stop()
        waits.join(timeout=30)
        assert not waits.is_alive()
        assert server.wait()


def test_no_number_is_no_time():
    with penstock.TensorServer() as server:
        for call in (lambda: server.wait(timeout=float("nan")),
                     lambda: server.stop(grace=float("nan"))):
            with pytest.raises(penstock.InvalidArgument, match="nan"):
                call()


def test_a_numpy_of_another_structure_is_refused_by_name():
    told = subprocess.run(
        [sys.executable, "-c", "import numpy; numpy.__version__ = '2.1.0'\n"
         "import penstock; penstock.Tensor"],
        capture_output=True, text=True, check=False)
    if penstock._penstock._knows_numpy_2:
        assert (told.returncode, told.stderr) == (0, "")
    else:
        assert told.returncode == 1
        assert "pip install 'numpy<2'" in told.stderr


def test_threads_may_share_a_client(client):
    def work(number):
        for i in range(50):
            client.put({f"{number}": np.full(5000, i)})
            assert client.get([f"{number}"])[f"{number}"].numpy()[0] == i
            done.append(number)
    done = []
    threads = [threading.Thread(target=work, args=[n]) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(done) == 200


if __name__ == "__main__":
    run_pytest.main(__file__)
