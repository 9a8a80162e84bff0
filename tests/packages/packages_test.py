#!/usr/bin/python3 -B
"""Installs the packages, builds programs with them, uses the programs, and
removes the packages.

By default the packages are installed in a layer over this machine's root, which
already has the packages that they depend on. With --fresh they are installed in
a root that debootstrap makes. apt then installs exactly the packages that they
depend on.
"""

import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import unittest

import pytest

import fresh_root

# Bazel's PATH lacks the folders in which Debian has debootstrap.
os.environ["PATH"] += ":/usr/sbin:/sbin"

FRESH = "--fresh" in sys.argv
INSTALL = "apt-get install -q -y --no-install-recommends"
COMPILERS = "g++ make cmake pkgconf protobuf-compiler-grpc"

GREET = """
cd {folder}
./greeter_server 127.0.0.1:{port} 2>server.log &
for attempt in $(seq 100); do
  if ./greeter_client 127.0.0.1:{port} 2>client.log; then break; fi
  sleep 0.1
done
kill $!
"""

STANDARDS = """
cd /tmp
check() {
  echo "#include <penstock/$1>" >header.cc
  g++ -std=c++$2 -Wall -Wextra -Werror -fsyntax-only header.cc
}
for header in /usr/include/penstock/*.h; do check "${header##*/}" 14; done
for standard in 17 20 23; do check penstock.h $standard; done
"""

# The reason to skip a test that compiles for minutes. Other tests cover most of
# it: libpenstock.pc has everything that CMake's file has, and headers_test
# compiles the headers.
SLOW = "in packages_full_test"

# Starts a server of the package, and runs each command that needs a server.
COMMANDS = """
cd /tmp
penstock serve --port={port} 2>/dev/null >/dev/null &
for attempt in $(seq 100); do
  if penstock ping 127.0.0.1:{port} --count=1; then break; fi
  sleep 0.1
done
penstock doctor 127.0.0.1:{port} | head -n 20
PENSTOCK_LOG=info penstock run python3 -c '{client}' 127.0.0.1:{port} 2>&1
penstock bench --transports=shm --api=sync --sizes=8 --rpcs=9 --rounds=1
penstock top $! --count=1 || true
kill $!
"""

# The client does not use Penstock.
CLIENT = """
import sys, grpc
channel = grpc.insecure_channel(sys.argv[1])
print(channel.unary_unary("/penstock.Ping/Echo")(b"hello", timeout=20))
"""

TENSORS = """
import numpy
import penstock
with penstock.TensorServer() as server:
    with penstock.TensorClient(f"127.0.0.1:{server.port}") as client:
        client.put({"x": numpy.arange(5000)})
        assert client.get(["x"])["x"].numpy().sum() == 12497500
"""


# The server comes from the package of the command.
TRAINING = """
import subprocess
import numpy
from penstock import ps
with subprocess.Popen(["/usr/libexec/penstock/ps_server", "--workers=1",
                       "--quiet"], text=True, stdout=subprocess.PIPE) as server:
    address = "127.0.0.1:" + server.stdout.readline().split()[1]
    with ps.Worker([address], rank=0, values={"w": numpy.zeros(3, "f4")},
                   model=[ps.Dense("w", "f32", 3, optimizer=ps.Sgd(0.5))],
                   ) as worker:
        worker.pull(0)
        worker.push(0, {"w": numpy.ones(3)})
        print(*worker.pull(1)["w"])
    server.terminate()
"""


def suite():
    return re.search(r"VERSION_CODENAME=(\S+)",
                     pathlib.Path("/etc/os-release").read_text())[1]


def setUpModule():
    global work, packages, root
    why = fresh_root.why_not()
    if why:
        raise unittest.SkipTest(why)
    work = pathlib.Path(tempfile.mkdtemp())
    unittest.addModuleCleanup(shutil.rmtree, work)
    made = subprocess.run(["tools/package", "--built=.", work], text=True,
                          capture_output=True)
    if made.returncode != 0:
        raise AssertionError(made.stderr)
    packages = {pathlib.Path(line).name.split("_")[0]: pathlib.Path(line)
                for line in made.stdout.split()}
    try:
        root = (fresh_root.FreshRoot(suite()) if FRESH else
                fresh_root.LayerOverThisRoot())
    except fresh_root.NoRoot as error:
        raise unittest.SkipTest(str(error)) from error
    unittest.addModuleCleanup(root.close)
    for package in packages.values():
        shutil.copy(package, root.tmp)
    if FRESH:
        root.run(f"apt-get update -q && {INSTALL} {COMPILERS}", timeout=800)
    root.run(f"{INSTALL} /tmp/*.deb", timeout=800)


