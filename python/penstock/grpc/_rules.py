"""Decides which channels and servers may use the data plane.

Each function returns an address and None, or None and the reason for staying
with the real gRPC.
"""

import hashlib
import ipaddress
import math
import os
import sys
import types

import grpc
from grpc._cython import cygrpc

from .. import _rpc

# Limits the name of the program in the heads of calls.
_MAX_USER_AGENT = 1024
# Options that choose among servers, repeat calls, or change messages.
_REAL_OPTIONS = frozenset((
    "grpc.default_compression_algorithm", "grpc.http_proxy",
    "grpc.lb_policy_name", "grpc.max_metadata_size",
    "grpc.absolute_max_metadata_size", "grpc.service_config"))


def option(options, key, default):
    """Returns the last value of an option."""
    value = default
    for name, given in options:
        if name == key:
            value = given
    return value


def max_send_bytes(options):
    """Returns the limit of the size of a sent message."""
    limit = option(options, "grpc.max_send_message_length", -1)
    return limit if limit >= 0 else 2**62


# The shortest time without input before a ping, and the shortest wait for the
# answer, in milliseconds.
_LEAST_KEEPALIVE_MS = 1000
_NEVER_MS = 2**31 - 1  # INT_MAX, which gRPC takes for "never"


def _keepalive_seconds(options, key, default):
    """Returns the value of an option in seconds, or `default` without it."""
    given = option(options, key, None)
    if not isinstance(given, int):
        return default
    if given >= _NEVER_MS:
        return math.inf
    return max(given, _LEAST_KEEPALIVE_MS) / 1000


def keepalive(options):
    """Returns the keepalive of a connection of the data plane. An option that is
    not given leaves the default of the data plane."""
    result = _rpc.Keepalive()
    result.time = _keepalive_seconds(options, "grpc.keepalive_time_ms",
                                     result.time)
    result.timeout = _keepalive_seconds(options, "grpc.keepalive_timeout_ms",
                                        result.timeout)
    permits = option(options, "grpc.keepalive_permit_without_calls", None)
    if isinstance(permits, int):
        result.permits_without_calls = bool(permits)
    return result


def split(address):
    """Returns the host and the port of "host:port" as texts. Raises ValueError
    for any other text."""
    host, colon, port = address.rpartition(":")
    if host[:1] == "[" and host[-1:] == "]":
        host = host[1:-1]
    elif ":" in host:
        raise ValueError("an address of IPv6 needs brackets")
    if not colon or not host or not port.isdigit() or int(port) > 65535:
        raise ValueError("not a host and a port")
    return host, port


def join(host, port):
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _goes_by_proxy(host, options):
    if not option(options, "grpc.enable_http_proxy", 1):
        return False
    if not any(os.environ.get(name)
               for name in ("grpc_proxy", "https_proxy", "http_proxy")):
        return False
    exceptions = os.environ.get("no_grpc_proxy") or os.environ.get("no_proxy")
    return not any(entry.strip() and host.endswith(entry.strip())
                   for entry in (exceptions or "").split(","))


def _uses_gevent():
    """Returns true if the program runs on gevent's loop, which would be
    blocked by waits for the data plane."""
    monkey = sys.modules.get("gevent.monkey")
    return "grpc.experimental.gevent" in sys.modules or (
        monkey is not None and monkey.is_module_patched("threading"))


def host_of_target(target, options):
    """Returns the host that a channel's data plane connects to."""
    if _uses_gevent():
        return None, "the process uses gevent"
    for prefix in ("dns:///", "dns:", "ipv4:", "ipv6:"):
        if target.startswith(prefix):
            target = target[len(prefix):]
            break
    try:
        host, _ = split(target)
    except ValueError:
        return None, f"the target {target!r} is not a host and a port"
    for name, value in options:
        if name in _REAL_OPTIONS and value:
            return None, f"the option {name} is for grpcio"
    if len(option(options, "grpc.primary_user_agent", "")) > _MAX_USER_AGENT:
        return None, "the option grpc.primary_user_agent is too long"
    if _goes_by_proxy(host, options):
        return None, "the environment names a proxy"
    return host, None


