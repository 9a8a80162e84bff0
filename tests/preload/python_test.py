#!/usr/bin/python3 -B
"""Tests stock programs in Python, over shared memory by the preloaded library.

Run it with Debian's python3, whose python3-grpcio this needs.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sysconfig
import tempfile
import unittest

import grpc

from child import PYTHON, STUB, Child, run

HERE = os.path.dirname(os.path.abspath(__file__))
SERVER = f"{HERE}/echo_server.py"
CLIENT = f"{HERE}/echo_client.py"
CASES = ("sizes", "large", "metadata", "stream", "concurrent", "deadline",
         "cancel", "status")
REQUIRE = {"PENSTOCK_POLICY": "require", "PENSTOCK_FABRICS": "shm"}
PACKAGE = os.path.dirname(grpc.__file__)


def make_certificate(folder):
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
         "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost",
         "-keyout", f"{folder}/key.pem", "-out", f"{folder}/certificate.pem"],
        check=True, capture_output=True)


class PythonTest(unittest.TestCase):

    def serve(self, *arguments, **settings):
        server = Child(PYTHON, SERVER, *arguments, **settings)
        self.addCleanup(server.__exit__)
        self.assertIn("port", server.first_line)
        return server

    def call(self, *arguments, **settings):
        ended = run(PYTHON, CLIENT, *arguments, **settings)
        self.assertEqual(0, ended.code, ended)
        return ended

    def folder(self):
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder)
        return folder

    def test_each_kind_of_call_goes_over_shared_memory(self):
        for server_api in "sync", "aio":
            server = self.serve(server_api, **REQUIRE)
            for api in "sync", "aio":
                for case in CASES:
                    if case == "metadata" and server_api != api:
                        continue  # only the sync one has trailing metadata
                    with self.subTest(server=server_api, client=api, case=case):
                        ended = self.call(api, server.address, case, **REQUIRE)
                        self.assertEqual({"to"}, ended.sides_over_shm(), ended)
            self.assertEqual({"from"}, server.end().sides_over_shm())

    def test_each_kind_of_call_with_a_stock_peer(self):
        for with_it, without in (STUB, None), (None, STUB):
            for api in "sync", "aio":
                server = self.serve(api, preload=with_it)
                for case in CASES:
                    with self.subTest(server=with_it, api=api, case=case):
                        ended = self.call(api, server.address, case,
                                          preload=without)
                        self.assertEqual(set(), ended.sides_over_shm())
                self.assertEqual(set(), server.end().sides_over_shm())

    def test_tls_and_call_credentials(self):
        tls = self.folder()
        make_certificate(tls)
        for api in "sync", "aio":
            server = self.serve(api, tls, **REQUIRE)
            for case in "sizes", "stream", "concurrent":
                with self.subTest(api=api, case=case):
                    ended = self.call(api, server.address, case, tls, **REQUIRE)
                    self.assertEqual({"to"}, ended.sides_over_shm(), ended)
            # Expects that a client without TLS fails.
            stranger = run(PYTHON, CLIENT, api, server.address, "sizes")
            self.assertNotEqual(0, stranger.code)

    def test_a_program_that_is_started_by_a_preloaded_one(self):
        server = self.serve("sync")
        ended = run("/bin/sh", "-c", f"{PYTHON} {CLIENT} sync {server.address} "
                    "sizes; exit $?")
        self.assertEqual(0, ended.code, ended)
        self.assertEqual({"to"}, ended.sides_over_shm())

    def test_the_child_of_a_fork_uses_it_where_its_parent_did_not(self):
        server = self.serve("sync")
        script = (
            "import os, sys; pid = os.fork()\n"
            "if pid: sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))\n"
            f"sys.path.insert(0, {HERE!r}); import echo_client\n"
            f"echo_client.main('sync', {server.address!r}, 'sizes')")
        ended = run(PYTHON, "-c", script)
        self.assertEqual(0, ended.code, ended)
        self.assertEqual({"to"}, ended.sides_over_shm())

    def test_the_child_of_a_fork_does_not_use_its_parents_connection(self):
        """Tests that a child does not use the parent's connection. Otherwise
        both processes would write into one ring, with the same sequence
        numbers."""
        server = self.serve("sync")
        script = (
            "import grpc, os\n"
            f"channel = grpc.insecure_channel({server.address!r})\n"
            "call = channel.unary_unary('/echo/Unary')\n"
            "def works(size):\n"
            "    try: return call(b'x' * size, timeout=5) == b'x' * size\n"
            "    except grpc.RpcError as error: return error.details()\n"
            "assert works(8) is True\n"
            "pid = os.fork()\n"
            "if pid == 0:\n"
            "    print([works(size) for size in (8, 100000)], flush=True)\n"
            "    os._exit(0)\n"
            "os.waitpid(pid, 0)\n"
            "print([works(size) for size in (9, 100001)])")
        ended = run(PYTHON, "-c", script)
        self.assertEqual(0, ended.code, ended)
        child, parent = ended.said.splitlines()
        self.assertEqual(2, child.count("that this one was forked from"), ended)
        self.assertEqual("[True, True]", parent, ended)

    def test_a_unix_target(self):
        folder = self.folder()
        script = (
            "import concurrent.futures, grpc, sys\n"
            f"sys.path.insert(0, {HERE!r}); import echo_server, echo_client\n"
            "server = grpc.server(concurrent.futures.ThreadPoolExecutor(2),\n"
            "                     options=echo_server.UNLIMITED)\n"
            "server.add_generic_rpc_handlers([echo_server.Sync()])\n"
            f"server.add_insecure_port('unix:{folder}/socket')\n"
            "server.start()\n"
            f"echo_client.main('sync', 'unix:{folder}/socket', 'sizes')\n"
            "server.stop(0).wait()")
        ended = run(PYTHON, "-c", script)
        self.assertEqual(0, ended.code, ended)
        self.assertEqual({"to", "from"}, ended.sides_over_shm())

    def test_grpcs_own_channels_are_left_alone(self):
        """Tests an xDS client whose control plane is a server over Penstock."""
        server = self.serve("sync")
        bootstrap = json.dumps({"node": {"id": "client"}, "xds_servers": [{
            "server_uri": server.address,
            "channel_creds": [{"type": "insecure"}],
            "server_features": ["xds_v3"]}]})
        script = ("import grpc\n"
                  "call = grpc.insecure_channel('xds:///anywhere')."
                  "unary_unary('/echo/Unary')\n"
                  "try:\n    call(b'', timeout=5)\n"
                  "except grpc.RpcError as error: print(error.code())")
        ended = run(PYTHON, "-c", script, GRPC_XDS_BOOTSTRAP_CONFIG=bootstrap,
                    GRPC_VERBOSITY="INFO", GRPC_TRACE="xds_client")
        # Expects that the client has connected, and has found that the server
        # is no control plane of xDS.
        self.assertIn("ADS call status received", ended.log)
        self.assertIn("UNIMPLEMENTED", ended.log)
        self.assertEqual(set(), server.end().sides_over_shm())

    # Tests programs that the preloaded library leaves alone.

    def copy_of_grpcio(self, release):
        """Makes a copy of grpcio that claims to be of another release."""
        folder = self.folder()
        shutil.copytree(PACKAGE, f"{folder}/grpc")
        with open(f"{folder}/grpc/_grpcio_metadata.py", "w",
                  encoding="utf-8") as metadata:
            metadata.write(f'__version__ = """{release}"""')
        return folder

    def assert_left_alone(self, why, **settings):
        server = self.serve("sync")
        ended = self.call("sync", server.address, "sizes", **settings)
        self.assertEqual(set(), ended.sides_over_shm())
        reasons = ended.reasons_not_to()
        self.assertEqual(1, len(reasons), ended)
        self.assertIn(why, reasons[0])
        required = run(PYTHON, CLIENT, "sync", server.address, "sizes",
                       **REQUIRE, **settings)
        self.assertEqual(1, required.code, required)
        self.assertIn("ImportError", required.log)
        self.assertRegex(required.log, "Penstock is required but not used: .*"
                         + re.escape(why))
        # Expects the reason, not the loader's text for a missing file.
        self.assertNotIn("No such file", required.log)

    def test_another_release_of_grpcio(self):
        # Copies the stub alone. Without penstock.grpc next to it, the stub
        # reports the release as unsupported.
        stub = shutil.copy(STUB, self.folder())
        for release in "1.51.0", "1.51.10", "1.60.0", "11.51.1":
            self.assert_left_alone("it is not of grpcio 1.51.1", preload=stub,
                                   PYTHONPATH=self.copy_of_grpcio(release))

    def test_a_copy_of_the_right_release_is_carried(self):
        server = self.serve("sync")
        ended = self.call("sync", server.address, "sizes",
                          PYTHONPATH=self.copy_of_grpcio("1.51.1"))
        self.assertEqual({"to"}, ended.sides_over_shm(), ended)

    def test_a_package_whose_release_is_not_where_it_should_be(self):
        folder = self.copy_of_grpcio("1.51.1")
        path = f"{folder}/grpc/_grpcio_metadata.py"
        for text in b"", b"\0" * 100, b"#" * 5000 + b'__version__ = """1.51.1"""':
            with open(path, "wb") as metadata:
                metadata.write(text)
            ended = run(PYTHON, "-c", "import grpc._cython.cygrpc",
                        preload=shutil.copy(STUB, folder), PYTHONPATH=folder)
            (reason,) = ended.reasons_not_to()
            self.assertIn("it is not of grpcio 1.51.1, and penstock.grpc does "
                          "not lie next to", reason)
        os.remove(path)
        os.mkfifo(path)  # nobody ever writes to it
        subprocess.run([PYTHON, "-c", "import ctypes; ctypes.CDLL("
                        f"'{folder}/grpc/_cython/cygrpc.x.so')"],
                       env={"LD_PRELOAD": STUB}, timeout=10,
                       capture_output=True, check=False)

    def test_support_of_forks(self):
        self.assert_left_alone("GRPC_ENABLE_FORK_SUPPORT is set",
                               preload=shutil.copy(STUB, self.folder()),
                               GRPC_ENABLE_FORK_SUPPORT="1")

    def test_another_release_of_python(self):
        """Tests a Python for whose release the stub's folder has no module."""
        folder = self.folder()
        stub = shutil.copy(STUB, folder)
        self.assert_left_alone("no module for this release of Python",
                               preload=stub)

    def test_a_module_that_cannot_be_loaded(self):
        """Tests a Python with bundled libraries, of which some may not fit."""
        folder = self.folder()
        stub = shutil.copy(STUB, folder)
        os.mkdir(f"{folder}/python")
        module = "cygrpc" + sysconfig.get_config_var("EXT_SUFFIX")
        pathlib.Path(f"{folder}/python/{module}").write_text("none\n")
        self.assert_left_alone("file too short", preload=stub)

    def test_policy_off_is_stock(self):
        server = self.serve("sync")
        ended = self.call("sync", server.address, "sizes", PENSTOCK_POLICY="off")
        self.assertEqual("", ended.log)


if __name__ == "__main__":
    unittest.main(verbosity=2)