def free_port():
    """Returns a port that was free just now. The root shares the machine's
    network, and the example does not print the port that it chooses."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def field(package, name):
    return subprocess.run(["dpkg-deb", "-f", packages[package], name],
                          text=True, capture_output=True,
                          check=True).stdout.strip()


def is_newer(left, relation, right):
    return subprocess.run(["dpkg", "--compare-versions", left, relation,
                           right]).returncode == 0


class PackagesTest(unittest.TestCase):

    def greet(self, folder):
        said = root.run(GREET.format(folder=folder, port=free_port()),
                        user="nobody")
        self.assertIn("Hello world", said)
        self.assertRegex(said, r"over shm \(")

    def copy_example(self, name):
        root.run("cp -r /usr/share/doc/libpenstock-dev/examples/greeter "
                 f"/tmp/{name}", user="nobody")

    @unittest.skipUnless(FRESH, "this machine has what a build wants")
    def test_no_internal_header_and_no_bazel_is_there(self):
        root.run("! command -v bazel; ! find /usr -path '*src/core*.h' | "
                 "grep .")

    def test_make_builds_the_greeter_and_it_runs_over_shm(self):
        self.copy_example("by_make")
        root.run("make -C /tmp/by_make", user="nobody")
        self.assertIn("libpenstock.so.0",
                      root.run("ldd /tmp/by_make/greeter_client"))
        self.greet("/tmp/by_make")

    @unittest.skipUnless(FRESH, SLOW)
    def test_cmake_builds_the_greeter_and_it_runs_over_shm(self):
        self.copy_example("by_cmake")
        root.run("cd /tmp/by_cmake && cmake -B build && cmake --build build",
                 user="nobody")
        self.greet("/tmp/by_cmake/build")

    def test_the_static_library_runs_without_the_shared_one(self):
        self.copy_example("static")
        # Installs the linker gold, which is a separate package since Debian 13.
        root.run(f"command -v ld.gold || {INSTALL} binutils-gold")
        # Tests both linkers. gold, the last one, removes unused parts.
        for flags in "", "-fuse-ld=gold -Wl,--gc-sections":
            root.run("cd /tmp/static && rm -f greeter_server greeter_client && "
                     f"make LDFLAGS='{flags}' LDLIBS=\"-l:libpenstock.a "
                     "$(pkg-config --static --libs penstock grpc++ protobuf | "
                     "sed s/-lpenstock//)\"", user="nobody")
        self.assertNotIn("libpenstock",
                         root.run("ldd /tmp/static/greeter_server"))
        self.greet("/tmp/static")

    @unittest.skipUnless(FRESH, SLOW)
    def test_cmake_finds_the_static_library(self):
        self.copy_example("cmake_static")
        root.run("cd /tmp/cmake_static && sed -i -e "
                 "'s/find_package(penstock REQUIRED)/"
                 "find_package(penstock REQUIRED COMPONENTS static)/' "
                 "-e s/penstock::penstock/penstock::penstock_static/ "
                 "CMakeLists.txt && cmake -B build && cmake --build build",
                 user="nobody")
        self.greet("/tmp/cmake_static/build")

    @unittest.skipUnless(FRESH, SLOW)
    def test_each_header_stands_alone_in_each_standard_from_14(self):
        root.run(STANDARDS, user="nobody", timeout=600)

    def test_the_python_package_works(self):
        (root.tmp / "tensors.py").write_text(TENSORS)
        self.assertIn("shm", root.run("python3 /tmp/tensors.py",
                                      user="nobody"))

    def test_the_python_package_trains(self):
        (root.tmp / "training.py").write_text(TRAINING)
        self.assertIn("-0.5 -0.5 -0.5\n", root.run(
            "python3 /tmp/training.py", user="nobody"))

    def test_the_command_finds_what_belongs_to_it(self):
        root.run(f"{INSTALL} python3-grpcio")
        said = root.run(COMMANDS.format(client=CLIENT, port=free_port()),
                        user="nobody")
        self.assertIn("1 of 1 calls answered", said)
        self.assertIn("b'hello'", said)
        self.assertRegex(said, r"connection to .*: shm")
        self.assertRegex(said, r"latency, sync, 8\n")

    def test_shells_complete_the_command(self):
        said = root.run(
            "bash -c '. /usr/share/bash-completion/completions/penstock; "
            "COMP_WORDS=(penstock do) COMP_CWORD=1; _penstock; "
            "echo ${COMPREPLY[@]}'", user="nobody")
        self.assertEqual(said.strip(), "doctor")

    def test_only_the_grpc_that_it_was_built_against_is_accepted(self):
        wanted = re.findall(r"(libgrpc\S+) \((<<|>=) ([^)]+)\)",
                            field("libpenstock0", "Depends"))
        limits = {(name, relation): version
                  for name, relation, version in wanted if "-" in version}
        for name in {name for name, _ in limits}:
            built = root.run(f"dpkg-query -W -f '${{Version}}' {name}")
            with self.subTest(name=name, built=built):
                low, high = limits[name, ">="], limits[name, "<<"]
                base = re.match(r".*-\d+", built)[0]
                for accepted in (built, base + "+b9", base + "+deb12u2"):
                    self.assertTrue(is_newer(accepted, "ge", low), accepted)
                    self.assertTrue(is_newer(accepted, "lt", high), accepted)
                self.assertFalse(is_newer("1.51.1-17", "lt", high))
                self.assertFalse(is_newer("1.51.0-1", "ge", low))

    def test_what_is_removed_leaves_nothing(self):
        names = " ".join(packages)
        root.run(f"apt-get purge -q -y {names}")
        self.assertEqual([], root.added("*penstock*"))
        # Installs the packages again, because other tests may run after this
        # one.
        root.run(f"{INSTALL} /tmp/*.deb")


if __name__ == "__main__":
    # Reports each test of unittest's classes, and the reason of each skip.
    report = os.environ.get("XML_OUTPUT_FILE")
    sys.exit(pytest.main(
        [str(pathlib.Path(__file__).resolve()), "-v", "-rs", "-p",
         "no:cacheprovider"] + ([f"--junitxml={report}"] if report else [])))
