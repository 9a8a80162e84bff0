"""echo_client.py sync|aio ADDRESS CASE [TLS_FOLDER]: a stock gRPC program.
Exits with 0 if the claim of the case is true."""

import asyncio
import pathlib
import random
import sys

import grpc

UNLIMITED = [("grpc.max_receive_message_length", -1),
             ("grpc.max_send_message_length", -1)]
NAMED = [("grpc.ssl_target_name_override", "localhost")]
SIZES = [0, 1, 8, 8191, 16 * 1024 - 1, 16 * 1024, 65537, 1 << 20, 5000003]


def message(size):
    return random.Random(size).randbytes(size)


def equal(got, wanted):
    """Fails without printing the values, which may be long."""
    if got != wanted:
        raise AssertionError(f"{len(got)} bytes for {len(wanted)}, or others")


def credentials(tls):
    key, chain, root = [pathlib.Path(tls, name).read_bytes() for name in
                        ("key.pem", "certificate.pem", "certificate.pem")]
    calls = grpc.access_token_call_credentials("token")
    return grpc.composite_channel_credentials(
        grpc.ssl_channel_credentials(root, key, chain), calls)


def channel_to(module, address, tls):
    if tls:
        return module.secure_channel(address, credentials(tls),
                                     options=UNLIMITED + NAMED)
    return module.insecure_channel(address, options=UNLIMITED)


class Sync:

    def __init__(self, channel):
        self.unary = channel.unary_unary("/echo/Unary")
        self.slow = channel.unary_unary("/echo/Slow")
        self.streams = channel.stream_stream("/echo/Streams")
        self.failing = channel.unary_unary("/echo/Fails")

    def sizes(self):
        for size in SIZES:
            equal(self.unary(message(size), timeout=30), message(size))

    def large(self):
        equal(self.unary(message(64 << 20), timeout=50), message(64 << 20))

    def metadata(self):
        sent = [("echo-text", "a value"), ("echo-bytes-bin", bytes(range(256)))]
        _, call = self.unary.with_call(b"x", metadata=sent, timeout=30)
        assert set(sent) <= set(call.initial_metadata()), call.initial_metadata()
        assert dict(call.trailing_metadata())["peer"].startswith("ipv4:127.")

    def stream(self):
        sent = [message(size) for size in SIZES * 20]
        for got, wanted in zip(self.streams(iter(sent), timeout=30), sent,
                               strict=True):
            equal(got, wanted)

    def concurrent(self):
        calls = [self.unary.future(message(100 + i * 97), timeout=50)
                 for i in range(500)]
        for i, call in enumerate(calls):
            equal(call.result(), message(100 + i * 97))

    def deadline(self):
        try:
            self.slow(b"x", timeout=0.2)
        except grpc.RpcError as error:
            assert error.code() == grpc.StatusCode.DEADLINE_EXCEEDED, error
        else:
            raise AssertionError("it came in time")
        self.sizes()

    def cancel(self):
        call = self.slow.future(b"x")
        assert call.cancel()
        assert call.code() == grpc.StatusCode.CANCELLED
        self.sizes()

    def status(self):
        try:
            self.failing(b"", timeout=30)
        except grpc.RpcError as error:
            assert error.code() == grpc.StatusCode.DATA_LOSS, error
            assert error.details() == "as the café asked", error.details()
        else:
            raise AssertionError("it did not fail")


class Aio:

    def __init__(self, channel):
        self.unary = channel.unary_unary("/echo/Unary")
        self.slow = channel.unary_unary("/echo/Slow")
        self.streams = channel.stream_stream("/echo/Streams")
        self.failing = channel.unary_unary("/echo/Fails")

    async def sizes(self):
        for size in SIZES:
            equal(await self.unary(message(size), timeout=30), message(size))

    async def large(self):
        equal(await self.unary(message(64 << 20), timeout=50), message(64 << 20))

    async def metadata(self):
        sent = [("echo-text", "a value"), ("echo-bytes-bin", bytes(range(256)))]
        call = self.unary(b"x", metadata=sent, timeout=30)
        got = [tuple(pair) for pair in await call.initial_metadata()]
        assert set(sent) <= set(got), got
        await call

    async def stream(self):
        sent = [message(size) for size in SIZES * 20]
        call = self.streams(iter(sent), timeout=30)
        for wanted in sent:
            equal(await call.read(), wanted)
        assert await call.read() == grpc.aio.EOF

    async def concurrent(self):
        calls = [self.unary(message(100 + i * 97), timeout=50)
                 for i in range(500)]
        for i, got in enumerate(await asyncio.gather(*calls)):
            equal(got, message(100 + i * 97))

    async def deadline(self):
        try:
            await self.slow(b"x", timeout=0.2)
        except grpc.aio.AioRpcError as error:
            assert error.code() == grpc.StatusCode.DEADLINE_EXCEEDED, error
        else:
            raise AssertionError("it came in time")
        await self.sizes()

    async def cancel(self):
        call = self.slow(b"x")
        await asyncio.sleep(0.1)
        assert call.cancel()
        assert await call.code() == grpc.StatusCode.CANCELLED
        await self.sizes()

    async def status(self):
        try:
            await self.failing(b"", timeout=30)
        except grpc.aio.AioRpcError as error:
            assert error.code() == grpc.StatusCode.DATA_LOSS, error
            assert error.details() == "as the café asked", error.details()
        else:
            raise AssertionError("it did not fail")


async def main_aio(address, case, tls):
    async with channel_to(grpc.aio, address, tls) as channel:
        await getattr(Aio(channel), case)()


def main(api, address, case, tls=None):
    if api == "aio":
        asyncio.run(main_aio(address, case, tls))
        return
    with channel_to(grpc, address, tls) as channel:
        getattr(Sync(channel), case)()


if __name__ == "__main__":
    main(*sys.argv[1:])
