#!/usr/bin/python3 -B
"""Tests that Python workers train on while replicated servers are killed: a
model with a synchronous and an asynchronous table, by TLS, with permissions by
certificate."""

import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import threading
import time

import run_pytest

import numpy as np
import pytest
from penstock import ps
from teams import RATE, dense, sparse

SHAPE = (4, 3)
WORKERS = 2
# The program etcd: from the folder of tools/setup, or that of the machine.
ETCD = shutil.which("etcd", path=os.pathsep.join([
    str(pathlib.Path(os.environ.get("XDG_CACHE_HOME")
                     or pathlib.Path.home() / ".cache",
                     "penstock/etcd/usr/bin")), os.environ["PATH"]]))
RULES = """
administer  dns:*.servers.example
train       dns:*.trainers.example
"""


class Authority:
    """Issues certificates for 127.0.0.1 with a DNS name."""

    def __init__(self, folder):
        self._folder = folder
        self._ca, self._ca_key = folder / "ca", folder / "ca.key"
        self._openssl("req", "-x509", "-nodes", "-subj", "/CN=authority",
                      "-newkey", "rsa:2048", "-keyout", self._ca_key,
                      "-out", self._ca)

    def _openssl(self, *arguments):
        subprocess.run(["openssl", *arguments], check=True,
                       capture_output=True, cwd=self._folder)

    def issue(self, name):
        request, names, certificate, key = (
            self._folder / f"{name}.{end}"
            for end in ("csr", "ext", "crt", "key"))
        names.write_text(f"subjectAltName=DNS:{name},IP:127.0.0.1\n")
        self._openssl("req", "-nodes", "-subj", f"/CN={name}", "-newkey",
                      "rsa:2048", "-keyout", key, "-out", request)
        self._openssl("x509", "-req", "-in", request, "-CA", self._ca,
                      "-CAkey", self._ca_key, "-CAcreateserial", "-extfile",
                      names, "-out", certificate)
        return ps.TlsFiles(self._ca, certificate, key)


def free_ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def flags_of(files):
    return [f"--ca={files.ca}", f"--cert={files.cert}", f"--key={files.key}"]


class Servers:
    """Two processes of ps_server with one backup each, and an etcd."""

    def __init__(self, folder, files):
        self._files = files
        rules = folder / "rules"
        rules.write_text(RULES)
        self._etcd, etcd = self._start_etcd(folder)
        self._target = f"etcd://{etcd}/t"
        self._flags = [
            f"--workers={WORKERS}", f"--etcd={etcd}", "--etcd-prefix=t",
            "--servers=2", "--replicas=1", f"--access={rules}",
            *flags_of(files), "--quiet"]
        self.addresses = [f"127.0.0.1:{port}" for port in free_ports(2)]
        self._processes = [self._start(server) for server in range(2)]

    @staticmethod
    def _start_etcd(folder):
        any_url = "http://127.0.0.1:0"
        process = subprocess.Popen(
            [ETCD, f"--data-dir={folder}/etcd",
             f"--listen-client-urls={any_url}",
             f"--advertise-client-urls={any_url}",
             f"--listen-peer-urls={any_url}",
             f"--initial-advertise-peer-urls={any_url}",
             f"--initial-cluster=default={any_url}", "--heartbeat-interval=10",
             "--election-timeout=100", "--logger=zap", "--log-outputs=stderr"],
            text=True, stderr=subprocess.PIPE)
        for line in process.stderr:
            if "serving client traffic insecurely" in line:
                threading.Thread(target=process.stderr.read).start()
                return process, re.search(r'"address":"([^"]*)"', line)[1]
        raise AssertionError("etcd has ended")

    def _start(self, server):
        process = subprocess.Popen(
            ["ps/ps_server", f"--listen={self.addresses[server]}",
             f"--name=ps-{server}", *self._flags], text=True,
            stdout=subprocess.PIPE)
        assert process.stdout.readline().startswith("port ")
        return process

    def kill(self, server):
        self._processes[server].kill()
        self._processes[server].communicate()

    def restart(self, server):
        self._processes[server] = self._start(server)

    def await_backups(self):
        """Waits until both shards have a backup, by asking with the operators'
        command."""
        limit = time.monotonic() + 60
        while time.monotonic() < limit:
            status = subprocess.run(
                ["cli/penstock", "ps", "status", self._target, "--json",
                 *flags_of(self._files)], text=True, capture_output=True,
                timeout=60, check=False)
            view = json.loads(status.stdout or "{}").get("view", {})
            if [len(shard["backups"]) for shard in view.get("shards", [])] == [
                    1, 1]:
                return
            time.sleep(0.2)
        raise AssertionError(status.stdout + status.stderr)

    def close(self):
        for server in range(2):
            self.kill(server)
        self._etcd.kill()
        self._etcd.wait()


class Team:
    """Workers that train in threads until close() is called."""

    def __init__(self, addresses, files):
        self._addresses, self._files = addresses, files
        self._lock = threading.Lock()
        self._steps = 0
        self._end = None
        self._pool = concurrent.futures.ThreadPoolExecutor(WORKERS)
        self._results = [self._pool.submit(self._train, rank)
                         for rank in range(WORKERS)]

    def _train(self, rank):
        chief = {"model": [dense(staleness=0), sparse(staleness=ps.UNLIMITED)],
                 "values": {"w": np.zeros(SHAPE, "f4")}}
        with ps.Worker(self._addresses, rank=rank, tls=self._files,
                       pull_timeout=60, push_timeout=60,
                       **({} if rank else chief)) as worker:
            step = 0
            while not self._is_last(step):
                worker.pull(step)
                pushed = worker.push(
                    step, {"w": np.ones(SHAPE, "f4")},
                    rows={"emb": ([7], np.ones((1, 8), "f4"))})
                assert pushed.counted
                step += 1
            return worker.pull(step)["w"], step

    def _is_last(self, step):
        with self._lock:
            self._steps = max(self._steps, step)
            return step == self._end

    def await_steps(self, more):
        wanted = self._steps + more
        while self._steps < wanted:
            for result in self._results:
                if result.done():
                    result.result()
            time.sleep(0.01)

    def close(self):
        """Returns the dense values that each worker saw last, and the number
        of steps."""
        with self._lock:
            # Allows a difference of one step between workers of a synchronous
            # table.
            self._end = self._steps + 5
        results = [result.result(timeout=120) for result in self._results]
        self._pool.shutdown()
        return [values for values, _ in results], results[0][1]


@pytest.mark.skipif(ETCD is None, reason="no etcd here: run tools/setup")
def test_a_training_survives_the_loss_of_each_server(tmp_path):
    authority = Authority(tmp_path)
    servers = Servers(tmp_path, authority.issue("ps.servers.example"))
    trainer = authority.issue("w.trainers.example")
    try:
        team = Team(servers.addresses, trainer)
        for lost in range(2):
            team.await_steps(10)
            servers.await_backups()
            servers.kill(lost)
            team.await_steps(10)
            servers.restart(lost)
        servers.await_backups()
        seen, steps = team.close()
        for values in seen:
            assert (values == -steps * RATE).all(), (values, steps)
        # Waits, because an asynchronous push may still be applied after it was
        # acknowledged.
        with ps.Reader(servers.addresses, tls=trainer) as reader:
            rows = (reader.pull(rows={"emb": [7]})["emb"]
                    for _ in range(10000))
            assert any((row == -WORKERS * steps * RATE).all() for row in rows)
    finally:
        servers.close()


if __name__ == "__main__":
    run_pytest.main(__file__)
