"""The parts that the servers of grpcio and of grpc.aio share."""

import logging
import weakref

from .. import _rpc
from . import _rules, _wire

_LOGGER = logging.getLogger(__name__)

live = weakref.WeakSet()  # the servers of the process

# The details of a call that a stopping server ends, with the code UNAVAILABLE.
STOPPED = b"Cancelling all calls"

# The default of grpc.max_receive_message_length.
_MAX_RECEIVE_BYTES = 4 * 1024 * 1024


def _max_receive_bytes(options):
    """Returns the limit of the size of a received message; -1 means no
    limit."""
    limit = _rules.option(options, "grpc.max_receive_message_length",
                          _MAX_RECEIVE_BYTES)
    return limit if limit >= 0 else -1


class TwoWays:
    """A server that has a real grpcio server and a port for the data plane. A
    mixin for grpc.Server and grpc.aio.Server.

    `_plane` is the data plane while there is one. `_reason` says why there is
    none."""

    def _set_up(self, real, offers, handlers, options, reason):
        """Sets the members. Call this function once, in __init__. `offers`
        answers clients that ask for the data plane."""
        self._plane = None
        self._real = real
        self._door = offers.door
        self._handlers = handlers
        self._max_receive_bytes = _max_receive_bytes(options or ())
        self._max_send_bytes = _rules.max_send_bytes(options or ())
        self._keepalive = _rules.keepalive(options or ())
        self._address = None  # the host at which the data plane listens
        self._reason = reason
        live.add(self)

    def _make_plane(self, port):
        """Returns the data plane over a port of _rpc. Raises RuntimeError or
        NotImplementedError if the server cannot have one."""
        raise NotImplementedError()

    def add_generic_rpc_handlers(self, generic_rpc_handlers):
        generic_rpc_handlers = tuple(generic_rpc_handlers)
        self._real.add_generic_rpc_handlers(generic_rpc_handlers)
        self._handlers.add_generic(generic_rpc_handlers)

    def add_registered_method_handlers(self, service_name, method_handlers):
        self._real.add_registered_method_handlers(service_name, method_handlers)
        self._handlers.add_registered(service_name, method_handlers)

    def add_insecure_port(self, address):
        port = self._real.add_insecure_port(address)
        if self._address is None:
            self._address, reason = _rules.address_of_server(address)
            self._reason = self._reason or reason
            self._door.has_insecure_port = True
        return port

    def add_secure_port(self, address, server_credentials):
        self._door.has_secure_port = True
        return self._real.add_secure_port(address, server_credentials)

    def _begin_plane(self):
        """Opens the data plane, if the server can have one."""
        if self._address is None and self._reason is None:
            self._address, self._reason = self._door.address()
        if self._reason is None:
            try:
                token = _rpc.new_token()
                port = _rpc.Server(_rules.join(self._address, 0), token,
                                   self._max_receive_bytes, self._keepalive)
                self._plane = self._make_plane(port)
            except (NotImplementedError, RuntimeError) as error:
                self._reason = str(error) or "the loop watches no descriptors"
        if self._reason is not None:
            self._door.close(self._reason)
            _LOGGER.info("the server uses grpcio only: %s", self._reason)
            return
        self._door.open(_wire.Offer(port.port, token, self._address,
                                    _rules.host_identity()))

    def describe(self):
        """Returns a list of (peer, path, detail, reason)."""
        return [] if self._plane is None else self._plane.describe()
