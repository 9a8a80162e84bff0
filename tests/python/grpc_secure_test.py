#!/usr/bin/python3 -B
"""Tests penstock.grpc with secure channels. The data plane must keep the
identities of TLS, and no other client may use them."""

import asyncio
import concurrent.futures
import contextlib
import json
import pathlib
import queue
import subprocess
import time

import run_pytest

import grpc
import grpc.aio
import pytest

import fast_grpc
import penstock.grpc
import penstock.grpc.aio
from fast_grpc import caught
from penstock import _rpc
from penstock.grpc import _identity, _rules, _wire


def make_certificate(folder, name):
    """Makes NAME.key, and NAME.pem with a self-signed certificate."""
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
         "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
         f"/CN={name}", "-addext", "subjectAltName=DNS:localhost,DNS:" + name,
         "-keyout", folder / f"{name}.key", "-out", folder / f"{name}.pem"],
        check=True, capture_output=True)


@pytest.fixture(scope="module", name="files")
def make_files(tmp_path_factory):
    """Returns the bytes of certificates and keys, by names."""
    folder = tmp_path_factory.mktemp("tls")
    for name in "localhost", "alice", "bob":
        make_certificate(folder, name)
    return {path.name: path.read_bytes()
            for path in pathlib.Path(folder).iterdir()}


def server_credentials(files):
    roots = files["alice.pem"] + files["bob.pem"]
    return grpc.ssl_server_credentials(
        [(files["localhost.key"], files["localhost.pem"])], roots, True)


def client_credentials(files, name):
    return grpc.ssl_channel_credentials(
        files["localhost.pem"], files[f"{name}.key"], files[f"{name}.pem"])


def who(request, context):
    """Answers with the identity that the handler sees for the client."""
    del request
    return json.dumps([
        {key: [str(value) for value in values]
         for key, values in sorted(context.auth_context().items())
         if key != "ssl_session_reused"},
        context.peer_identity_key(),
        [str(one) for one in context.peer_identities() or ()],
        [key for key, _ in context.invocation_metadata()
         if "ticket" in key]]).encode()


async def async_who(request, context):
    return who(request, context)


@contextlib.contextmanager
def serving(files, has_insecure_port=False):
    """Runs a server with a secure port. Yields the server and the port."""
    pool = concurrent.futures.ThreadPoolExecutor(4)
    server = penstock.grpc.server(pool, [fast_grpc.Handlers({
        "who": who, "echo": grpc.stream_stream_rpc_method_handler(
            lambda requests, context: requests)})])
    port = server.add_secure_port("localhost:0", server_credentials(files))
    if has_insecure_port:
        server.plain_target = "127.0.0.1:%d" % server.add_insecure_port(
            "127.0.0.1:0")
    server.start()
    try:
        yield server, port
    finally:
        server.stop(None)


def secure_channel(files, port, name="alice"):
    return penstock.grpc.secure_channel(f"localhost:{port}",
                                        client_credentials(files, name))


def test_the_handler_sees_the_same_identity(files):
    with serving(files) as (_, port):
        for name in "alice", "bob":
            with grpc.secure_channel(f"localhost:{port}",
                                     client_credentials(files, name)) as stock:
                expected = stock.unary_unary("/test/who")(b"")
            assert name in expected.decode()
            with secure_channel(files, port, name) as channel:
                fast_grpc.until_fast(channel)
                assert fast_grpc.path_of(f"localhost:{port}").startswith(
                    f"to localhost:{port}: shm")
                call = channel.unary_unary("/test/who")
                assert call(b"") == expected
                assert call(b"", metadata=(("key", "value"),)) == expected


def test_asyncio(files):
    async def scene():
        server = penstock.grpc.aio.server(
            handlers=[fast_grpc.Handlers({"who": async_who})])
        port = server.add_secure_port("localhost:0", server_credentials(files))
        await server.start()
        credentials = client_credentials(files, "alice")
        async with grpc.aio.secure_channel(f"localhost:{port}",
                                           credentials) as stock:
            expected = await stock.unary_unary("/test/who")(b"")
        async with penstock.grpc.aio.secure_channel(
                f"localhost:{port}", credentials) as channel:
            await fast_grpc.until_fast_aio(channel)
            assert await channel.unary_unary("/test/who")(b"") == expected
        await server.stop(None)

    asyncio.run(scene())


