"""The bytes of calls between this package's clients and servers.

Numbers are little-endian. The method, the deadline and the message are those of
transport/rpc. A head is the metadata there:

    request    u8 1, then entries of metadata
    response   u8 1, u8 kind (0: an outcome, 1: declined, 2: declined by a
               server that is stopping, 3: declined because the ticket is
               not known), u8 status code,
               u32 length of the details, the details,
               u16 number of entries of initial metadata, these entries,
               then entries of trailing metadata
    an entry   u16 length of the key, u32 length of the value, key, value

The question of OFFER_METHOD is the identity of the client's host if the client
asks over TLS, and empty otherwise. The answer:

    offer      u8 2, u16 port, u8 lengths of the token, the address and the
               identity of the host, then these three
    over TLS   u8 3, then the same, then u8 length of the ticket, the ticket

A server declines a call that only the real server can serve. No handler has
run, so that the client calls again over the real channel.
"""

import collections
import re
import struct

Metadatum = collections.namedtuple("_Metadatum", ("key", "value"))
Outcome = collections.namedtuple("Outcome",
                                 ("code", "details", "initial", "trailing"))
# The data plane of a server. `host` is the identity of its host, and `ticket`
# that of a client over TLS; see _identity.py.
Offer = collections.namedtuple(
    "Offer", ("port", "token", "address", "host", "ticket"), defaults=(b"",))

# The key of the last metadata entry, which has the ticket.
TICKET_KEY = "penstock-ticket-bin"

# The method by which a client asks for a server's data plane.
OFFER_SERVICE = "penstock.Rpc"
OFFER_METHOD = f"/{OFFER_SERVICE}/Offer"

_OTHER_RELEASE = "the server's penstock is of another release"

_VERSION = b"\x01"
_ENTRY = struct.Struct("<HI")
_RESPONSE = struct.Struct("<BBBI")
_COUNT = struct.Struct("<H")
_OFFER = struct.Struct("<BHBBB")

# The response of most calls: OK without details and metadata.
PLAIN_OK = _RESPONSE.pack(1, 0, 0, 0) + _COUNT.pack(0)
DECLINED = _RESPONSE.pack(1, 1, 0, 0) + _COUNT.pack(0)
STOPPING = _RESPONSE.pack(1, 2, 0, 0) + _COUNT.pack(0)
UNKNOWN_TICKET = _RESPONSE.pack(1, 3, 0, 0) + _COUNT.pack(0)

# Limits the name of a method, as transport/rpc does.
_MAX_METHOD_BYTES = 255
# Limits the size of metadata, which HTTP/2 defines. gRPC by default refuses
# larger metadata.
_MAX_METADATA_BYTES = 8192
# Limits metadata of answers, as gRPC does by default.
_MAX_ANSWER_BYTES = 16384
# Limits the details of a status. gRPC sends them as metadata.
_MAX_DETAILS_BYTES = 4096
# Limit the head of a received call or answer. Both limits are above the heads
# that this package sends. A larger head would stop an event loop for tens of
# milliseconds.
_MAX_HEAD_BYTES = 48 * 1024
_MAX_ENTRIES = 1100

_KEY = re.compile(r"[0-9a-z_.-]+")
_TEXT = re.compile(r"[!-~](?:[ -~]*[!-~])?")
_ANSWER = re.compile(rb"[ -~]*")
# The keys that gRPC handles itself.
_RESERVED = frozenset((
    "content-type", "grpc-accept-encoding", "grpc-encoding", "grpc-message",
    "grpc-status", "grpc-tags-bin", "grpc-timeout", "grpc-trace-bin", "host",
    "grpc-internal-encoding-request", "te", "user-agent"))
# The keys that gRPC passes on if a handler sends them.
_ANSWERED = frozenset(("host", "user-agent"))


def has_room_for(method):
    """Returns true if a call over the data plane can name the method."""
    name = method.encode() if isinstance(method, str) else method
    return 0 < len(name) <= _MAX_METHOD_BYTES


def _is_ordinary(key, value):
    if type(key) is not str or not _KEY.fullmatch(key) or key in _RESERVED:
        return False
    if key.endswith("-bin"):
        return type(value) is bytes
    return type(value) is str and (not value or _TEXT.fullmatch(value))


def encode_metadata(metadata):
    """Returns the entries as bytes. Returns None for metadata that only the
    real gRPC can judge: unusual types, keys or values, or too many entries."""
    parts = []
    size = 0
    try:
        for key, value in metadata:
            if not _is_ordinary(key, value):
                return None
            key = key.encode("ascii")
            if type(value) is str:
                value = value.encode("ascii")
            size += len(key) + len(value) + 32
            parts += (_ENTRY.pack(len(key), len(value)), key, value)
    except (TypeError, ValueError):
        return None
    return b"".join(parts) if size <= _MAX_METADATA_BYTES else None


