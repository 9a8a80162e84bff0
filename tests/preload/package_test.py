#!/usr/bin/python3 -B
"""Tests unmodified Python programs with any grpcio, over penstock.grpc by the
preloaded library.

The test gives Debian's grpcio the number of another release. To use a grpcio of
PyPI instead, name a Python that has it:

    GRPCIO_PYTHON=/tmp/venv/bin/python
"""

import os
import pathlib
import re
import shutil
import stat
import tempfile
import unittest

import grpc

import child
from child import Child, run

HERE = os.path.dirname(os.path.abspath(__file__))
PYTHON = os.environ.get("GRPCIO_PYTHON")
GIVEN = PYTHON is not None
PYTHON = PYTHON or child.PYTHON
PACKAGE = pathlib.Path(child.FOLDER, "python/penstock")
CASES = ("sizes", "metadata", "stream", "concurrent", "deadline", "cancel",
         "status")

# A server and a client in one process. Prints the modules of both. With
# penstock.grpc, waits until the data plane is in use.
BOTH = """
import concurrent.futures, sys, time
import grpc

class Echo(grpc.GenericRpcHandler):
    def service(self, details):
        return grpc.unary_unary_rpc_method_handler(lambda request, _: request)

def main():
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(2), [Echo()])
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    channel = grpc.insecure_channel(f"127.0.0.1:{port}")
    echo = channel.unary_unary("/a/b")
    end = time.monotonic() + 20
    while time.monotonic() < end:
        assert echo(b"x") == b"x"
        ours = sys.modules.get("penstock.grpc")
        if not ours or "shm" in "".join(ours.describe_paths()):
            break
        time.sleep(0.01)
    print(type(channel).__module__, type(server).__module__, flush=True)
    server.stop(None)

if __name__ == "__main__":
    main()
"""
OURS = "penstock.grpc._fast_channel penstock.grpc._fast_server\n"
STOCK = "grpc._channel grpc._server\n"


def other_release(folder):
    """Makes a package grpc that claims to be of another release."""
    own = os.path.dirname(grpc.__file__)
    os.mkdir(f"{folder}/grpc")
    for name in os.listdir(own):
        if name not in ("__pycache__", "_grpcio_metadata.py"):
            os.symlink(f"{own}/{name}", f"{folder}/grpc/{name}")
    pathlib.Path(folder, "grpc/_grpcio_metadata.py").write_text(
        '__version__ = """1.60.0"""')


class PackageTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.other = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, cls.other)
        if not GIVEN:
            other_release(cls.other)

    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def settings(self, path=None, **settings):
        """Returns the environment of a program. `path` comes first on its
        PYTHONPATH."""
        folders = ([path] if path else []) + [self.other]
        return {"PYTHONPATH": os.pathsep.join(folders), **settings}

    def run_it(self, *command, path=None, **settings):
        return run(*command, **self.settings(path, **settings))

    def write(self, name, text):
        file = pathlib.Path(self.folder, name)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return str(file)

    def serve(self, **settings):
        server = Child(PYTHON, f"{HERE}/echo_server.py", "sync",
                       **self.settings(**settings))
        self.addCleanup(server.__exit__)
        self.assertIn("port", server.first_line)
        return server

    def assert_carried(self, ended):
        self.assertEqual((0, OURS), (ended.code, ended.said), ended)
        self.assertEqual({"to", "from"}, ended.sides_over_shm(), ended)
        self.assertEqual([], ended.reasons_not_to(), ended)

    def assert_left_alone(self, ended, why):
        self.assertEqual((0, STOCK), (ended.code, ended.said), ended)
        self.assertEqual(set(), ended.sides_over_shm(), ended)
        self.assertRegex("".join(ended.reasons_not_to()), why)

    def test_two_programs(self):
        server = self.serve()
        for case in CASES:
            with self.subTest(case=case):
                ended = self.run_it(PYTHON, f"{HERE}/echo_client.py", "sync",
                                    server.address, case)
                self.assertEqual(0, ended.code, ended)
                self.assertEqual([], ended.reasons_not_to(), ended)
        # Accepts some calls over grpcio: those that end before the data plane is
        # ready.
        ended = server.end()
        self.assertEqual({"from"}, ended.sides_over_shm(), ended)

    def test_a_stock_peer(self):
        server = Child(PYTHON, f"{HERE}/echo_server.py", "sync", preload=None,
                       **self.settings())
        self.addCleanup(server.__exit__)
        ended = self.run_it(PYTHON, f"{HERE}/echo_client.py", "sync",
                            server.address, "sizes")
        self.assertEqual(0, ended.code, ended)
        self.assertRegex(ended.log, r" info penstock\[\d+\]: calls to 127.0.0.1 "
                         "go over grpcio: the server has no data plane")

    # Tests ways to start a program.

    def test_options_of_python(self):
        """Tests a Python that ignores the environment variables and the site
        packages."""
        program = self.write("program.py", BOTH)
        packages = re.findall(r"'(.*?)'", run(
            PYTHON, "-c", "import sys; print(sys.path)", preload=None).said)
        text = "import sys; sys.path[:] = %r; exec(open(%r).read())" % (
            [self.other, *packages], program)
        for options in ["-I"], ["-E", "-S"]:
            self.assert_carried(self.run_it(PYTHON, *options, "-c", text))

    def test_a_module_a_script_and_a_shell(self):
        self.write("tool/__init__.py", "")
        self.write("tool/__main__.py", BOTH)
        script = self.write("script", f"#!{PYTHON}\n{BOTH}")
        os.chmod(script, stat.S_IRWXU)
        for command in ([PYTHON, "-m", "tool"], [script],
                        ["/bin/sh", "-c", f"{script}; exit $?"]):
            self.assert_carried(self.run_it(*command, path=self.folder))

    def test_children(self):
        """Tests a launcher that imports grpc itself, and starts workers by
        spawn and by fork."""
        self.write("both.py", BOTH)
        for method in "spawn", "fork":
            program = self.write("launcher.py", (
                "import multiprocessing, both\n"
                "if __name__ == '__main__':\n"
                f"    context = multiprocessing.get_context({method!r})\n"
                "    worker = context.Process(target=both.main)\n"
                "    worker.start()\n    worker.join()\n"))
            self.assert_carried(self.run_it(PYTHON, program))

    def test_a_sitecustomize_of_the_user(self):
        self.write("sitecustomize.py", "import grpc\nprint('mine')")
        ended = self.run_it(PYTHON, self.write("program.py", BOTH),
                            path=self.folder)
        self.assertEqual("mine\n" + OURS, ended.said, ended)

    def test_the_first_import_may_be_of_a_part(self):
        for first in "import grpc._cython.cygrpc", "from grpc import aio":
            ended = self.run_it(PYTHON, "-c", first + BOTH)
            self.assert_carried(ended)

    def test_the_programs_first_import_may_be_of_penstock(self):
        ended = self.run_it(PYTHON, "-c", "import penstock.grpc" + BOTH,
                            path=str(PACKAGE.parent))
        self.assert_carried(ended)
        ended = self.run_it(PYTHON, "-m", "penstock.grpc",
                            self.write("program.py", BOTH), path=str(PACKAGE.parent))
        self.assert_carried(ended)

    def test_functions_that_are_imported_by_name(self):
        ended = self.run_it(PYTHON, "-c", (
            "from grpc import insecure_channel, secure_channel, server\n"
            "from grpc.aio import server as of_aio\n"
            "print(*[f.__module__ for f in (\n"
            "    insecure_channel, secure_channel, server, of_aio)])"))
        self.assertEqual("penstock.grpc penstock.grpc penstock.grpc "
                         "penstock.grpc.aio\n", ended.said, ended)

    # Tests programs that stay with grpcio, and their log.

    def test_the_log_says_which_way_a_channel_goes(self):
        text = ("import asyncio, grpc, logging\n"
                "logging.basicConfig(level='INFO')\n"
                "grpc.secure_channel('localhost:1',"
                " grpc.local_channel_credentials())\n"
                "grpc.insecure_channel('unix:/x').close()\n"
                "grpc.insecure_channel('localhost:1').close()\n"
                "async def main(): grpc.aio.insecure_channel('unix:/y')\n"
                "asyncio.run(main())")
        ended = self.run_it(PYTHON, "-c", text)
        said = re.findall(r"info penstock\[\d+\]: calls to (\S+) go over "
                          r"grpcio: .*?(\w+)\n", ended.log)
        self.assertEqual([("localhost:1", "alone"), ("unix:/x", "port"),
                          ("unix:/y", "port")], said, ended)
        self.assertEqual(3, len(ended.log.splitlines()), ended)
        for level in "warning", "off":
            ended = self.run_it(PYTHON, "-c", text, PENSTOCK_LOG=level)
            self.assertEqual((0, ""), (ended.code, ended.log))

    def test_a_closed_standard_error(self):
        program = self.write("program.py", (
            "import grpc\n"
            "print(grpc.insecure_channel('unix:/x').__module__)"))
        ended = self.run_it("/bin/sh", "-c", f"exec {PYTHON} {program} 2>&-")
        self.assertEqual((0, OURS.split()[0] + "\n"), (ended.code, ended.said))

    def test_policies(self):
        program = self.write("program.py", BOTH)
        ended = self.run_it(PYTHON, program, PENSTOCK_POLICY="off")
        self.assertEqual(STOCK, ended.said)
        self.assertNotIn("penstock", ended.log)
        ended = self.run_it(PYTHON, program, PENSTOCK_POLICY="require")
        self.assertEqual(1, ended.code)
        self.assertRegex(ended.log, "ImportError: .*Penstock is required but not "
                         "used: .*penstock.grpc leaves some calls to grpcio")

    # Tests packages that are not as expected.

    def test_the_programs_own_package_comes_first(self):
        shutil.copytree(PACKAGE, f"{self.folder}/penstock")
        ended = self.run_it(
            PYTHON, "-c", "import grpc, penstock; print(penstock.__file__)",
            path=self.folder)
        self.assertEqual(f"{self.folder}/penstock/__init__.py\n", ended.said)

    @unittest.skipIf(GIVEN, "needs Debian's grpcio")
    def test_the_own_release_with_support_of_forks(self):
        ended = run(PYTHON, "-c", BOTH, GRPC_ENABLE_FORK_SUPPORT="1")
        self.assert_carried(ended)

    @unittest.skipIf(GIVEN, "needs Debian's grpcio")
    def test_the_own_release_whose_module_does_not_load(self):
        stub = shutil.copy(child.STUB, self.folder)
        os.mkdir(f"{self.folder}/python")
        os.symlink(PACKAGE, f"{self.folder}/python/penstock")
        module = os.path.basename(grpc._cython.cygrpc.__file__)
        self.write(f"python/{module}", "none")
        self.assert_carried(run(PYTHON, "-c", BOTH, preload=stub))

    def test_ctrl_c_during_the_import(self):
        shutil.copytree(PACKAGE, f"{self.folder}/penstock")
        for error, begin in {
                "KeyboardInterrupt": "import os; os.kill(os.getpid(), 2)",
                "SystemExit": "raise SystemExit"}.items():
            self.write("penstock/__init__.py", begin + "\nimport time")
            ended = self.run_it(PYTHON, "-c", (
                "try: import grpc\n"
                "except BaseException as error: print(type(error).__name__)"),
                path=self.folder)
            self.assertEqual((0, error + "\n"), (ended.code, ended.said), ended)
            (reason,) = ended.reasons_not_to()
            self.assertIn(f"{error} has ended its import", reason)

    def test_a_folder_of_the_same_name_is_no_package(self):
        os.mkdir(f"{self.folder}/penstock")
        self.assert_carried(self.run_it(
            PYTHON, self.write("program.py", BOTH), path=self.folder))

    def test_another_package_of_the_same_name(self):
        self.write("penstock/__init__.py", "")
        self.assert_left_alone(
            self.run_it(PYTHON, "-c", BOTH, path=self.folder),
            f"the program's package penstock, {self.folder}/penstock, has no")

    def test_a_module_for_another_python(self):
        shutil.copytree(PACKAGE, f"{self.folder}/penstock")
        module = f"{self.folder}/penstock/_rpc.so"
        os.chmod(module, 0o644)
        pathlib.Path(module).write_bytes(b"none")
        self.assert_left_alone(
            self.run_it(PYTHON, "-c", BOTH, path=self.folder),
            "_rpc.so: file too short")

    def test_a_package_that_fails_leaves_grpcio(self):
        shutil.copytree(PACKAGE, f"{self.folder}/penstock")
        pathlib.Path(self.folder, "penstock/grpc/_fast_server.py").unlink()
        ended = self.run_it(PYTHON, "-c", BOTH, path=self.folder)
        self.assertEqual((0, STOCK), (ended.code, ended.said), ended)
        self.assertIn("Penstock is not used", ended.log)

    def test_an_import_of_grpc_that_fails_stays_failed(self):
        own = os.path.dirname(self.run_it(
            PYTHON, "-c", "import grpc; print(grpc.__file__)").said)
        os.mkdir(f"{self.folder}/grpc")
        for name in os.listdir(own):
            if name not in ("__pycache__", "aio"):
                os.symlink(f"{own}/{name}", f"{self.folder}/grpc/{name}")
        self.write("grpc/aio/__init__.py", "raise ValueError('as planned')")
        ended = self.run_it(PYTHON, "-c", (
            "import sys\ntry: import grpc\n"
            "except ValueError as error: print(error)\n"
            "print('penstock.grpc' in sys.modules)"), path=self.folder)
        self.assertEqual("as planned\nFalse\n", ended.said, ended)
        self.assertNotIn("enstock", ended.log)

    def test_a_module_that_no_import_loads(self):
        other = self.run_it(PYTHON, "-c", (
            "from grpc._cython import cygrpc; print(cygrpc.__file__)"
        )).said.strip()
        for first in "", "import grpc\n":
            ended = self.run_it(
                PYTHON, "-c", f"{first}import ctypes; ctypes.PyDLL({other!r})")
            self.assertEqual(0, ended.code, ended)
            (reason,) = ended.reasons_not_to()
            self.assertIn("it is not loaded by an import of grpc", reason)


if __name__ == "__main__":
    unittest.main(verbosity=2)
