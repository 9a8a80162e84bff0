#!/usr/bin/python3 -B
"""Tests Penstock where it was not built: the same gRPC, but another abseil, or
another language. Changes copies of the libraries into what another distribution would have
built: their abseil has another soname, or another inline namespace, which is
part of the name of each of its functions. Preloads add to libgrpc what a build
with other options or in another language has."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

from child import LIBRARY, PYTHON, STUB, Child, run

HERE = os.path.abspath("tests/preload")
CORE = f"{HERE}/core"
OTHER_LAYOUT = f"{HERE}/libother_layout.so"
OTHER_LANGUAGE = f"{HERE}/libother_language.so"
SERVER = os.path.abspath("examples/greeter/greeter_server")
CLIENT = os.path.abspath("examples/greeter/greeter_client")
PACKAGE = pathlib.Path("python/penstock").absolute()

# The symbol of libgrpc whose presence Penstock checks.
LOOKED_FOR = rb"grpc_error_has_clear_grpc_status"


class OtherDistributionTest(unittest.TestCase):

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    def changed(self, file, pattern):
        """Returns a copy in which the last digit of the matching names is
        different."""
        def other(name):
            return name[0][:-1] + (b"8" if name[0][-1:] != b"8" else b"9")
        copy = self.folder / pathlib.Path(file).name
        text, count = re.subn(pattern, other, pathlib.Path(file).read_bytes())
        self.assertGreater(count, 0, pattern)
        copy.write_bytes(text)
        copy.chmod(0o755)
        return str(copy)

    def of_other_namespace(self, file, function=rb""):
        return self.changed(file, function + rb"N4absl7debian\d")

    def of_other_soname(self, file):
        return self.changed(file, rb"libabsl_\w+\.so\.\d+")

    def assert_carries_nothing(self, why, library):
        """Asserts that the program continues without Penstock, and that the
        log says why. If the program requires Penstock, it gets no port."""
        ended = run(CORE, "forks", PENSTOCK_LIBRARY=library)
        self.assertEqual(0, ended.code, ended)
        self.assertEqual(set(), ended.sides_over_shm())
        self.assertEqual(2, len(ended.reasons_not_to()), ended)  # processes
        self.assertRegex(ended.reasons_not_to()[0], why)
        self.assertIn("(it was built on ", ended.reasons_not_to()[0])
        ended = run(CORE, "forks", PENSTOCK_LIBRARY=library,
                    PENSTOCK_POLICY="require")
        self.assertEqual(1, ended.code, ended)
        self.assertIn("no port", ended.said)

    def test_a_preloaded_library_whose_abseil_is_not_there(self):
        self.assert_carries_nothing(r"libabsl_\w+\.so\.\d+: cannot open shared",
                                    self.of_other_soname(LIBRARY))

    # Tests two releases of abseil in one process, as there are after an
    # upgrade.
    def test_a_preloaded_library_that_wants_other_functions_of_grpc(self):
        self.assert_carries_nothing("undefined symbol: .*debian",
                                    self.of_other_namespace(LIBRARY))

    def test_the_library_is_refused_when_it_is_loaded_not_in_a_call(self):
        """Checks the flags with which the library is linked, because they apply
        regardless of the flags with which the library is opened."""
        flags = subprocess.run(["readelf", "-dW", LIBRARY], text=True,
                               capture_output=True, check=True).stdout
        self.assertRegex(flags, r"FLAGS.*BIND_NOW")

    def assert_stock(self, what, preload=None, programs=(SERVER, CLIENT)):
        """Tests greeters that are linked to Penstock and cannot use it. They
        must run without it, and the log must give the reason."""
        server, client = programs
        with Child(server, "127.0.0.1:0", preload=preload) as serving:
            ended = run(client, serving.address, preload=preload)
            self.assertEqual(0, ended.code, ended)
            serving.process.kill()
            both = ended.log + serving.end().log
        self.assertIn("Hello", ended.said)
        self.assertNotIn(": shm", both)
        told = re.findall(r"error penstock\[\d+\]: Penstock is not used: gRPC "
                          r"1\.51\.1 built with (.*) is loaded, but Penstock "
                          r"needs core 29\.0\.0, gRPC 1\.51\.1 of \S", both)
        self.assertEqual([what] * 2, told, both)
        ended = run(client, "127.0.0.1:1", preload=preload,
                    PENSTOCK_POLICY="require")
        self.assertNotEqual(0, ended.code)
        self.assertIn(f"built with {what} is loaded", ended.log)

    def test_a_program_that_is_beside_another_abseil(self):
        self.assert_stock("another abseil", programs=[
            self.of_other_namespace(program, rb"\d+" + LOOKED_FOR)
            for program in (SERVER, CLIENT)])

    def test_a_program_that_is_beside_a_grpc_of_other_options(self):
        self.assert_stock("other options", preload=OTHER_LAYOUT)

    def test_a_program_that_is_beside_a_grpc_of_another_language(self):
        self.assert_stock(r"C++17", preload=OTHER_LANGUAGE)

    def test_a_program_whose_abseil_is_not_there(self):
        """Tests the loader's error. The loader reports it, because nothing of
        the program has run yet."""
        ended = run(self.of_other_soname(CLIENT), "127.0.0.1:1", preload=None)
        self.assertEqual(127, ended.code)
        self.assertRegex(ended.log, r"libabsl_\w+\.so\.\d+: cannot open shared")

    def test_the_python_module(self):
        package = self.folder / "of_another/penstock"
        package.mkdir(parents=True)
        for file in PACKAGE.iterdir():
            if file.is_file():
                shutil.copy(file, package)
        shutil.copy(self.of_other_soname(PACKAGE / "_penstock.so"), package)
        told = run(PYTHON, "-c", "from penstock import TensorClient", preload=None,
                   PYTHONPATH=str(package.parent))
        self.assertEqual(1, told.code)
        self.assertRegex(told.log, "ImportError: penstock's extension module "
                         r".* does not load: libabsl_\w+\.so")


if __name__ == "__main__":
    unittest.main(verbosity=2)