def encode_answer(metadata):
    """Returns the number of entries and the entries as bytes. Treats metadata of
    a handler as grpcio does: converts keys and values, and drops entries that
    gRPC itself sends. Raises ValueError for metadata that is invalid or too
    large."""
    parts = []
    count = size = 0
    for key, value, *_ in metadata or ():
        key, value = (part.encode("utf-8") if isinstance(part, str) else
                      bytes(memoryview(part)) for part in (key, value))
        name = key.decode("ascii")
        if not _KEY.fullmatch(name) or not (
                name.endswith("-bin") or _ANSWER.fullmatch(value)):
            raise ValueError("Invalid metadata")
        if name in _RESERVED - _ANSWERED:
            continue
        count += 1
        size += len(key) + len(value) + 32
        parts += (_ENTRY.pack(len(key), len(value)), key, value)
    if size > _MAX_ANSWER_BYTES:
        raise ValueError("the handler's metadata is too large")
    return count, b"".join(parts)


def _check_size(head):
    if len(head) > _MAX_HEAD_BYTES:
        raise ValueError("the metadata is too large")


def _take(data, at, count):
    """Reads `count` entries from `data`, beginning at `at`, or all entries if
    `count` is None. Returns the entries and the position after them."""
    entries = []
    while at < len(data) if count is None else len(entries) < count:
        if len(entries) == _MAX_ENTRIES:
            raise ValueError("too many entries of metadata")
        key_size, value_size = _ENTRY.unpack_from(data, at)
        middle = at + _ENTRY.size + key_size
        key = data[at + _ENTRY.size:middle].decode("ascii")
        at = middle + value_size
        if at > len(data):
            raise ValueError("an entry ends too early")
        value = data[middle:at]
        if not key.endswith("-bin"):
            value = value.decode("ascii")
        entries.append(Metadatum(key, value))
    return tuple(entries), at


def encode_request(metadata, last=b""):
    """Returns the head of a request. Returns None like encode_metadata(). The
    entries `last` follow those of `metadata`."""
    if not metadata:
        return _VERSION + last
    entries = encode_metadata(metadata)
    return None if entries is None else _VERSION + entries + last


def user_agent(text):
    """Returns the entry of metadata with the client's name, as bytes."""
    text = text.encode("ascii", "replace")
    return _ENTRY.pack(len(b"user-agent"), len(text)) + b"user-agent" + text


def decode_request(head):
    """Returns the metadata of a request. Raises ValueError for a malformed
    head."""
    try:
        _check_size(head)
        if head[:1] != _VERSION:
            raise ValueError("another version")
        return _take(head, 1, None)[0]
    except struct.error as error:
        raise ValueError(str(error)) from error


def encode_response(code, details, initial, trailing):
    """Returns the head of a response. Raises ValueError as encode_answer()
    does. `details` are bytes."""
    count, first = encode_answer(initial)
    _, last = encode_answer(trailing)
    details = details[:_MAX_DETAILS_BYTES]
    return (_RESPONSE.pack(1, 0, code, len(details)) + details +
            _COUNT.pack(count) + first + last)


def encode_initial(metadata):
    """Returns the head of a stream's first answer. Raises ValueError like
    encode_answer()."""
    return _VERSION + encode_answer(metadata)[1]


def decode_response(head):
    """Returns an Outcome, or None if the server declined the call. Raises
    ValueError for a malformed head."""
    try:
        _check_size(head)
        version, kind, code, size = _RESPONSE.unpack_from(head)
        if version != 1 or kind > 3 or code > 16:
            raise ValueError("another version")
        if kind:
            return None
        end = _RESPONSE.size + size
        details = head[_RESPONSE.size:end].decode("utf-8", "replace")
        (count,) = _COUNT.unpack_from(head, end)
        initial, at = _take(head, end + _COUNT.size, count)
        return Outcome(code, details, initial, _take(head, at, None)[0])
    except struct.error as error:
        raise ValueError(str(error)) from error


def encode_offer(offer):
    """Returns the answer to a call of OFFER_METHOD, encoded."""
    address = offer.address.encode("ascii")
    version, ticket = 2, b""
    if offer.ticket:
        version, ticket = 3, bytes((len(offer.ticket),)) + offer.ticket
    return _OFFER.pack(version, offer.port, len(offer.token), len(address),
                       len(offer.host)) + (offer.token + address + offer.host +
                                           ticket)


def decode_offer(data):
    """Decodes an Offer. Raises ValueError for a malformed one."""
    try:
        version, port, *sizes = _OFFER.unpack_from(data)
    except struct.error as error:
        raise ValueError(_OTHER_RELEASE) from error
    middle = _OFFER.size + sizes[0]
    end = middle + sizes[1]
    last = end + sizes[2]
    ticket = b""
    if version == 3:
        ticket = data[last + 1:]
        data = data[:last] if data[last:last + 1] == bytes((len(ticket),)) else b""
    if (version not in (2, 3) or not port or not 1 <= sizes[0] <= 64 or
            len(data) != last):
        raise ValueError(_OTHER_RELEASE)
    return Offer(port, data[_OFFER.size:middle],
                 data[middle:end].decode("ascii"), data[end:], ticket)