def _may_leave_host():
    return os.environ.get("PENSTOCK_GRPC_HOSTS") == "1"


def host_identity():
    """Returns bytes that are equal in processes of one kernel and one network
    namespace. Returns b"" if they are unknown."""
    try:
        with open("/proc/sys/kernel/random/boot_id", "rb") as file:
            boot = file.read().strip()
        space = os.stat("/proc/self/ns/net")
    except OSError:
        return b""
    return hashlib.sha256(
        b"%s %d %d" % (boot, space.st_dev, space.st_ino)).digest()


def address_of_server(address):
    """Returns the host at which a server's data plane listens. This is a loopback
    address, unless PENSTOCK_GRPC_HOSTS=1."""
    if _uses_gevent():
        return None, "the process uses gevent"
    try:
        host, _ = split(address)
        if host == "localhost":
            host = "127.0.0.1"
        parsed = ipaddress.ip_address(host)
    except ValueError:
        return None, f"{address!r} is not a numeric address and a port"
    if parsed.is_loopback or _may_leave_host():
        return str(parsed), None
    return "127.0.0.1", None


def address_of_secure_server():
    """Returns the host at which the data plane of a server listens if the server
    has only secure ports."""
    if _uses_gevent():
        return None, "the process uses gevent"
    return "127.0.0.1", None


def address_of_offer(offer, host, is_secure):
    """Returns the address to which a client connects. `host` is the host of the
    channel's target. A secure channel stays on this host.

    A forwarded port leads to a server on another host, and the offer's port may
    belong to another program on this host. Therefore the client connects only
    to loopback addresses, and only if the server is on this host.
    PENSTOCK_GRPC_HOSTS=1 removes both restrictions."""
    address = ipaddress.ip_address(offer.address)
    if offer.host and offer.host == host_identity():
        if address.is_loopback:
            return join(str(address), offer.port), None
        if address.is_unspecified:
            loopback = "127.0.0.1" if address.version == 4 else "::1"
            return join(loopback, offer.port), None
    if is_secure:
        return None, ("only grpcio keeps an identity between hosts and network "
                      "namespaces")
    if not _may_leave_host():
        return None, ("the server is on another host, or in another network "
                      "namespace, and PENSTOCK_GRPC_HOSTS is not 1")
    if address.is_loopback:
        return None, "the server's data plane is for its own host only"
    return join(host, offer.port), None


def foreign(function, made):
    """Returns the reason for staying with grpcio if another package has wrapped
    `function` of grpcio's, or the channel or server that `function` has made.
    The calls of the data plane would miss what the package adds. Returns None if
    both are grpcio's own."""
    own = grpc.intercept_channel.__code__.co_filename
    if (type(function) is types.FunctionType and
            function.__code__.co_filename == own and
            type(made).__module__ in ("grpc._channel", "grpc._server")):
        return None
    return "another package has wrapped grpcio's functions"


def is_insecure(context):
    """Returns true if the peer of a received call has no identity that the
    data plane would lose."""
    kinds = context.auth_context().get("transport_security_type", ())
    return (context.peer().startswith(("ipv4:", "ipv6:")) and
            all(kind == b"insecure" for kind in kinds))


def is_tls(context):
    """Returns true for a received call over TLS, whose identity a ticket can
    keep."""
    kinds = context.auth_context().get("transport_security_type", ())
    return (context.peer().startswith(("ipv4:", "ipv6:")) and
            list(kinds) == [b"ssl"])


def untrusted(credentials):
    """Returns the reason for staying with grpcio, or None for credentials of
    TLS alone. Other credentials prove an identity for each call, or an
    identity that TLS does not have."""
    own = getattr(credentials, "_credentials", None)
    if type(own) is cygrpc.SSLChannelCredentials:
        return None
    return "the channel's credentials are not those of TLS alone"


def changes_messages(compression):
    """Returns true for a compression other than none."""
    return compression not in (None, grpc.Compression.NoCompression)
