#!/usr/bin/python3 -B
"""Tests the preloaded library in all kinds of programs: which programs it
carries, which it leaves alone, and what it reports if something is missing."""

import os
import re
import shutil
import subprocess
import tempfile
import unittest

from child import LIBRARY, STUB, Child, run

HERE = os.path.abspath("tests/preload")
CORE = f"{HERE}/core"
STATIC = f"{HERE}/static"
SERVER = os.path.abspath("examples/greeter/greeter_server")
ARCHIVE = os.path.abspath("penstock/libpenstock.a")
CLIENT = os.path.abspath("examples/greeter/greeter_client")

# The functions of other_grpc.c that other_main.c calls, in order.
OTHER_CALLS = ["init", "channel_create", "slice_from_copied_buffer",
               "server_create", "server_add_http2_port"]


def clients_over_shm(ended):
    """Returns the process of each connection to a server with Penstock. The
    log lines are the clients', because the server may end before it logs a
    connection."""
    return re.findall(r"penstock\[(\d+)\]: connection to \S+: shm", ended.log)


class CarriedTest(unittest.TestCase):

    def test_many_threads_begin_at_once(self):
        for _ in range(20):
            ended = run(CORE, "threads")
            self.assertEqual(0, ended.code, ended)
            self.assertEqual(32, len(clients_over_shm(ended)), ended)
            self.assertEqual([], ended.reasons_not_to())

    def test_a_child_that_is_forked_and_its_parent(self):
        ended = run(CORE, "forks")
        self.assertEqual(0, ended.code, ended)
        self.assertEqual(2, len(set(clients_over_shm(ended))), ended)

    def test_several_libraries_are_preloaded(self):
        other = f"{HERE}/libother.so"
        for preload in f"{STUB}:{other}", f"{other} {STUB}", f"{STUB}:{STUB}":
            ended = run(CORE, "threads", preload=preload)
            self.assertEqual(0, ended.code, ended)
            self.assertEqual(32, len(clients_over_shm(ended)), ended)

    def test_the_library_lies_beside_the_stub(self):
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder)
        stub = shutil.copy(STUB, folder)
        nothing = run(CORE, "threads", preload=stub, PENSTOCK_LIBRARY="")
        self.assertEqual(set(), nothing.sides_over_shm())
        self.assertIn("libpenstock.so.0: cannot open", nothing.log)
        shutil.copy(LIBRARY, folder)
        ended = run(CORE, "threads", preload=stub, PENSTOCK_LIBRARY="")
        self.assertEqual(32, len(clients_over_shm(ended)), ended)

    def test_the_loader_finds_the_library(self):
        ended = run(CORE, "threads", PENSTOCK_LIBRARY="",
                    LD_LIBRARY_PATH=os.path.dirname(LIBRARY))
        self.assertEqual(32, len(clients_over_shm(ended)), ended)

    def test_a_caller_that_knows_nothing_of_grpc(self):
        ended = run(f"{HERE}/plugin", f"{HERE}/libplugin.so",
                    PENSTOCK_LIBRARY="/is/nowhere")
        self.assertEqual((0, "a channel\n"), (ended.code, ended.said), ended)
        self.assertEqual(1, len(ended.reasons_not_to()), ended)

    def test_two_grpcs_in_one_program(self):
        ended = run(f"{HERE}/plugin", f"{HERE}/libplugin.so",
                    f"{HERE}/libother_plugin.so")
        self.assertEqual((0, ["a channel"] + OTHER_CALLS),
                         (ended.code, ended.said.splitlines()), ended)
        self.assertEqual(1, len(ended.reasons_not_to()), ended)

    def test_a_small_slice_costs_little_more(self):
        def nanoseconds(preload):
            return min(float(run(CORE, "cost", preload=preload).said.split()[0])
                       for _ in range(5))
        self.assertLess(nanoseconds(STUB), nanoseconds(None) + 200)

    def test_nobody_is_looked_for_with_each_rpc(self):
        def lookups(**settings):
            ended = run(f"{HERE}/lookups", **settings)
            self.assertEqual(0, ended.code, ended)
            return list(map(int, ended.said.split()))
        begun, copied_short, copied_long = lookups()
        self.assertEqual((0, 0), (begun, copied_short))
        self.assertEqual(1000, copied_long)
        # Expects as many lookups as calls if the library is not open, because
        # nothing then keeps gRPC loaded between the calls.
        self.assertEqual([1000] * 3, lookups(PENSTOCK_LIBRARY="/is/nowhere"))


