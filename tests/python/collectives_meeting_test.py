#!/usr/bin/python3 -B
"""Tests how ranks meet, and how programs of launchers begin and end."""

import os
import signal
import subprocess
import sys
import threading
import time

import run_pytest

import pytest

import collectives_ranks
from collectives_ranks import raises, run
from penstock import collectives
from penstock.collectives import _launch, _rendezvous, _turns


def size_of(group):
    return int(group.allreduce(1))


def test_ranks_meet_at_an_address():
    port = collectives_ranks.free_port()
    assert run(2, size_of, address=f"localhost:{port}", secret="s") == [2, 2]


class FileStore:
    """A store like c10d's, which keeps its values in a folder."""

    def __init__(self, folder):
        self.folder = folder

    def _path(self, key):
        return self.folder / key.replace("/", "-")

    def add(self, key, number):
        number += int(self._path(key).read_text()
                      if self._path(key).exists() else 0)
        self._path(key).write_text(str(number))
        return number

    def set(self, key, value):
        draft = self._path(f"{key}.{os.getpid()}")
        draft.write_text(value)
        draft.rename(self._path(key))

    def wait(self, keys, timeout):
        until = time.monotonic() + timeout.total_seconds()
        while not self._path(keys[0]).exists():
            if time.monotonic() > until:
                raise RuntimeError("wait timeout")
            time.sleep(0.01)

    def get(self, key):
        return self._path(key).read_bytes()


def test_ranks_meet_by_a_store_again_and_again(tmp_path):
    store = FileStore(tmp_path)
    for _ in range(2):
        assert run(2, size_of, store=store) == [2, 2]
    with raises(collectives.DeadlineExceeded, "rank 1 did not come", "timeout"):
        collectives.init(0, 2, store=store, init_timeout=0.2)


def test_a_folder_serves_several_groups_one_after_another(tmp_path):
    for _ in range(2):
        assert run(2, size_of, folder=tmp_path / "new/folder") == [2, 2]


def test_a_folder_is_empty_once_init_returns(tmp_path, monkeypatch):
    leave = _rendezvous.Folder.leave

    def late(folder):
        time.sleep(0.3 * folder._rank)
        leave(folder)

    monkeypatch.setattr(_rendezvous.Folder, "leave", late)

    def names(_group):
        return os.listdir(tmp_path)

    assert run(2, names, folder=tmp_path) == [[], []]


def test_a_disk_without_hard_links_is_named(tmp_path, monkeypatch):
    def link(*_):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", link)
    with raises(collectives.FailedPrecondition, str(tmp_path), "hard links"):
        collectives.init(0, 2, folder=tmp_path)
    assert not os.listdir(tmp_path)


def test_the_draft_of_another_process_is_kept(tmp_path):
    (tmp_path / f".rank-0.{os.getpid()}").touch()
    with raises(collectives.FailedPrecondition, "given twice"):
        collectives.init(0, 2, folder=tmp_path)
    assert len(os.listdir(tmp_path)) == 1


def test_ranks_that_do_not_come_are_named(tmp_path):
    # Expects that a failed meeting leaves the folder usable for another
    # attempt.
    for _ in range(2):
        with raises(collectives.DeadlineExceeded, "1, 2"):
            collectives.init(0, 3, folder=tmp_path, init_timeout=0.2)
    port = collectives_ranks.free_port()
    with raises(collectives.DeadlineExceeded, "1, 2"):
        collectives.init(0, 3, address=f"127.0.0.1:{port}", init_timeout=0.2)
    with raises(collectives.DeadlineExceeded, "rank 0 at"):
        collectives.init(1, 3, address=f"127.0.0.1:{port}", init_timeout=0.2)


