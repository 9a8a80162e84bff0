#!/usr/bin/python3 -B
"""Tests Ctrl-C, forks, and the end of the interpreter while an operation of a
worker or a reader is in progress."""

import os
import subprocess
import sys

import run_pytest

import peer
import pytest

BEGIN = """
import os, sys, threading
import numpy as np
import penstock
from penstock import ps
address = sys.argv[1]
def join():
    worker = ps.Worker([address], rank=0, values={"w": np.zeros(1000, "f4")},
                       model=[ps.Dense("w", "f32", 1000,
                                       optimizer=ps.Sgd(1.0))])
    worker.pull(0)
    return worker
def wait_for_the_other(worker):
    worker.push(0, {"w": np.ones(1000)})
    return worker.pull_async(1)
"""

# The programs to run. Each ends while an object still exists, or while a call
# is in flight. The training has two workers, but only one comes.
ENDS = {
    "objects are alive": """
worker = join()
reader = ps.Reader([address])
array = reader.pull()["w"]
""",
    "a cycle has them": "l = [join()]; l.append(l)",
    "a future waits": "future = wait_for_the_other(join())",
    "a thread waits": """
worker = join()
future = wait_for_the_other(worker)
threading.Thread(target=worker.pull, args=[1], daemon=True).start()
threading.Thread(target=future.result, daemon=True).start()
""",
    "an object is used after the module": """
class Late:
    def __init__(self): self.worker = join()
    def __del__(self): self.worker.close()
sys.late = Late()
""",
    "a callback at exit uses them": """
import atexit
atexit.register(join().pull, 0)
""",
}


def run(program, address, **options):
    return subprocess.run([sys.executable, "-B", "-c", BEGIN + program,
                           address], text=True, capture_output=True, timeout=60,
                          check=False, **options)


@pytest.fixture(name="address")
def make_address():
    with peer.ps_server("--assemble=0.1", workers=1) as address:
        yield address


@pytest.fixture(name="half")
def make_half():
    """Runs a server whose training lacks a worker."""
    with peer.ps_server(workers=2) as address:
        yield address


@pytest.mark.parametrize("end", ENDS)
def test_the_interpreter_ends_in_peace_while(end, half):
    ended = run(ENDS[end], half)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", ""), ended


WAITS = {
    "a pull": """
    pending = worker._worker.start_pull(1, None, None, None, 0)
    begin()
    pending.wait()
""",
    "a future": "begin(); future.result()",
    "a chief": "begin(); ps.Worker([deaf], rank=1)",
    "a reader's servers": "begin(); ps.Reader([deaf])",
}

# A program that is interrupted in a wait. The thread gets Python's lock, and so
# sends its signals, when the main thread next releases the lock: in the wait,
# because the switch interval is too long for a switch earlier. A wait for a
# Python future may miss a signal that comes as the wait begins, so the thread
# sends more signals.
INTERRUPTED = """
import signal, socket
listens = socket.create_server(("127.0.0.1", 0))  # and never answers
deaf = f"127.0.0.1:{listens.getsockname()[1]}"
begins, ended = threading.Event(), threading.Event()
def send_signals():
    begins.wait()
    os.kill(os.getpid(), signal.SIGINT)
    while not ended.wait(timeout=0.2):
        os.kill(os.getpid(), signal.SIGINT)
def interrupt(*_):
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    raise KeyboardInterrupt
def begin():
    sys.setswitchinterval(1000)
    begins.set()
signal.signal(signal.SIGINT, interrupt)
worker = join()
future = wait_for_the_other(worker)
threading.Thread(target=send_signals, daemon=True).start()
try:
    WAITS
except KeyboardInterrupt:
    ended.set()
    sys.setswitchinterval(0.005)
    other = ps.Worker([address], rank=1)
    other.push(0, {"w": np.ones(1000)})
    print(future.result().clock)  # all goes on
"""


@pytest.mark.parametrize("what", WAITS)
def test_ctrl_c_ends_the_wait_for(what, half):
    ended = run(INTERRUPTED.replace("WAITS", WAITS[what].strip()), half)
    assert (ended.returncode, ended.stdout) == (0, "1\n"), ended


def test_a_child_of_a_fork_is_told_so_and_harms_nothing(address):
    ended = run("""
worker = join()
reader = ps.Reader([address])
if os.fork() == 0:
    for client in (worker, reader):
        for call in (lambda: client.pull(1), client.checkpoint):
            try:
                call()
            except penstock.FailedPrecondition as error:
                assert "forked" in str(error), error
            else:
                raise AssertionError(call)
        client.close()
    print("told", flush=True)
    sys.exit()
assert os.wait()[1] == 0
worker.push(0, {"w": np.ones(1000)})
print(worker.pull(1)["w"][0])
""", address)
    assert (ended.returncode, ended.stdout) == (0, "told\n-1.0\n"), ended


def test_an_array_that_was_pushed_is_let_go_of(address):
    ended = run("""
import weakref
worker = join()
for step in range(1, 20):
    array = np.ones(1000, "f4")
    gone = weakref.ref(array)
    worker.push(step - 1, {"w": array})
    worker.pull(step)
    del array
    while gone() is not None:  # by a call soon, see README.md
        worker.pull(step)
print("freed")
""", address, env={**os.environ, "PYTHONMALLOC": "debug"})
    assert (ended.returncode, ended.stdout) == (0, "freed\n"), ended


def test_nobody_waits_for_a_worker_whose_process_has_ended(half):
    with_other = """
worker = join()
other = ps.Worker([address], rank=1)
other.pull(0)
"""
    ended = run(with_other, half)
    assert ended.returncode == 0, ended
    ended = run("print(wait_for_the_other(join()).result(timeout=20).clock)",
                half)
    assert (ended.returncode, ended.stdout) == (0, "1\n"), ended


if __name__ == "__main__":
    run_pytest.main(__file__)
