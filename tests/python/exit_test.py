#!/usr/bin/python3 -B
"""Tests Ctrl-C, and the end of the interpreter while an operation is in
progress."""

import os
import signal
import subprocess
import sys

import run_pytest

import peer
import pytest

BEGIN = """
import threading, sys
import numpy as np
import penstock
server = penstock.TensorServer()
target = f"127.0.0.1:{server.port}"
client = penstock.TensorClient(target)
client.put({"x": np.zeros(1_000_000)})
# Accepts connections, and never answers.
import select, socket
deaf = socket.create_server(("127.0.0.1", 0))
waiting = penstock.TensorClient(f"127.0.0.1:{deaf.getsockname()[1]}",
                                timeout=None)
"""

# The programs to run. Each ends while an object still exists, or while a call
# is in flight.
ENDS = {
    "objects are alive": "got = client.get(['x'])['x'].numpy()",
    "a cycle has them": "l = [client, server]; l.append(l); del client, server",
    "a thread waits": """
threading.Thread(target=waiting.list, daemon=True).start()
threading.Thread(target=server.wait, daemon=True).start()
select.select([deaf], [], [])  # the call has connected
""",
    "threads send": """
sent = threading.Semaphore(0)
def work():
    while True:
        client.put({"x": np.zeros(1_000_000)})
        sent.release()
for _ in range(4):
    threading.Thread(target=work, daemon=True).start()
for _ in range(20):
    sent.acquire()
""",
    "an array is being sent": """
array = np.zeros(1_000_000)
threading.Thread(target=waiting.put, args=[{"x": array}], daemon=True).start()
del array
select.select([deaf], [], [])  # the call has connected
""",
    "DLPack's capsule is alive": """
capsule = client.get(['x'])['x'].__dlpack__()
sys.capsule = capsule
""",
    "a callback at exit uses them": """
import atexit
atexit.register(lambda: client.get(["x"]))
""",
    "an object is used after the module": """
class Late:
    def __init__(self): self.client = penstock.TensorClient(target)
    def __del__(self): self.client.close()
sys.late = Late()
""",
    "an exception ends it": "client.get(['nothing'])",
}


@pytest.mark.parametrize("end", ENDS)
def test_the_interpreter_ends_in_peace_while(end):
    ended = peer.run(BEGIN + ENDS[end])
    failed = int(end == "an exception ends it")
    assert ended.returncode == failed, ended
    assert ("NotFound" in ended.stderr) == bool(failed), ended
    # Expects no report of a failed call, because no other thread may return to
    # Python to report its call.
    assert "Unavailable" not in ended.stderr, ended


WAITS = {"a call": "waiting.put({'x': np.zeros(1_000_000)})",
         "a server": "server.wait()"}


@pytest.mark.parametrize("what", WAITS)
def test_ctrl_c_ends_the_wait_for(what):
    program = BEGIN + f"""
try:
    print("begins", flush=True)
    {WAITS[what]}
except KeyboardInterrupt:
    client.list()  # all goes on
    print("interrupted")
"""
    process = subprocess.Popen([sys.executable, "-B", "-c", program], text=True,
                               stdout=subprocess.PIPE)
    with process:
        assert process.stdout.readline() == "begins\n"
        # Sends the signal at any time: the process may already wait or not.
        os.kill(process.pid, signal.SIGINT)
        assert process.communicate(timeout=30)[0] == "interrupted\n"
    assert process.returncode == 0


def test_a_handler_that_raises_nothing_lets_the_call_go_on():
    ended = peer.run(BEGIN + """
import signal
seen = []
signal.signal(signal.SIGALRM, lambda *_: seen.append(1))
signal.setitimer(signal.ITIMER_REAL, 0.05)
short = penstock.TensorClient(f"127.0.0.1:{deaf.getsockname()[1]}", timeout=1)
try:
    short.list()
except TimeoutError:
    assert seen
    print("timeout")
""")
    assert ended.stdout == "timeout\n", ended


RETAINED = f"""
import os, signal, subprocess, sys, time, weakref
import numpy as np
import penstock
server = subprocess.Popen([sys.executable, "-B", "-c", {peer.SERVER!r}],
                          text=True, stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE)
client = penstock.TensorClient(f"127.0.0.1:{{int(server.stdout.readline())}}",
                               timeout=0.5)
client.list()
array = np.zeros(10_000_000)
before = sys.getrefcount(array)
os.kill(server.pid, signal.SIGSTOP)
try:
    client.put({{"x": array}})
except TimeoutError:
    print("retained", sys.getrefcount(array) - before)
gone = weakref.ref(array)
del array
server.kill()
"""


@pytest.mark.parametrize("end, said", [
    # Meanwhile, the main thread calls nothing of Penstock.
    ("while gone() is not None: time.sleep(0.01)\n"
     "print('freed')", "retained 1\nfreed\n"),
    ("", "retained 1\n")], ids=["later", "at exit"])
def test_a_thread_of_grpcs_lets_go_of_an_array(end, said):
    # Makes Python end the process if memory is freed without the GIL.
    ended = peer.run(RETAINED + end, env={
        **os.environ, "PENSTOCK_FABRICS": "tcp", "PYTHONMALLOC": "debug"})
    assert (ended.returncode, ended.stdout) == (0, said), ended


def test_grpcio_may_be_in_the_same_process():
    pytest.importorskip("grpc", reason="no grpcio here: apt-get install "
                                       "python3-grpcio")
    ended = peer.run("""
import grpc
import penstock
with penstock.TensorServer() as server:
    target = f"127.0.0.1:{server.port}"
    with grpc.insecure_channel(target) as channel:
        call = channel.unary_unary("/penstock.tensor.v1.TensorExchange/List")
        assert call(b"", timeout=10) == b""
    client = penstock.TensorClient(target)
    client.list()
    (path,) = penstock.describe_paths()
    print(path.path)
""")
    assert ended.stdout == "shm\n", ended


if __name__ == "__main__":
    run_pytest.main(__file__)
