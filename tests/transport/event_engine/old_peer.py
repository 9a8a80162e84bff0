#!/usr/bin/python3
"""Stock gRPC 1.51.1 as a peer of old_peer_test: Debian's python3-grpcio, which
has a core of its own.

  old_peer.py version            prints the release of gRPC
  old_peer.py server KEY CERT    echoes each message; prints "port N", and ends
                                 with its input
  old_peer.py client PORT SEED ROOTS
                                 makes random calls that must be echoed, and
                                 prints a line for each; prints "done", and
                                 ends with its input

KEY, CERT and ROOTS are files in PEM; "-" means no TLS.
"""

import random
import sys
from concurrent import futures

import grpc

CALLS = 30
# Messages are log-uniform, up to 8 MiB.
MAX_BITS = 23
UNLIMITED = [("grpc.max_receive_message_length", -1),
             ("grpc.max_send_message_length", -1)]


def contents(path):
    with open(path, "rb") as file:
        return file.read()


class Echo(grpc.GenericRpcHandler):
    def service(self, handler_call_details):
        return grpc.stream_stream_rpc_method_handler(
            lambda messages, context: messages)


def serve(key, certificate):
    server = grpc.server(futures.ThreadPoolExecutor(8), options=UNLIMITED)
    server.add_generic_rpc_handlers((Echo(),))
    if key == "-":
        port = server.add_insecure_port("127.0.0.1:0")
    else:
        credentials = grpc.ssl_server_credentials(
            [(contents(key), contents(certificate))])
        port = server.add_secure_port("127.0.0.1:0", credentials)
    server.start()
    print("port", port, flush=True)
    sys.stdin.read()
    server.stop(0)


def any_message(dice):
    return dice.randbytes(dice.getrandbits(dice.randint(0, MAX_BITS)))


def call(port, seed, roots):
    dice = random.Random(seed)
    if roots == "-":
        channel = grpc.insecure_channel(f"127.0.0.1:{port}", options=UNLIMITED)
    else:
        channel = grpc.secure_channel(
            f"127.0.0.1:{port}", grpc.ssl_channel_credentials(contents(roots)),
            options=UNLIMITED)
    unary = channel.unary_unary("/test/Echo")
    stream = channel.stream_stream("/test/Echo")
    for number in range(CALLS):
        message = any_message(dice)
        if unary(message, timeout=60) != message:
            sys.exit(f"seed {seed}, call {number}: a wrong answer")
        print("called", number, flush=True)
    messages = [any_message(dice) for _ in range(CALLS)]
    answers = []
    for answer in stream(iter(messages), timeout=60):
        answers.append(answer)
        print("received", len(answers), flush=True)
    if answers != messages:
        sys.exit(f"seed {seed}: a wrong stream")
    print("done", flush=True)
    sys.stdin.read()


def main():
    role, *arguments = sys.argv[1:]
    if role == "version":
        print("version", grpc.__version__)
    elif role == "server":
        serve(*arguments)
    else:
        call(*arguments)


main()