def test_a_rank_that_is_given_twice_is_told(tmp_path):
    (tmp_path / "rank-1").write_text("2\nstale")
    with raises(collectives.FailedPrecondition, "rank 1 was given twice"):
        collectives.init(1, 2, folder=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["rank-1"]
    with raises(collectives.InvalidArgument):
        collectives.init(0, 2, folder=tmp_path, init_timeout=1)


@pytest.mark.parametrize("found", [b"\xff\n", b"", b"a photo\n", None])
def test_a_folder_with_other_files_is_refused(found, tmp_path):
    other = tmp_path / "rank-1"
    other.mkdir() if found is None else other.write_bytes(found)
    with raises(collectives.FailedPrecondition, "rank-1", "an empty folder"):
        collectives.init(0, 2, folder=tmp_path, init_timeout=1)
    assert [path.name for path in tmp_path.iterdir()] == ["rank-1"]


def test_ranks_that_expect_other_numbers_are_named(tmp_path):
    other = _turns.Turns().start(
        lambda: collectives.init(1, 3, folder=tmp_path, init_timeout=5))
    with raises(collectives.FailedPrecondition,
                "rank 1 expects 3 ranks, rank 0 expects 2"):
        collectives.init(0, 2, folder=tmp_path)
    with raises(collectives.FailedPrecondition,
                "rank 0 expects 2 ranks, rank 1 expects 3"):
        other.wait()
    assert not os.listdir(tmp_path)


def test_another_secret_is_refused():
    port = collectives_ranks.free_port()
    address = f"127.0.0.1:{port}"
    leader = _turns.Turns().start(
        lambda: collectives.init(0, 2, address=address, init_timeout=2))
    with raises(collectives.Error):
        collectives.init(1, 2, address=address, secret="x", init_timeout=1)
    with raises(collectives.DeadlineExceeded, "did not come: 1"):
        leader.wait()


@pytest.mark.parametrize("secret", [12345, ["sesame"], 1 << 40])
def test_a_secret_of_another_type_is_refused_and_not_shown(secret):
    with raises(TypeError, "give str or bytes") as caught:
        collectives.init(0, 2, address="127.0.0.1:1", secret=secret)
    assert "12345" not in str(caught.value)
    assert "sesame" not in str(caught.value)


WRONG_INIT = {
    "no launcher": ({}, "torchrun, srun or mpirun"),
    "no address": ({"rank": 0, "size": 2}, "give address="),
    "no rank": ({"size": 2}, "give rank= and size="),
    "a rank beyond": ({"rank": 2, "size": 2}, "0 to size - 1"),
    "too many ranks": ({"rank": 0, "size": 257, "folder": "unused"}, "256"),
    "a huge number": ({"rank": 0, "size": 1 << 40, "address": "127.0.0.1:1"},
                      "at most 256 ranks"),
    "a host's name": ({"rank": 0, "size": 2, "host": "localhost",
                       "folder": "unused"}, "numeric address"),
    "two ways": ({"rank": 0, "size": 2, "address": "a:1", "folder": "b"},
                 "one of"),
    "no port": ({"rank": 0, "size": 2, "address": "host"}, "HOST:PORT"),
    "port 0": ({"rank": 0, "size": 2, "address": "host:0"}, "HOST:PORT"),
    "no such host": ({"rank": 0, "size": 2, "address": "no.invalid:1"},
                     "no.invalid"),
    "no time": ({"rank": 0, "size": 1, "timeout": 0}, "timeout is 0"),
    "no number": ({"rank": 0, "size": 1, "init_timeout": float("nan")},
                  "init_timeout"),
    "no such algorithm": ({"rank": 0, "size": 1, "algorithms": "all_reduce=x"},
                          "x"),
    "another host's address": ({"rank": 0, "size": 2, "host": "192.0.2.1",
                                "folder": "unused"}, "192.0.2.1"),
}


@pytest.mark.parametrize("case", WRONG_INIT)
def test_wrong_arguments_of_init(case, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    for name in _launch._LAUNCHERS:
        monkeypatch.delenv(name, raising=False)
    arguments, text = WRONG_INIT[case]
    with raises(collectives.Error, text):
        collectives.init(**arguments)


def test_ctrl_c_ends_the_wait_for_ranks(tmp_path):
    threading.Timer(0.2, os.kill, [os.getpid(), signal.SIGINT]).start()
    with raises(KeyboardInterrupt):
        collectives.init(0, 2, folder=tmp_path, init_timeout=5)
    assert not os.listdir(tmp_path)


# Launchers.


MASTER = {"MASTER_ADDR": "m", "MASTER_PORT": "5"}
NODES = {"SLURM_JOB_ID": "12345", "SLURM_JOB_NODELIST": "n[01-03],m"}
LAUNCHES = [
    ({}, None),
    ({"RANK": "1", "WORLD_SIZE": "4", **MASTER}, ("torchrun", 1, 4, "m:5")),
    ({"RANK": "1", "WORLD_SIZE": "4", **MASTER, "SLURM_PROCID": "0",
      "MASTER_ADDR": "fe80::1"}, ("torchrun", 1, 4, "[fe80::1]:5")),
    ({"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "2"},
     ("Open MPI's mpirun", 0, 2, None)),
    ({"PMI_RANK": "3", "PMI_SIZE": "8", **MASTER}, ("mpiexec", 3, 8, "m:5")),
    ({"PMI_RANK": "3", "PMI_SIZE": "8", "SLURM_PROCID": "0", **NODES},
     ("mpiexec", 3, 8, "n01:22345")),
    ({"SLURM_PROCID": "7", "SLURM_NTASKS": "9", **NODES},
     ("Slurm", 7, 9, "n01:22345")),
    ({"SLURM_PROCID": "7", "SLURM_NTASKS": "9", **NODES, **MASTER},
     ("Slurm", 7, 9, "m:5")),
]


@pytest.mark.parametrize("environ,expected", LAUNCHES)
def test_launchers_are_recognised(environ, expected):
    launch = _launch.find(environ)
    assert (launch if launch is None else launch[:4]) == expected


def test_an_incomplete_environment_is_refused():
    with raises(collectives.InvalidArgument, "WORLD_SIZE is ''"):
        _launch.find({"RANK": "0"})


@pytest.mark.parametrize("nodes,first", [
    ("a", "a"), ("a,b", "a"), ("n[3-4]", "n3"), ("n[03,7]x,m", "n03x"),
    ("node-1", "node-1")])
def test_the_first_node_of_slurm(nodes, first):
    assert _launch.first_node(nodes) == first


def test_the_name_of_this_machine_may_lead_to_a_loopback_address():
    assert _rendezvous.is_hidden("machine", "127.0.1.1")
    assert not _rendezvous.is_hidden("localhost", "127.0.0.1")
    assert not _rendezvous.is_hidden("127.0.0.1", "127.0.0.1")
    assert not _rendezvous.is_hidden("machine", "10.0.0.1")


PROGRAM = """
import numpy as np
from penstock import collectives
group = collectives.init(init_timeout=30)
handle = group.allreduce_async(np.arange(3) + group.rank)
print(group.rank, handle.wait().tolist())
{end}
"""


def launch_two(end):
    """Runs a program as mpirun of Open MPI does. Returns the program's
    output."""
    port = str(collectives_ranks.free_port())
    ranks = [subprocess.Popen(
        [sys.executable, "-B", "-c", PROGRAM.format(end=end)], text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={**os.environ, "OMPI_COMM_WORLD_RANK": str(rank),
             "OMPI_COMM_WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1",
             "MASTER_PORT": port})
        for rank in range(2)]
    ended = [process.communicate(timeout=60) for process in ranks]
    return [(process.returncode, *texts)
            for process, texts in zip(ranks, ended)]


@pytest.mark.parametrize("end", [
    "", "group.close()", "group.barrier_async()",
    "handle = group.recv_async(np.zeros(1), 1 - group.rank)"],
    ids=["open", "closed", "operation", "message"])
def test_programs_of_a_launcher_end_in_any_state(end):
    for rank, (code, out, err) in enumerate(launch_two(end)):
        assert (code, out) == (0, f"{rank} [1, 3, 5]\n"), err
        assert "Traceback" not in err


def test_the_module_needs_no_grpc():
    loaded = subprocess.run(
        [sys.executable, "-B", "-c",
         "import penstock.collectives, sys\n"
         "print('penstock._penstock' in sys.modules)\n"
         "print('grpc' in open('/proc/self/maps').read())"],
        text=True, capture_output=True, check=True)
    assert loaded.stdout == "False\nFalse\n"

if __name__ == "__main__":
    run_pytest.main(__file__)
