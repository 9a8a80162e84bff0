"""Stores the identities of TLS for calls over the data plane.

A server gives a ticket to each client that asks over TLS. A ticket is a name
and a secret. Both stay on the host: a secure channel uses the data plane at a
loopback address only.

1. The client connects, and sends the ticket's name and a random number. The
   server proves by the secret that it is the server that TLS has proved.
   Somebody else may have taken the port meanwhile.
2. Each call has the ticket in its head. The server gives the handler the
   identity that the client had when it asked.

The name has the number of an identity and a random number. The server computes
the secret from the name. The server keeps one entry for each identity of TLS,
not one for each ticket. A client that asks often therefore evicts no other
client.
"""

import collections
import hashlib
import hmac
import os
import struct
import threading

import grpc

from . import _rules, _wire

# The method by which a client lets the server prove the secret.
PROVE_METHOD = "/penstock.Rpc/Prove"
_WHO_BYTES = 16  # of a name: the number of the identity
_NAME_BYTES, _SECRET_BYTES, _NUMBER_BYTES = 24, 16, 32
TICKET_BYTES = _NAME_BYTES + _SECRET_BYTES
# Limits the identities of a server. The identity that has not asked for the
# longest time is evicted first.
_MAX_IDENTITIES = 4096

# The client of a call, as a handler's context describes it.
Identity = collections.namedtuple(
    "Identity", ("auth_context", "identities", "identity_key"))


def entry_of(ticket):
    """Returns the last entry of the heads of calls, as bytes."""
    key = _wire.TICKET_KEY.encode()
    return struct.pack("<HI", len(key), len(ticket)) + key + ticket


def _proof(secret, number):
    return hmac.digest(secret, b"penstock server" + number, hashlib.sha256)


# The entries that a client with one certificate can change without limit.
_VARIES = ("x509_pem_cert_chain", "ssl_session_reused")


def _bytes_of(identity):
    """Returns a byte string that is equal for equal identities only."""
    auth_context = sorted((key, list(values)) for key, values in
                          identity.auth_context.items() if key not in _VARIES)
    return repr((auth_context, identity.identities,
                 identity.identity_key)).encode()


class Tickets:
    """The tickets of a server. Thread-safe."""

    def __init__(self):
        self._key = os.urandom(32)
        self._lock = threading.Lock()
        self._known = collections.OrderedDict()  # identities by their numbers

    def _hash(self, purpose, data):
        return hmac.digest(self._key, purpose + data, hashlib.sha256)

    def _secret(self, name):
        return self._hash(b"secret", name)[:_SECRET_BYTES]

    def give(self, context):
        """Returns a ticket for the client of a call over TLS."""
        identity = Identity(dict(context.auth_context()),
                            context.peer_identities(),
                            context.peer_identity_key())
        who = self._hash(b"identity", _bytes_of(identity))[:_WHO_BYTES]
        with self._lock:
            self._known[who] = identity
            self._known.move_to_end(who)
            while len(self._known) > _MAX_IDENTITIES:
                self._known.popitem(last=False)
        name = who + os.urandom(_NAME_BYTES - _WHO_BYTES)
        return name + self._secret(name)

    def identity_of(self, ticket):
        """Returns the identity of a ticket. Returns None for a wrong ticket,
        and for an identity that was evicted."""
        name, secret = ticket[:_NAME_BYTES], ticket[_NAME_BYTES:]
        if not hmac.compare_digest(secret, self._secret(name)):
            return None
        return self._known.get(name[:_WHO_BYTES])

    def prove(self, message):
        """Returns the answer to PROVE_METHOD, or None for a bad question."""
        name, number = message[:_NAME_BYTES], message[_NAME_BYTES:]
        if len(number) != _NUMBER_BYTES or name[:_WHO_BYTES] not in self._known:
            return None
        return _proof(self._secret(name), number)


class Door:
    """Decides which clients may call over the data plane of a server, and with
    which identity."""

    def __init__(self):
        self.tickets = Tickets()
        self.has_insecure_port = False
        self.has_secure_port = False
        self._offer = None  # while there is a data plane
        self.reason = "the server has not started"

    def address(self):
        """Returns the host at which the data plane of a server without insecure
        ports listens, or None and the reason for having none."""
        if not self.has_secure_port:
            return None, "the server has no port"
        return _rules.address_of_secure_server()

    def open(self, offer):
        self._offer = offer

    def close(self, reason):
        self._offer, self.reason = None, reason

    def answer(self, question, context):
        """Returns the answer to a request for the data plane. If the request
        is refused, returns None, the code and the reason. `question` names the
        client's host. Clients on other hosts get no ticket, because they
        cannot use one."""
        is_secure = _rules.is_tls(context)
        if not is_secure and not _rules.is_insecure(context):
            return None, (grpc.StatusCode.FAILED_PRECONDITION,
                          "only grpcio can prove the connection's identity")
        offer = self._offer
        if offer is None:
            return None, (grpc.StatusCode.UNAVAILABLE, self.reason)
        if is_secure and question == _rules.host_identity():
            offer = offer._replace(ticket=self.tickets.give(context))
        return _wire.encode_offer(offer), None

    def enter(self, metadata, nobody):
        """Returns the metadata without the ticket, and the identity of a call.
        The identity is `nobody` for a call without a ticket, and None if the
        ticket's identity was evicted. Raises PermissionError if a ticket is
        missing."""
        if metadata and metadata[-1].key == _wire.TICKET_KEY:
            return metadata[:-1], self.tickets.identity_of(metadata[-1].value)
        if not self.has_insecure_port:
            raise PermissionError("the call has no ticket")
        return metadata, nobody


class Proof:
    """Requests from the server of a client of _rpc the proof of its
    identity."""

    def __init__(self, ticket):
        self._ticket = ticket
        self._number = os.urandom(_NUMBER_BYTES)
        self._call = None

    def is_given(self, client):
        """Returns true once the server has proved its identity, and false
        before. Raises ValueError after a wrong proof, and ConnectionError if
        the server gives none. Call it repeatedly once the client is ready."""
        if self._call is None:
            name = self._ticket[:_NAME_BYTES]
            self._call = client.start(PROVE_METHOD, _wire.encode_request(()),
                                      name + self._number, 20.0)
        if not self._call.is_done():
            return False
        code, _, head, message = self._call.outcome()
        if code or head != _wire.PLAIN_OK:
            raise ConnectionError("the server of the data plane gives no proof")
        expected = _proof(self._ticket[_NAME_BYTES:], self._number)
        if not hmac.compare_digest(message, expected):
            raise ValueError("the server of the data plane has not proved that it "
                             "is the channel's server")
        return True
