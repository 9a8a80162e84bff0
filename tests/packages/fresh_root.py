"""Makes roots in which packages are installed. The roots are removed
afterwards."""

import os
import pathlib
import shutil
import subprocess
import tempfile

# The mirror of Debian, or of Ubuntu with universe, which has some of the
# needed packages.
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
    """Returns the reason why no root can be made here, or None."""
    missing = [name for name in NEEDED if shutil.which(name) is None]
    if missing:
        return (f"no {', '.join(missing)} here: run tools/setup --packages")
    if os.geteuid() != 0:
        return "a root of one's own wants root"
    return None


class NoRoot(Exception):
    """An error: no root could be made, most often because debootstrap has no
    network."""


class Root:
    """A root in `folder`. A subclass defines how a shell gets into the
    root."""

    # Shell code that makes mounts. unshare() runs it before a program in the
    # root.
    MOUNT = ""

    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="root."))
        self.folder.chmod(0o755)  # everybody may read the root

    def close(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def tmp(self):
        """Returns the folder that is /tmp in the root."""
        return self.folder / "tmp"

    def added(self, name):
        """Returns the files that match a pattern and that the machine's root
        lacks."""
        return [path for path in self.folder.rglob(name)
                if path.relative_to(self.folder).parts[0] not in
                ("tmp", "proc", "var")]

    def run(self, script, user="root", timeout=300):
        """Runs a shell script in the root. Processes and mounts end with the
        script. Unless the script exits with 0, fails with its output."""
        command = ["unshare", "--mount", "--pid", "--fork", "--kill-child",
                   "sh", "-euc", self.MOUNT + 'mount -t proc proc "$1/proc"\n'
                   'exec chroot "$1" runuser -u "$2" -- sh -euc "$3"', "sh",
                   self.folder, user, script]
        done = subprocess.run(
            command, text=True, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, timeout=timeout,
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8",
                 "DEBIAN_FRONTEND": "noninteractive", "HOME": "/tmp"})
        if done.returncode != 0:
            raise AssertionError(f"exit code {done.returncode} of:\n{script}\n"
                                 f"{done.stdout[-4000:]}")
        return done.stdout


class FreshRoot(Root):
    """A root made by debootstrap, without anything of Penstock. close()
    removes it."""

    def __init__(self, suite):
        super().__init__()
        made = subprocess.run(
            ["debootstrap", "--variant=minbase", f"--components={COMPONENTS}",
             suite, self.folder, ARCHIVE], text=True, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT)
        if made.returncode != 0:
            self.close()
            raise NoRoot(f"debootstrap: {made.stdout[-300:]}")


class LayerOverThisRoot(Root):
    """The root of this machine. An overlay takes all writes.

    Needs no network. /tmp is empty in it.
    """

    MOUNT = """mount -t overlay overlay "$1/root" -o \
  "lowerdir=/,upperdir=$1/files,workdir=$1/work"
mount --rbind /dev "$1/root/dev"
mount --bind "$1/tmp" "$1/root/tmp"
set -- "$1/root" "$2" "$3"
"""

    def __init__(self):
        super().__init__()
        for name in "root", "files", "work", "tmp":
            (self.folder / name).mkdir()
        (self.folder / "tmp").chmod(0o1777)
        try:
            self.run("true")
        except AssertionError as error:
            self.close()
            raise NoRoot(f"no layer over this root: {error}") from error

    def added(self, name):
        files = self.folder / "files"
        return [path for path in files.rglob(name)
                if path.relative_to(files).parts[0] != "var"]