class LeftAloneTest(unittest.TestCase):

    def test_a_program_without_grpc(self):
        for program in "/bin/true", STATIC:
            ended = run(program, PENSTOCK_POLICY="require")
            self.assertEqual((0, "", ""), (ended.code, ended.said, ended.log))

    def test_a_program_that_looks_whether_there_is_grpc(self):
        ended = run(f"{HERE}/plugin", PENSTOCK_POLICY="require")
        self.assertEqual((0, "", ""), (ended.code, ended.said, ended.log))

    def test_dlopen_finds_what_the_caller_would(self):
        self.assertEqual(0, run(CORE, "dlopen", preload=None).code)
        self.assertEqual(0, run(CORE, "dlopen").code)

    def test_policy_off(self):
        ended = run(CORE, "forks", PENSTOCK_POLICY="off",
                    PENSTOCK_LIBRARY="/is/nowhere")
        self.assertEqual((0, ""), (ended.code, ended.log))

    def test_a_program_with_penstock_in_it(self):
        # Names a library that does not exist. Looking for it would leave a
        # report.
        setting = {"PENSTOCK_LIBRARY": "/is/nowhere"}
        with Child(SERVER, "127.0.0.1:0", **setting) as server:
            self.assertNotIn("libpenstock.so", server.maps())
            self.assertIn("libpenstock-preload.so", server.maps())
            ended = run(CLIENT, server.address, **setting)
            self.assertEqual(0, ended.code, ended)
            self.assertEqual({"to"}, ended.sides_over_shm())
            self.assertEqual([], ended.reasons_not_to())
        # Starts a server that requires Penstock: the program's own policy
        # holds, not the preloaded library's.
        with Child(SERVER, "127.0.0.1:0", PENSTOCK_POLICY="require") as server:
            self.assertIn("listening", server.first_line)

    def test_whatever_has_penstock_in_it_says_so(self):
        for file in LIBRARY, ARCHIVE, SERVER:
            notes = subprocess.run(["readelf", "-nW", file], text=True,
                                   capture_output=True, check=True).stdout
            self.assertRegex(notes, r"Penstock +0x00000000", file)

    def test_a_set_uid_program(self):
        if os.geteuid() != 0:
            self.skipTest("only root can give a program away")
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder)
        os.chmod(folder, 0o755)
        program = shutil.copy(CORE, f"{folder}/core")
        os.chown(program, 65534, 65534)
        os.chmod(program, 0o4755)
        ended = run(program, "forks", PENSTOCK_POLICY="require")
        self.assertEqual(0, ended.code, ended)
        self.assertNotIn("Penstock", ended.log)
        self.assertNotIn("penstock[", ended.log)

    def test_a_program_under_a_sanitizer(self):
        for program, name in (("asan", "AddressSanitizer"),
                              ("tsan", "ThreadSanitizer")):
            ended = run(f"{HERE}/{program}")
            self.assertEqual((0, "", ""), (ended.code, ended.said, ended.log))
            # Silences reports about gRPC, which leaks memory and has a race.
            quiet = {"ASAN_OPTIONS": "detect_leaks=0",
                     "TSAN_OPTIONS": "report_bugs=0"}
            ended = run(f"{HERE}/{program}_core", "forks", **quiet)
            self.assertEqual(0, ended.code, ended)
            self.assertEqual(set(), ended.sides_over_shm())
            self.assertIn(f"the program runs under {name}",
                          ended.reasons_not_to()[0])
            ended = run(f"{HERE}/{program}_core", "forks",
                        PENSTOCK_POLICY="require", **quiet)
            self.assertEqual(1, ended.code, ended)
            self.assertIn("no port", ended.said)

    def test_a_runtime_that_is_not_first_for_another_reason_says_so(self):
        """Tests that the result is the same with and without the stub."""
        other = f"{HERE}/libother.so"
        for preload in other, f"{other}:{STUB}", f"{STUB}:{other}":
            ended = run(f"{HERE}/asan", preload=preload)
            self.assertNotEqual(0, ended.code, ended)
            self.assertIn("does not come first", ended.log)

    def test_another_release_of_grpc(self):
        ended = run(f"{HERE}/other")
        self.assertEqual((0, OTHER_CALLS), (ended.code, ended.said.split()))
        self.assertEqual(1, len(ended.reasons_not_to()), ended)
        self.assertIn("libgrpc.so.37", ended.reasons_not_to()[0])
        self.assertEqual("", run(f"{HERE}/other", PENSTOCK_POLICY="off").log)
        self.assertEqual("", run(f"{HERE}/other", PENSTOCK_LOG="error").log)

    def test_another_release_where_penstock_is_required(self):
        ended = run(f"{HERE}/other", PENSTOCK_POLICY="require")
        self.assertEqual(3, ended.code, ended)
        self.assertEqual(["init", "lame_client_channel_create",
                          "slice_from_copied_buffer", "server_create"],
                         ended.said.split())


