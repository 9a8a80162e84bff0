#!/usr/bin/env -S python3 -B
"""Tests distro-test with a stand-in for debootstrap, whose root has a shell
and little else. Real roots are made by distro-test itself."""

import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

TOOLS = pathlib.Path(__file__).parent
CANNOT = 77
PROGRAMS = ("bash", "env", "ls", "sleep", "touch", "tail", "umount")

# A stand-in for debootstrap, which copies the shell's libraries and a few
# programs into a real root.
ROOT = """
for program in %s; do
  for file in $(command -v $program) \\
      $(ldd $(command -v $program) | grep -o '/[^ ]*'); do
    mkdir -p $target$(dirname $file)
    cp -Ln $file $target$file
  done
done
mkdir -p $target/proc $target/sys $target/dev/shm $target/etc/apt $target/tmp
[ -e $target/bin/bash ] || ln -s usr/bin $target/bin
""" % " ".join(PROGRAMS)


class DistroTestTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.folder.chmod(0o755)
        self.roots = self.folder / "cache/penstock/roots"
        self.tree = self.folder / "tree"
        (self.tree / "tools").mkdir(parents=True)
        for name in ("distro-test", "lib.sh"):
            shutil.copy(TOOLS / name, self.tree / "tools")
        self.write(self.tree / "tools/setup", "exit 0")
        subprocess.run(["git", "init", "-q", self.tree], check=True)
        scripts = self.folder / "debootstrap/scripts"
        scripts.mkdir(parents=True)
        (scripts / "trixie").write_text("mirror_style release\n")
        (scripts / "noble").write_text("# http://archive.ubuntu.com\n")
        (self.folder / "bin").mkdir()
        self.debootstrap(ROOT)

    def write(self, path, script):
        path.write_text(f"#!/bin/bash\n{script}\n")
        path.chmod(0o755)

    def debootstrap(self, script):
        self.write(self.folder / "bin/debootstrap",
                   "while [[ $1 == --* ]]; do shift; done; target=$2\n"
                   f"set -e; echo made >>{self.folder}/made\n" + script)

    def command(self, *arguments):
        environment = {
            "PATH": f"{self.folder}/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "XDG_CACHE_HOME": f"{self.folder}/cache",
            "DEBOOTSTRAP_DIR": f"{self.folder}/debootstrap"}
        return dict(args=[self.tree / "tools/distro-test", *arguments],
                    env=environment, stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT, text=True)

    def run_tool(self, *arguments, **kwargs):
        return subprocess.run(**self.command(*arguments), check=False,
                              timeout=60, **kwargs)

    def says(self, code, words, *arguments, **kwargs):
        run = self.run_tool(*arguments, **kwargs)
        self.assertEqual(run.returncode, code, run.stdout)
        self.assertIn(words, run.stdout)

    def need_root(self):
        if os.geteuid() != 0 or subprocess.run(
                ["unshare", "--mount", "--pid", "--fork", "true"],
                stderr=subprocess.DEVNULL, check=False).returncode:
            self.skipTest("wants root, and namespaces of its own")
        if not pathlib.Path("/usr/share/keyrings/debian-archive-keyring.gpg"
                            ).exists():
            self.skipTest("wants debian-archive-keyring")

    def test_usage(self):
        self.says(0, "usage: tools/distro-test", "--help")
        for wrong in ([], ["--fast"], ["trixie", "true"], ["trixie", "--"]):
            self.says(2, "usage: tools/distro-test", *wrong)

    def test_whoever_is_not_root(self):
        kwargs = dict(user=65534) if os.geteuid() == 0 else {}
        self.says(CANNOT, "wants root", "trixie", **kwargs)

    def test_current_grpc_that_the_archive_no_longer_has(self):
        self.need_root()
        (self.folder / "debootstrap/scripts/sid").write_text("")
        (self.folder / "cache/penstock/grpc-1.51.1").mkdir(parents=True)
        for release, name in (("sid-experimental", "current_grpc.sh"),
                              ("sid", "grpc_cxx17.sh")):
            script = self.tree / "tools" / name
            self.write(script, "echo the archive has moved on; exit 77")
            self.says(CANNOT, "the archive has moved on", release)
            self.write(script, "exit 1")
            self.says(1, "the packages cannot be installed", release)

    def test_a_changing_release_gets_its_own_archives_and_headers(self):
        self.need_root()
        for suite in ("sid", "forky"):
            (self.folder / "debootstrap/scripts" / suite).write_text("")
        for name in ("current_grpc.sh", "grpc_cxx17.sh"):
            self.write(self.tree / "tools" / name, "echo ran")
        self.says(CANNOT, "wants gRPC's headers in", "sid")
        (self.folder / "cache/penstock/grpc-1.51.1/src").mkdir(parents=True)
        for release, suites in (("sid", ["sid"]), ("forky", ["forky"]),
                                ("sid-experimental", ["sid", "experimental"])):
            self.says(0, "ran", release)
            root = self.roots / release
            self.assertEqual(
                [f"deb http://deb.debian.org/debian {suite} main"
                 for suite in suites],
                (root / "etc/apt/sources.list").read_text().splitlines())
            self.assertEqual(
                release in ("sid", "forky"),
                (root / "root/.cache/penstock/grpc-1.51.1/src").is_dir())

    def test_no_debootstrap(self):
        self.need_root()
        (self.folder / "bin/debootstrap").unlink()
        command = self.command("trixie")
        command["env"]["PATH"] = f"{self.folder}/bin:/usr/bin:/bin"  # no sbin
        run = subprocess.run(**command, check=False)
        self.assertEqual(run.returncode, CANNOT)
        self.assertIn("no debootstrap here: run tools/setup --packages",
                      run.stdout)

    def test_an_unknown_release(self):
        self.need_root()
        self.says(1, "no release potato is known", "potato")
        self.says(1, "no release ../scripts/trixie", "../scripts/trixie")

    def test_no_keyring_of_ubuntu(self):
        self.need_root()
        if pathlib.Path("/usr/share/keyrings/ubuntu-archive-keyring.gpg"
                        ).exists():
            self.skipTest("there is one")
        self.says(CANNOT, "install ubuntu-archive-keyring", "noble")

    def test_an_archive_that_is_not_reached(self):
        self.need_root()
        self.debootstrap("echo 'E: Failed getting release file http://x'; "
                         "mkdir $target; exit 1")
        self.says(CANNOT, "no way to http://deb.debian.org/debian", "trixie")
        # Expects that an incomplete root does not count as a root.
        self.debootstrap(ROOT)
        self.says(0, "making", "trixie", "--", "bash", "-c", ":")

    def test_a_full_disk(self):
        self.need_root()
        self.debootstrap("echo 'tar: write: No space left on device'; exit 1")
        self.says(1, "the disk is full", "trixie")

    def test_another_failure_shows_the_log(self):
        self.need_root()
        self.debootstrap("echo 'E: Sorry, no dice'; exit 1")
        self.says(1, "no dice", "trixie")

    def test_the_root_is_made_once_and_the_tree_copied_each_time(self):
        self.need_root()
        (self.tree / "one").write_text("")
        self.says(0, "one", "trixie", "--", "ls")
        (self.tree / "one").rename(self.tree / "two")
        run = self.run_tool("trixie", "--", "ls")
        self.assertEqual(run.stdout.split()[-2:], ["tools", "two"])
        self.assertNotIn("one", run.stdout.split())
        self.assertEqual((self.folder / "made").read_text(), "made\n")

    def test_this_machines_authorities_are_trusted_there(self):
        self.need_root()
        self.debootstrap(ROOT + r"""
            mkdir -p $target/usr/sbin
            printf '#!/bin/bash\ntouch /updated' >$target/usr/sbin/update-ca-certificates
            chmod +x $target/usr/sbin/update-ca-certificates""")
        self.says(0, "", "trixie", "--", "ls")
        self.assertTrue((self.roots / "trixie/updated").exists())
        here = pathlib.Path("/usr/local/share/ca-certificates")
        there = self.roots / "trixie" / here.relative_to("/")
        self.assertEqual({path.name for path in there.iterdir()},
                         {path.name for path in here.glob("*")})

    def test_exit_codes_are_the_commands(self):
        self.need_root()
        self.says(3, "", "trixie", "--", "bash", "-c", "exit 3")
        self.write(self.tree / "tools/setup", "exit 1")
        self.says(1, "could not be made ready", "trixie", "--", "ls")

    def test_packages_come_back(self):
        self.need_root()
        (self.tree / "dist").mkdir()
        (self.tree / "dist/kept").write_text("")
        self.says(0, "packages: dist/trixie/x_1~deb13_amd64.deb", "trixie", "--",
                  "touch", "dist/x_1~deb13_amd64.deb")
        self.assertTrue((self.tree / "dist/trixie/x_1~deb13_amd64.deb").exists())

    def test_nothing_is_left_when_it_is_killed(self):
        self.need_root()
        # Sleeps for a long time. This number of seconds is in no other command
        # line, so it shows which processes are left.
        seconds = str(1000000 + os.getpid())
        child = subprocess.Popen(**self.command(
            "trixie", "--", "bash", "-c",
            f"ls /proc; echo ready; sleep {seconds}; :"))
        self.addCleanup(child.stdout.close)
        for line in child.stdout:
            if line == "ready\n":
                break
        self.says(1, "another distro-test trixie is running", "trixie")
        self.assertNotIn(str(self.roots),
                         pathlib.Path("/proc/self/mounts").read_text())
        self.assertTrue(self.processes_with(seconds))
        child.send_signal(signal.SIGKILL)
        child.wait(10)
        deadline = time.monotonic() + 10
        while self.processes_with(seconds) and time.monotonic() < deadline:
            time.sleep(0.01)
        self.assertEqual(self.processes_with(seconds), [])
        self.says(0, "", "trixie", "--", "ls")

    @staticmethod
    def processes_with(argument):
        found = []
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if argument in (process / "cmdline").read_text():
                    found.append(process.name)
            except OSError:
                pass  # the process has ended
        return found


if __name__ == "__main__":
    unittest.main(verbosity=2)
