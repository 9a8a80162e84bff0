"""Lists the files of programs, for guests of tools/rdma-vm with a stable clock.

While a guest fetches a file or a symbolic link from the host, it idles, and its
instruction clock jumps from timer to timer. Therefore such files are copied
beforehand.
"""

import glob
import os
import pathlib
import re
import shutil
import subprocess

SYSTEM_FILES = ("/etc/ld.so.cache", "/etc/hosts", "/etc/host.conf",
                "/etc/nsswitch.conf", "/etc/gai.conf", "/etc/passwd",
                "/etc/resolv.conf", "/etc/localtime",
                "/etc/ssl/openssl.cnf", "/usr/lib/ssl/openssl.cnf",
                "/usr/share/grpc/roots.pem")


def libraries_of(program):
    result = subprocess.run(["ldd", program], stdout=subprocess.PIPE,
                            stderr=subprocess.DEVNULL, text=True, check=False)
    return re.findall(r"/\S+", result.stdout)


def links_to(path):
    """Returns the symbolic links that lead from a path to its file."""
    path, links = pathlib.Path(path), []
    for place in (*reversed(path.parents), path):
        if place.is_symlink():
            links.append(str(place))
            target = place.parent / os.readlink(place)
            rest = path.relative_to(place)
            return links + links_to(os.path.normpath(target / rest))
    return links


def files_of(programs, tools=()):
    """The list of all commands."""
    wanted = {*glob.glob("/etc/libibverbs.d/*"), *SYSTEM_FILES}
    wanted.update(filter(None, map(shutil.which, tools)))
    for pattern in ("libibverbs/*", "libibverbs.so*", "librdmacm.so*"):
        wanted.update(glob.glob(f"/usr/lib/*/{pattern}"))
    for path in [*wanted, *programs]:
        wanted.update(libraries_of(path))
    found = [path for path in wanted if os.path.isfile(path)]
    return sorted({*map(os.path.realpath, found),
                   *(link for path in found for link in links_to(path))})
