"""Two hosts, as network namespaces that a cable connects."""

import ctypes
import os
import subprocess

# The addresses of the two hosts.
ADDRESSES = ["10.93.0.1", "10.93.0.2"]
INTERFACE = "cable"
CLONE_NEWNET = 0x40000000


def can_make():
    """Returns true if this process may make network namespaces."""
    return os.geteuid() == 0 and subprocess.run(
        ["unshare", "--net", "ip", "link"], capture_output=True,
        check=False).returncode == 0


class TwoHosts:
    """The hosts exist until the end of the ``with`` statement."""

    def __enter__(self):
        # Starts a process in each namespace, because a namespace lives as long
        # as a process in it.
        self._keepers = [
            subprocess.Popen(["unshare", "--net", "sh", "-c", "echo; cat"],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            for _ in ADDRESSES]
        for keeper in self._keepers:
            keeper.stdout.readline()
        self._ip(0, "link", "add", INTERFACE, "type", "veth", "peer", "name",
                 INTERFACE, "netns", str(self._keepers[1].pid))
        for host, address in enumerate(ADDRESSES):
            self._ip(host, "address", "add", f"{address}/24", "dev", INTERFACE)
            for interface in ("lo", INTERFACE):
                self._ip(host, "link", "set", interface, "up")
        return self

    def __exit__(self, *_):
        for keeper in self._keepers:
            keeper.stdin.close()
            keeper.wait()
            keeper.stdout.close()

    def _ip(self, host, *arguments):
        subprocess.run(["nsenter", "--net", "-t", str(self._keepers[host].pid),
                        "ip", *arguments], check=True)

    def enter(self, host):
        """Moves the calling process, which has one thread, to a host."""
        path = f"/proc/{self._keepers[host].pid}/ns/net"
        with open(path, "rb") as namespace:
            libc = ctypes.CDLL(None, use_errno=True)
            if libc.setns(namespace.fileno(), CLONE_NEWNET) != 0:
                raise OSError(ctypes.get_errno(), "setns")
