#!/usr/bin/python3 -B
"""Tests gRPC's own unchanged interoperability programs, with Penstock's
library preloaded at both sides or at one."""

import os
import socket
import time
import unittest

from child import STUB, Child, run

HERE = os.path.abspath("tests/preload")
ATTEMPTS = 100  # to reach a server that has just been started

# The cases of gRPC's programs, without those that need Google's credentials or
# take a minute.
CASES = """
    cancel_after_begin cancel_after_first_response client_compressed_streaming
    client_compressed_unary client_streaming custom_metadata empty_stream
    empty_unary half_duplex large_unary ping_pong server_compressed_streaming
    server_compressed_unary server_streaming special_status_message
    status_code_and_message timeout_on_sleeping_server unimplemented_method
    unimplemented_service
""".split()


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


class InteropTest(unittest.TestCase):

    def each_case(self, server, client, over_shm, *, tls=False, **settings):
        """Returns the server's log."""
        port, flags = free_port(), ["--use_tls=true"] if tls else []
        with Child("/bin/sh", "-c",
                   f"{HERE}/interop_server --port={port} {' '.join(flags)} & "
                   "echo; cat; kill -INT $!; wait $!",
                   preload=server, **settings) as child:
            def call(case):
                return run(f"{HERE}/interop_client", f"--server_port={port}",
                           f"--test_case={case}", "--use_test_ca=true", *flags,
                           preload=client, **settings)
            for _ in range(ATTEMPTS):
                if call("empty_unary").code == 0:
                    break
                time.sleep(0.1)
            for case in CASES:
                with self.subTest(case=case):
                    ended = call(case)
                    self.assertEqual(0, ended.code, ended)
                    sides = ended.sides_over_shm()
                    if case == "timeout_on_sleeping_server":
                        sides |= over_shm  # the call may end before the path
                    self.assertEqual(over_shm & {"to"}, sides - {"from"})
            ended = child.end()
        self.assertEqual(over_shm & {"from"}, ended.sides_over_shm())
        return ended.log

    def test_both_sides_over_shared_memory(self):
        self.each_case(STUB, STUB, {"to", "from"}, PENSTOCK_POLICY="require",
                       PENSTOCK_FABRICS="shm")

    def test_both_sides_with_tls(self):
        self.each_case(STUB, STUB, {"to", "from"}, tls=True,
                       PENSTOCK_POLICY="require", PENSTOCK_FABRICS="shm")

    def test_both_sides_over_tcp(self):
        log = self.each_case(STUB, STUB, set(), PENSTOCK_FABRICS="tcp")
        self.assertRegex(log, r"penstock\[\d+\]: connection from \S+: tcp")

    def test_a_stock_client(self):
        self.each_case(STUB, None, set())

    def test_a_stock_server(self):
        self.each_case(None, STUB, set())


if __name__ == "__main__":
    unittest.main(verbosity=2)
