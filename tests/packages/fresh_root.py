"""A fresh root of the distribution that this runs on, with nothing of ours."""

import os
import pathlib
import shutil
import subprocess
import tempfile

# Debian's archive, or Ubuntu's, where some of what we need is in universe.
if "\nID=ubuntu\n" in pathlib.Path("/etc/os-release").read_text():
    ARCHIVE = os.environ.get("PENSTOCK_UBUNTU_MIRROR",
                             "http://archive.ubuntu.com") + "/ubuntu"
    COMPONENTS = "main,universe"
else:
    ARCHIVE = os.environ.get("PENSTOCK_DEBIAN_MIRROR",
                             "http://deb.debian.org") + "/debian"
    COMPONENTS = "main"
NEEDED = ("debootstrap", "dpkg-buildpackage", "dh", "lintian", "unshare")


def why_not():
    """Why no root can be made here; None: one can."""
    missing = [name for name in NEEDED if shutil.which(name) is None]
    if missing:
        return (f"no {', '.join(missing)} here: run tools/setup --packages")
    if os.geteuid() != 0:
        return "debootstrap wants root"
    return None


class NoRoot(Exception):
    """debootstrap could not make one: most often, there is no network."""


class FreshRoot:
    """Made by debootstrap; removed by close()."""

    def __init__(self, suite):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="root."))
        self.folder.chmod(0o755)  # it is everybody's root
        made = subprocess.run(
            ["debootstrap", "--variant=minbase", f"--components={COMPONENTS}",
             suite, self.folder, ARCHIVE], text=True, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT)
        if made.returncode != 0:
            self.close()
            raise NoRoot(f"debootstrap: {made.stdout[-300:]}")

    def close(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    def run(self, script, user="root", timeout=300):
        """Runs a shell script in the root, with processes and mounts that end
        with it. Fails with what it printed, unless it exits with 0."""
        command = ["unshare", "--mount", "--pid", "--fork", "--kill-child",
                   f"--mount-proc={self.folder}/proc", "chroot", self.folder,
                   "runuser", "-u", user, "--", "sh", "-euc", script]
        done = subprocess.run(
            command, text=True, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, timeout=timeout,
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8",
                 "DEBIAN_FRONTEND": "noninteractive", "HOME": "/tmp"})
        if done.returncode != 0:
            raise AssertionError(f"exit code {done.returncode} of:\n{script}\n"
                                 f"{done.stdout[-4000:]}")
        return done.stdout
