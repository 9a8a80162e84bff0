#!/usr/bin/python3 -B
"""Tests stock gRPC for Python with programs in C++ that use Penstock, on the
ordinary port: as a client and as a server.

Run it with Debian's python3, whose python3-grpcio this needs.
"""

import concurrent.futures
import os
import subprocess
import unittest

import grpc

FOLDER = "examples/greeter"
METHOD = "/penstock.greeter.Greeter/SayHello"


def encode(text):
    """Returns a message whose field 1 is the string `text`, shorter than 128
    bytes."""
    return bytes([0x0A, len(text)]) + text.encode()


def decode(message):
    return message[2:].decode()


class Greeter(grpc.GenericRpcHandler):

    def service(self, call_details):
        if call_details.method != METHOD:
            return None
        return grpc.unary_unary_rpc_method_handler(
            lambda name, context: "Hello " + name,
            request_deserializer=decode, response_serializer=encode)


class StockPythonTest(unittest.TestCase):

    def start_server(self):
        """Starts the Penstock greeter. Returns its address."""
        server = subprocess.Popen([f"{FOLDER}/greeter_server", "127.0.0.1:0"],
                                  stdout=subprocess.PIPE, text=True)
        self.addCleanup(server.stdout.close)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        return "127.0.0.1:" + server.stdout.readline().split()[-1]

    def test_a_penstock_server_serves_a_stock_client(self):
        with grpc.insecure_channel(self.start_server()) as channel:
            say_hello = channel.unary_unary(
                METHOD, request_serializer=encode, response_deserializer=decode)
            for i in range(100):
                self.assertEqual(f"Hello {i}", say_hello(str(i), timeout=10))

    def test_a_stock_client_hears_that_a_method_is_unknown(self):
        with grpc.insecure_channel(self.start_server()) as channel:
            with self.assertRaises(grpc.RpcError) as raised:
                channel.unary_unary("/penstock.greeter.Greeter/Nothing")(
                    b"", timeout=10)
            self.assertEqual(grpc.StatusCode.UNIMPLEMENTED,
                             raised.exception.code())

    def test_a_penstock_client_calls_a_stock_server(self):
        server = grpc.server(concurrent.futures.ThreadPoolExecutor(1))
        server.add_generic_rpc_handlers([Greeter()])
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        self.addCleanup(lambda: server.stop(0).wait())
        said = subprocess.run(
            [f"{FOLDER}/greeter_client", f"127.0.0.1:{port}"],
            stdout=subprocess.PIPE, text=True, timeout=30, check=True).stdout
        self.assertIn("Hello world", said)
        self.assertIn("over http2", said)


if __name__ == "__main__":
    os.environ["PENSTOCK_LOG"] = "warning"
    unittest.main()