def test_an_insecure_call_has_no_identity(files):
    with serving(files, has_insecure_port=True) as (server, port):
        with secure_channel(files, port) as secure:
            fast_grpc.until_fast(secure)
            assert b"alice" in secure.unary_unary("/test/who")(b"")
            with penstock.grpc.insecure_channel(server.plain_target) as channel:
                fast_grpc.until_fast(channel)
                assert b"alice" not in channel.unary_unary("/test/who")(b"")


def stolen_offer(files, port):
    """Calls over TLS. Returns the server's answer."""
    with grpc.secure_channel(f"localhost:{port}",
                             client_credentials(files, "alice")) as channel:
        return _wire.decode_offer(channel.unary_unary(_wire.OFFER_METHOD)(
            _rules.host_identity()))


def test_nobody_enters_without_a_ticket(files):
    with serving(files) as (_, port):
        offer = stolen_offer(files, port)
        client = _rpc.Client(f"127.0.0.1:{offer.port}", offer.token, -1)

        def answer(last):
            code, _, head, message = client.call(
                "/test/who", _wire.encode_request((), last), b"", 20.0)
            assert code == 0 and message == b""
            return head

        assert _wire.decode_response(answer(b"")).code == 16
        ticket = offer.ticket
        for wrong in (b"x" * 40, ticket[:24] + b"x" * 16, ticket[:24],
                      b"x" * 16 + ticket[16:], ticket[:16] + b"x" * 8 +
                      ticket[24:], b""):
            assert answer(_identity.entry_of(wrong)) == _wire.UNKNOWN_TICKET
        client.close()


def test_a_channel_with_a_forgotten_ticket_gets_another(files):
    """Expects that the connection, and a stream on it, continue to work."""
    with serving(files) as (server, port):
        with secure_channel(files, port) as channel:
            fast_grpc.until_fast(channel)
            requests = queue.SimpleQueue()
            stream = channel.stream_stream("/test/echo")(iter(requests.get, None))
            requests.put(b"before")
            assert next(stream) == b"before"
            client = channel._way.client
            ticket = client.ticket
            server._door.tickets._known.clear()
            assert b"alice" in channel.unary_unary("/test/who")(b"")
            assert channel.describe()[3] == (
                "the server does not know the ticket any more")
            fast_grpc.until_fast(channel)
            assert channel._way.client is client and client.ticket != ticket
            # Expects that a late answer about the old ticket changes nothing.
            channel._way.on_decline(client, b"\x01" + ticket,
                                    _wire.UNKNOWN_TICKET)
            assert channel.describe()[1] == "shm"
            assert b"alice" in channel.unary_unary("/test/who")(b"")
            assert channel.describe()[1] == "shm"
            requests.put(b"after")
            assert next(stream) == b"after"
            requests.put(None)
            assert list(stream) == []


def test_another_server_does_not_get_the_ticket_of_an_old_connection(
        files, monkeypatch):
    """Replaces the server by a new one, which does not know the ticket."""
    with serving(files) as (server, port):
        with secure_channel(files, port) as channel:
            fast_grpc.until_fast(channel)
            old = channel._way.client
            ticket = old.ticket
            server._door.tickets._known.clear()
            assert b"alice" in channel.unary_unary("/test/who")(b"")
            decode = _wire.decode_offer
            monkeypatch.setattr(_wire, "decode_offer", lambda data: decode(
                data)._replace(token=b"another"))
            end = time.monotonic() + 20
            # A busy machine may see only the end of the attempt to connect.
            while channel.describe()[3] not in (
                    "connecting", "the data plane cannot be reached"):
                assert time.monotonic() < end, channel.describe()
                time.sleep(0.001)
            assert old.ticket == ticket
            assert old in channel._way._retired


@pytest.mark.parametrize("head, proof, reason", (
    (_wire.PLAIN_OK, b"x" * 32, "has not proved"),
    (_wire.STOPPING, b"", "gives no proof")))
def test_a_thief_of_the_port_gets_no_ticket(files, monkeypatch, head, proof,
                                            reason):
    """Lets another program listen at the port of the server's data plane. The
    program knows the server's token."""
    received = []
    decode = _wire.decode_offer

    def decode_other(data):
        offer = decode(data)
        thief.append(_rpc.Server("127.0.0.1:0", offer.token, -1))
        tickets.append(offer.ticket)
        return offer._replace(port=thief[0].port)

    thief, tickets = [], []
    with serving(files) as (_, port):
        monkeypatch.setattr(_wire, "decode_offer", decode_other)
        with secure_channel(files, port) as channel:
            while not thief:
                assert b"alice" in channel.unary_unary("/test/who")(b"")
            while channel.describe()[3] in ("not asked yet", "connecting"):
                for call in thief[0].take_some(9):
                    received.append(call.message() + call.metadata)
                    call.respond(head, proof)
                channel.unary_unary("/test/who")(b"")
            assert reason in channel.describe()[3]
            assert b"alice" in channel.unary_unary("/test/who")(b"")
            assert len(received) == 1
            assert tickets[0][:24] in received[0]
            assert tickets[0][24:] not in received[0]
        thief[0].close()