class MissingTest(unittest.TestCase):

    def assert_stock(self, why, **settings):
        """Asserts that the stub says why, once, and that the program
        continues. If Penstock is required, the program fails."""
        ended = run(CORE, "forks", **settings)
        self.assertEqual(0, ended.code, ended)
        self.assertEqual(set(), ended.sides_over_shm())
        self.assertEqual(2, len(ended.reasons_not_to()), ended)  # processes
        self.assertIn(why, ended.reasons_not_to()[0])
        ended = run(CORE, "forks", PENSTOCK_POLICY="require", **settings)
        self.assert_refused(ended)

    def assert_refused(self, ended):
        self.assertEqual(1, ended.code, ended)
        self.assertIn("no port", ended.said)

    def test_no_library(self):
        self.assert_stock("/is/nowhere: cannot open shared object file",
                          PENSTOCK_LIBRARY="/is/nowhere")

    def test_a_library_that_is_none(self):
        self.assert_stock("invalid ELF header", PENSTOCK_LIBRARY=__file__)

    def test_a_library_of_another_release(self):
        self.assert_stock("is of another release",
                          PENSTOCK_LIBRARY="libm.so.6")

    def test_a_grpc_that_says_it_is_another(self):
        preload = f"{STUB}:{HERE}/../e2e/processes/libother_version.so"
        ended = run(CORE, "forks", preload=preload)
        self.assertEqual(0, ended.code, ended)
        self.assertIn("gRPC core 30.1.2 is loaded", ended.log)
        ended = run(CORE, "forks", preload=preload, PENSTOCK_POLICY="require")
        self.assert_refused(ended)

    def test_a_bad_setting(self):
        ended = run(CORE, "forks", PENSTOCK_FABRICS="smoke")
        self.assertEqual(0, ended.code, ended)
        self.assertIn("Penstock is not used: PENSTOCK_FABRICS=smoke", ended.log)
        ended = run(CORE, "forks", PENSTOCK_FABRICS="smoke",
                    PENSTOCK_POLICY="require")
        self.assert_refused(ended)

    def test_nobody_reads_the_log(self):
        reader, writer = os.pipe()
        os.close(reader)
        done = subprocess.run([CORE, "forks"], stderr=writer, check=False,
                              env={"LD_PRELOAD": STUB,
                                   "PENSTOCK_LIBRARY": "/is/nowhere"})
        os.close(writer)
        self.assertEqual(0, done.returncode)


if __name__ == "__main__":
    unittest.main(verbosity=2)
