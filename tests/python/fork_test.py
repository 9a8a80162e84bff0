#!/usr/bin/python3 -B
"""Tests children of forks, as multiprocessing makes them. The parent's objects
and calls must be unchanged, and children must wait for none of the parent's
threads."""

import run_pytest

import peer
import pytest

BEGIN = """
import os, signal, sys, threading
import numpy as np
import penstock
target = sys.argv[1]
SIZE = 1_000_000
client = penstock.TensorClient(target)

def filled(value):
    tensor = penstock.Tensor.empty((SIZE,), "uint8")
    tensor.numpy(writable=True)[:] = value
    return tensor

def shows(tensor):
    return sorted(set(np.asarray(tensor).tolist()))

def in_child(function):
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        try:
            function()
        except BaseException:
            sys.excepthook(*sys.exc_info())
            os._exit(1)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
"""


@pytest.fixture(name="target", scope="module")
def make_target():
    with peer.server() as target:
        yield target


def check(program, target):
    ended = peer.run(BEGIN + program + "\nprint('end')", arguments=[target])
    assert (ended.returncode, ended.stdout) == (0, "end\n"), ended


def test_a_child_writes_to_a_copy(target):
    check("""
tensor = filled(1)
def child():
    memory = tensor.numpy(writable=True)
    memory[:] = 66
    assert shows(tensor) == [66]
    # From the first write on, the memory belongs to the child.
    assert np.shares_memory(tensor.numpy(writable=True), memory)
in_child(child)
assert shows(tensor) == [1]
client.put({"x": tensor})
assert shows(client.get(["x"])["x"]) == [1]
assert [path.path for path in penstock.describe_paths()] == ["shm"]
""", target)


def test_an_array_from_before_the_fork_is_the_childs_own(target):
    check("""
tensor = filled(1)
memory = tensor.numpy(writable=True)
client.put({"x": tensor})  # the server has the memory itself, over shm
def child():
    memory[:] = 66
    assert shows(tensor) == [66]
in_child(child)
assert shows(memory) == [1]
assert shows(client.get(["x"])["x"]) == [1]
""", target)


def test_a_server_of_the_parents_keeps_what_it_stores(target):
    check("""
with penstock.TensorServer() as server:
    with penstock.TensorClient(f"127.0.0.1:{server.port}") as near:
        near.put({"x": filled(1)})
        got = near.get(["x"])["x"]
        def child():
            view = penstock.Tensor(got)
            view.numpy(writable=True)[:] = 66
            assert shows(got) == [1]
        in_child(child)
        assert shows(near.get(["x"])["x"]) == [1]
""", target)


def test_a_child_lets_go_of_what_was_received_without_its_parent_knowing(target):
    check("""
client.put({"x": filled(1)})
got = client.get(["x"])["x"]
def child():
    global got
    assert shows(got) == [1]
    copy = got.copy()
    del got
    assert shows(copy) == [1]
in_child(child)
client.put({"x": filled(2)})
for value in range(3, 20):  # else in memory that the server has again
    client.put({"y": filled(value)})
assert shows(got) == [1]
""", target)


def test_a_child_is_told_that_clients_and_servers_are_its_parents(target):
    check("""
server = penstock.TensorServer()
client.list()
child = os.fork()
if child == 0:
    signal.alarm(20)
    for call in (client.list, server.stop, server.wait,
                 lambda: client.put({"x": np.zeros(1)})):
        try:
            call()
        except penstock.FailedPrecondition as error:
            assert "forked" in str(error), error
        else:
            raise AssertionError(call)
    assert penstock.describe_paths() == []
    client.close()
    with server:
        pass
    del server, client
    sys.exit(7)  # and not by the os._exit() of multiprocessing's children
assert os.waitpid(child, 0)[1] == 7 << 8
client.put({"x": filled(1)})
with penstock.TensorClient(f"127.0.0.1:{server.port}") as near:
    assert near.list() == []
""", target)


def test_a_child_makes_no_clients_and_servers_beside_its_parents(target):
    check("""
from penstock import ps
# While these clients wait for answers, gRPC distributes the events of its
# epoll set.
stop = threading.Event()
def work():
    with penstock.TensorClient(target) as own:
        while not stop.is_set():
            own.list()
thread = threading.Thread(target=work, daemon=True)
thread.start()
with penstock.TensorServer() as server:
    nowhere = f"127.0.0.1:{server.port}"
def child():
    for make in (lambda: penstock.TensorClient(nowhere).list(),
                 lambda: penstock.TensorClient(target).list(),
                 penstock.TensorServer,
                 lambda: ps.Reader([nowhere], timeout=1),
                 lambda: ps.Worker([nowhere], rank=0, timeout=1)):
        try:
            make()
        except penstock.FailedPrecondition as error:
            assert "when this one was forked" in str(error), error
        else:
            raise AssertionError(make)
in_child(lambda: in_child(child))  # and neither does a child's child
in_child(child)
stop.set()
thread.join()
""", target)


def test_a_child_makes_clients_and_servers_after_its_parents_were_closed(target):
    check("""
client.put({"x": filled(1)})
client.close()
def child():
    with penstock.TensorServer() as server:
        with penstock.TensorClient(f"127.0.0.1:{server.port}") as own:
            own.put({"x": filled(2)})
            assert shows(own.get(["x"])["x"]) == [2]
in_child(child)
with penstock.TensorClient(target) as own:
    assert shows(own.get(["x"])["x"]) == [1]
""", target)


# Tests a child of a busy parent, in which threads of gRPC and of Python hold
# each lock now and then.
def test_a_child_waits_for_no_lock_of_its_parents(target):
    check("""
stop = threading.Event()
def work(name):
    with penstock.TensorClient(target) as own:
        while not stop.is_set():
            # A thread of gRPC drops the tensor, in RunLater().
            own.put({name: np.zeros(100_000)})
            penstock.Tensor.empty((SIZE,), "uint8")
            penstock.describe_paths()
threads = [threading.Thread(target=work, args=[str(i)], daemon=True)
           for i in range(3)]
for thread in threads:
    thread.start()
tensor = filled(1)
def child():
    global tensor
    copy = tensor.copy()
    array = penstock.Tensor(np.zeros(10))
    del array, tensor
    assert shows(copy) == [1]
    penstock.describe_paths()
for _ in range(60):
    in_child(child)
stop.set()
for thread in threads:
    thread.join()
""", target)


def test_multiprocessing_by_fork_works_on_inherited_tensors(target):
    check("""
import multiprocessing
tensor = filled(3)
def double(begin):
    part = tensor.numpy()[begin:begin + 10]
    return int(part.sum()), int((tensor.numpy(writable=True)[:10] * 2).sum())
with multiprocessing.get_context("fork").Pool(2) as pool:
    assert pool.map(double, [0, 10, 20]) == [(30, 60)] * 3
assert shows(tensor) == [3]
""", target)


if __name__ == "__main__":
    run_pytest.main(__file__)