def test_other_credentials_stay_with_grpcio(files):
    tls = client_credentials(files, "alice")
    token = grpc.access_token_call_credentials("secret")
    with serving(files) as (_, port):
        for credentials in (grpc.composite_channel_credentials(tls, token),
                            grpc.local_channel_credentials()):
            with penstock.grpc.secure_channel(f"localhost:{port}",
                                              credentials) as channel:
                assert "TLS alone" in channel.describe()[3]
        with secure_channel(files, port) as channel:
            fast_grpc.until_fast(channel)
            prepared = channel.unary_unary("/test/who")._begin(
                None, None, token, None)
            assert prepared is None
            assert b"alice" in channel.unary_unary("/test/who")(
                b"", credentials=token)


def test_a_program_cannot_send_a_ticket(files):
    with serving(files, has_insecure_port=True) as (server, port):
        offer = stolen_offer(files, port)
        with penstock.grpc.insecure_channel(server.plain_target) as channel:
            fast_grpc.until_fast(channel)
            answer = channel.unary_unary("/test/who")(
                b"", metadata=((_wire.TICKET_KEY, offer.ticket),))
            assert b"alice" not in answer


def test_an_identity_does_not_leave_the_host(monkeypatch):
    monkeypatch.setenv("PENSTOCK_GRPC_HOSTS", "1")
    here = _rules.host_identity()
    offer = _wire.Offer(1, b"token", "0.0.0.0", b"another host", b"x" * 32)
    assert _rules.address_of_offer(offer, "other", True)[0] is None
    assert _rules.address_of_offer(offer, "other", False)[0] == "other:1"
    offer = offer._replace(host=here, address="192.0.2.1")
    assert _rules.address_of_offer(offer, "other", True)[0] is None
    offer = offer._replace(address="0.0.0.0")
    assert _rules.address_of_offer(offer, "other", True)[0] == "127.0.0.1:1"


class Client:
    """A context of a call over TLS."""

    def __init__(self, name=b"someone", peer="ipv4:127.0.0.1:1", chain=b""):
        self._name = name
        self._peer = peer
        self._chain = chain

    def auth_context(self):
        return {"transport_security_type": [b"ssl"], "x509_name": [self._name],
                "x509_pem_cert_chain": [self._chain]}

    def peer_identities(self):
        return (self._name,)

    def peer_identity_key(self):
        return "x509_name"

    def peer(self):
        return self._peer


def test_a_client_that_asks_often_pushes_out_nobody():
    tickets = _identity.Tickets()
    first = tickets.give(Client(b"first"))
    # Varies the chain behind the client's certificate, which the client can
    # choose.
    given = {tickets.give(Client(chain=b"%d" % number))
             for number in range(_identity._MAX_IDENTITIES)}
    assert len(given) == _identity._MAX_IDENTITIES
    assert tickets.identity_of(first).identities == (b"first",)
    assert all(tickets.identity_of(one).identities == (b"someone",)
               for one in given)


def test_old_identities_go_first():
    tickets = _identity.Tickets()
    first, kept = tickets.give(Client(b"first")), tickets.give(Client(b"kept"))
    for number in range(_identity._MAX_IDENTITIES - 1):
        tickets.give(Client(b"kept"))
        last = tickets.give(Client(b"%d" % number))
    assert tickets.identity_of(first) is None
    assert tickets.prove(first[:24] + bytes(32)) is None
    for one in kept, last:
        assert tickets.identity_of(one) is not None
        assert tickets.prove(one[:24] + bytes(32)) is not None
    assert tickets.prove(b"") is None


def test_clients_on_other_hosts_get_no_ticket():
    door = _identity.Door()
    door.open(_wire.Offer(1, b"token", "127.0.0.1", _rules.host_identity()))
    for question, size in ((_rules.host_identity(), _identity.TICKET_BYTES),
                           (b"another host", 0), (b"", 0)):
        answer, _ = door.answer(question, Client())
        assert len(_wire.decode_offer(answer).ticket) == size


if __name__ == "__main__":
    run_pytest.main(__file__)
