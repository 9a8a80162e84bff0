#!/usr/bin/python3 -B
"""Runs the scripts of deploy/slurm to their end on a cluster of loopback
addresses (fake_slurm.py). The started programs must train."""

import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import unittest

SCRIPTS = pathlib.Path("deploy/slurm").resolve()
FAKE = pathlib.Path("tests/deploy/fake_slurm.py").resolve()
PROGRAMS = [pathlib.Path(name).resolve()
            for name in ("ps", "examples/digits")]


# The environment's path, and etcd as tools/setup unpacks it.
WITH_ETCD = os.pathsep.join(
    [os.environ["PATH"],
     str(pathlib.Path(os.environ.get("XDG_CACHE_HOME")
                      or pathlib.Path.home() / ".cache",
                      "penstock/etcd/usr/bin"))])


# One socket for each range of ports that a test of this process has taken.
TAKEN = []


def free_ports(count):
    """Returns the first of `count` <= 16 successive free ports. No other caller on
    this machine gets them while this process lives.

    The ports are below those that the kernel gives to port 0."""
    for first in range(21000, 32000, 16):
        lock = socket.socket(socket.AF_UNIX)
        try:
            # An abstract name, which the kernel frees with the process.
            lock.bind(f"\0penstock-slurm-test-{first}")
            for port in range(first, first + count):
                socket.create_server(("", port)).close()
            TAKEN.append(lock)
            return first
        except OSError:
            lock.close()
    raise AssertionError("no free ports")


def submit(script, *arguments, nodes, timeout=100, **environment):
    """Runs a script as the first node of a job does. Returns its output."""
    with tempfile.TemporaryDirectory() as folder:
        for name in "srun", "scontrol":
            pathlib.Path(folder, name).symlink_to(FAKE)
        path = os.pathsep.join([folder, *map(str, PROGRAMS), WITH_ETCD])
        # Uses timeout(1), which also ends the script's children, because they
        # hold `stdout`.
        return subprocess.run(
            ["timeout", "--kill-after=5", str(timeout), SCRIPTS / script,
             *arguments], text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
            env=dict(os.environ, PATH=path, SLURM_JOB_ID="4711",
                     SLURM_JOB_NODELIST=f"127.0.0.[1-{nodes}]",
                     **environment))


def make_certificates(folder):
    def openssl(*words):
        subprocess.run(["openssl", *words], check=True, cwd=folder,
                       stderr=subprocess.DEVNULL)
    openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=ca",
            "-keyout", "ca.key", "-out", "ca.crt")
    openssl("req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=training",
            "-keyout", "tls.key", "-out", "tls.csr")
    pathlib.Path(folder, "names").write_text(
        "subjectAltName=IP:127.0.0.1,IP:127.0.0.2")
    openssl("x509", "-req", "-in", "tls.csr", "-CA", "ca.crt", "-CAkey",
            "ca.key", "-CAcreateserial", "-extfile", "names", "-out", "tls.crt")


class ParameterServerTest(unittest.TestCase):

    def train(self, **environment):
        done = submit("parameter_server.sbatch", nodes=2, STEPS="20",
                      WORKERS_PER_NODE="2", FIRST_PORT=str(free_ports(2)),
                      **environment)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertRegex(done.stdout, r"(?m)^result [\d.]+ ")
        # Checks that all workers have pushed all steps to both servers before
        # the servers ended.
        self.assertEqual(
            done.stdout.count("stopped at version 20; pushes counted 80,"), 2,
            done.stdout)
        return done.stdout

    def test_it_trains_over_shared_memory(self):
        self.assertEqual(self.train().count(" shm (ring"), 8 + 8 + 8)

    def test_it_trains_under_tls(self):
        with tempfile.TemporaryDirectory() as folder:
            make_certificates(folder)
            self.train(TLS=folder)

    def test_it_trains_with_an_etcd_of_the_job(self):
        if not shutil.which("etcd", path=WITH_ETCD):
            self.skipTest("no etcd here: run tools/setup")
        self.train(ETCD="job", ETCD_PORT=str(free_ports(2)))

    def test_a_worker_that_fails_fails_the_job(self):
        done = submit("parameter_server.sbatch", nodes=2, WORKER="false",
                      FIRST_PORT=str(free_ports(2)))
        self.assertNotEqual(done.returncode, 0)

    def test_a_server_whose_port_is_taken_fails_the_job(self):
        first = free_ports(2)
        with socket.create_server(("", first + 1)):
            done = submit("parameter_server.sbatch", nodes=2, timeout=30,
                          FIRST_PORT=str(first))
        self.assertIn(f"cannot listen on 0.0.0.0:{first + 1}", done.stdout)
        self.assertNotIn(done.returncode, (0, 124), done.stdout)


if __name__ == "__main__":
    unittest.main()
