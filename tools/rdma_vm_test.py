#!/usr/bin/env -S python3 -B
"""Tests rdma-vm up to the point where a machine would start.

Machines themselves are tried by the tests in tests/vm.
"""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

TOOLS = pathlib.Path(__file__).parent
RDMA_VM = TOOLS / "rdma-vm"
PREPARE = TOOLS / "rdma_vm" / "prepare"
FAILED = 125


class RdmaVmTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_tool(self, *command, **kwargs):
        return subprocess.run(command, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True,
                              check=False, **kwargs)

    def refuses(self, options, words):
        run = self.run_tool(RDMA_VM, *options, "--", "true")
        self.assertEqual(run.returncode, FAILED, run.stdout)
        self.assertIn(words, run.stdout)

    def test_the_manual_is_its_head(self):
        run = self.run_tool(RDMA_VM, "-h")
        self.assertEqual(run.returncode, 0)
        self.assertIn("-n HOSTS", run.stdout)
        self.assertNotIn("set -euo", run.stdout)

    def test_without_a_command_it_shows_the_manual(self):
        run = self.run_tool(RDMA_VM)
        self.assertEqual(run.returncode, FAILED)
        self.assertIn("-n HOSTS", run.stdout)

    def test_bad_options_are_refused(self):
        self.refuses(["-n", "0"], "-n 0: wants a number from 1 to 32")
        self.refuses(["-d", "two"], "-d two: wants a number")
        self.refuses(["-t", ""], "wants a number")
        self.refuses(["-c", "08x"], "wants a number")
        self.refuses(["-a", "fast"], "wants tcg, kvm or auto")
        self.refuses(["-u", "no such user"], "no such user")
        self.refuses(["-I", "1", "-a", "kvm"], "-I needs -a tcg")
        self.refuses(["-i", "-n", "2"], "-i wants a single machine")
        self.refuses(["-w", f"{self.folder}/none"], "there is no such folder")
        self.refuses(["-w", __file__], "there is no such folder")
        self.refuses(["-z"], "-n HOSTS")

    def test_a_folder_that_the_guest_does_not_see_is_refused(self):
        run = self.run_tool(RDMA_VM.resolve(), "true", cwd="/dev")
        self.assertEqual(run.returncode, FAILED)
        self.assertIn("which the guest does not see", run.stdout)

    def test_missing_packages_are_named_with_the_remedy(self):
        present = self.folder / "bin"
        present.mkdir()
        for name in ("env", "bash", "dirname", "cat", "sort", "xargs", "echo",
                     "ip", "rdma", "flock"):
            # Puts a stand-in for programs that are missing here, because they
            # are only looked up, never run.
            (present / name).symlink_to(shutil.which(name) or "/bin/true")
        # Runs prepare, which adds /usr/sbin, which has kmod's programs, to
        # PATH.
        run = self.run_tool(PREPARE, env={"PATH": str(present),
                                          "HOME": str(self.folder)})
        self.assertEqual(run.returncode, FAILED)
        self.assertIn("apt-get install", run.stdout)
        for package in "busybox-static", "qemu-system-x86", "cpio":
            self.assertIn(package, run.stdout)
        self.assertNotIn("iproute2", run.stdout)

    def test_a_cache_that_cannot_be_written_is_said(self):
        if not shutil.which("qemu-system-x86_64"):
            self.skipTest("no QEMU")
        run = self.run_tool(PREPARE, env={**os.environ,
                                          "RDMA_VM_CACHE": "/proc/none"})
        self.assertEqual(run.returncode, FAILED)
        self.assertIn("set RDMA_VM_CACHE", run.stdout)


if __name__ == "__main__":
    unittest.main()
