"""echo_server.py sync|aio [TLS_FOLDER]: a stock gRPC program. Prints its port,
and serves until its standard input ends."""

import asyncio
import concurrent.futures
import pathlib
import sys
import threading


import grpc

UNLIMITED = [("grpc.max_receive_message_length", -1),
             ("grpc.max_send_message_length", -1)]


class Sync(grpc.GenericRpcHandler):

    def service(self, call):
        return {
            "/echo/Unary": grpc.unary_unary_rpc_method_handler(self.unary),
            "/echo/Slow": grpc.unary_unary_rpc_method_handler(self.slow),
            "/echo/Streams": grpc.stream_stream_rpc_method_handler(
                lambda requests, context: requests),
            "/echo/Fails": grpc.unary_unary_rpc_method_handler(self.fails),
        }.get(call.method)

    def unary(self, request, context):
        context.send_initial_metadata(
            [pair for pair in context.invocation_metadata()
             if pair[0].startswith("echo-")])
        context.set_trailing_metadata([("peer", context.peer()),
                                       ("identity-bin", b"".join(
                                           context.peer_identities() or []))])
        return request

    def slow(self, request, context):
        cancelled = threading.Event()
        context.add_callback(cancelled.set)
        cancelled.wait(20)
        return request

    def fails(self, request, context):
        context.abort(grpc.StatusCode.DATA_LOSS, "as the café asked")


class Aio(grpc.GenericRpcHandler):

    def service(self, call):
        return {
            "/echo/Unary": grpc.unary_unary_rpc_method_handler(self.unary),
            "/echo/Slow": grpc.unary_unary_rpc_method_handler(self.slow),
            "/echo/Streams": grpc.stream_stream_rpc_method_handler(self.streams),
            "/echo/Fails": grpc.unary_unary_rpc_method_handler(self.fails),
        }.get(call.method)

    async def unary(self, request, context):
        await context.send_initial_metadata(
            [pair for pair in context.invocation_metadata()
             if pair[0].startswith("echo-")])
        return request

    async def slow(self, request, context):
        await asyncio.sleep(20)
        return request

    async def streams(self, requests, context):
        async for request in requests:
            yield request

    async def fails(self, request, context):
        await context.abort(grpc.StatusCode.DATA_LOSS, "as the café asked")


def add_port(server, tls):
    if not tls:
        return server.add_insecure_port("127.0.0.1:0")
    key, chain, root = [pathlib.Path(tls, name).read_bytes() for name in
                        ("key.pem", "certificate.pem", "certificate.pem")]
    return server.add_secure_port(
        "127.0.0.1:0", grpc.ssl_server_credentials(
            [(key, chain)], root_certificates=root, require_client_auth=True))


def serve_sync(tls):
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(8),
                         options=UNLIMITED)
    server.add_generic_rpc_handlers([Sync()])
    port = add_port(server, tls)
    server.start()
    print("port", port, flush=True)
    sys.stdin.read()
    server.stop(0).wait()


async def serve_aio(tls):
    server = grpc.aio.server(options=UNLIMITED)
    server.add_generic_rpc_handlers([Aio()])
    port = add_port(server, tls)
    await server.start()
    print("port", port, flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    await server.stop(0)


if __name__ == "__main__":
    folder = sys.argv[2] if len(sys.argv) > 2 else None
    if sys.argv[1] == "aio":
        asyncio.run(serve_aio(folder))
    else:
        serve_sync(folder)
