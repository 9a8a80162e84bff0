#!/usr/bin/python3 -B
"""Tests the command `penstock` on a machine with RDMA: Soft-RoCE, in
tools/rdma-vm.

Usage: penstock_vm_test.py WholeTest|BrokenTest. The second one breaks devices,
and so needs a separate machine.
"""

import json
import os
import subprocess
import unittest

PROGRAM = "cli/penstock"
LIMIT = 120  # the guest is slow


def run(*arguments, code=0, env=None):
    done = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True,
                          timeout=LIMIT, env={**os.environ, **(env or {})})
    if done.returncode != code:
        raise AssertionError((done.returncode, done.stdout, done.stderr))
    return done.stdout


def findings(report, subject):
    return [f for f in report["findings"] if f["subject"] == subject]


class WholeTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        assert "RDMA_VM" in os.environ, "wants the devices of tools/rdma-vm"
        cls.server = subprocess.Popen(
            [PROGRAM, "serve", "--listen=10.9.0.1", "--port=0", "--json"],
            stdout=subprocess.PIPE, text=True)
        cls.addClassCleanup(cls.server.stdout.close)
        cls.addClassCleanup(cls.server.wait)
        cls.addClassCleanup(cls.server.kill)
        cls.address = json.loads(cls.server.stdout.readline())["address"]

    def test_the_doctor_names_devices_addresses_and_gids(self):
        report = json.loads(run("doctor", "--json"))
        verbs = [p for p in report["paths"] if p["fabric"] == "verbs"][0]
        self.assertTrue(verbs["usable"])
        self.assertIn("10.9.0.1", verbs["text"])
        self.assertEqual(findings(report, "rxe0")[0]["text"],
                         "software, on n0")
        port = findings(report, "rxe0/1")
        self.assertRegex(port[0]["text"],
                         r"^10\.9\.0\.1: GID 1, RoCE v2, mtu 4096"
                         r"(; of the port's \d+ GIDs, that of this address)?$")
        # The doctor must report the fault of Soft-RoCE's windows; see
        # docs/verbs.md.
        self.assertIn("reads reach beyond a window", port[1]["text"])
        files = findings(report, "device files")[0]
        self.assertIn("rdma_cm, uverbs0", files["text"])

    def test_the_doctor_says_what_carries_a_connection_to_a_target(self):
        report = json.loads(run("doctor", self.address, "--json",
                                "--fabrics=verbs,tcp"))
        self.assertEqual(report["target"]["path"], "verbs")
        self.assertRegex(report["target"]["detail"],
                         r"^rxe[01]/1, GID 1, RoCE v2, mtu 4096, ")

    def test_ping_goes_over_verbs_in_all_sizes(self):
        report = json.loads(run("ping", self.address, "--fabrics=verbs,tcp",
                                "--sizes=8,64KiB,1MiB", "--count=3",
                                "--interval=0.01", "--json"))
        self.assertEqual(report["path"], "verbs")
        self.assertEqual([s["answered"] for s in report["sizes"]], [3, 3, 3])

    def test_a_device_that_is_not_there_is_a_problem_that_lists_those_that_are(
            self):
        report = json.loads(run("doctor", "--json", code=1,
                                env={"PENSTOCK_VERBS_DEVICE": "mlx5_0"}))
        found = findings(report, "address")[0]
        self.assertEqual(found["level"], "problem")
        self.assertIn("rxe0/1", found["text"])

    def test_too_little_locked_memory_is_a_problem_with_its_remedy(self):
        # Drops CAP_IPC_LOCK, which root has.
        done = subprocess.run(
            ["setpriv", "--bounding-set=-ipc_lock", "--inh-caps=-ipc_lock",
             "prlimit", "--memlock=65536:65536", PROGRAM, "doctor", "--json"],
            capture_output=True, text=True, timeout=LIMIT)
        self.assertEqual(done.returncode, 1, done.stderr)
        found = findings(json.loads(done.stdout), "locked memory")[0]
        self.assertEqual(found["level"], "problem")
        self.assertIn("ulimit -l unlimited", found["remedy"])


class BrokenTest(unittest.TestCase):

    def test_a_port_that_is_down_is_a_problem_with_its_remedy(self):
        subprocess.run(["ip", "link", "set", "n1", "down"], check=True)
        self.addCleanup(subprocess.run, ["ip", "link", "set", "n1", "up"])
        report = json.loads(run("doctor", "--json", code=1))
        port = findings(report, "rxe1/1")[0]
        self.assertEqual(port["level"], "problem")
        self.assertIn("ip link set n1 up", port["remedy"])


if __name__ == "__main__":
    unittest.main()
