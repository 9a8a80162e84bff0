"""Deserializers that take a memoryview, so that a large message is not copied
out of shared memory."""

import functools

_MARK = "penstock_takes_memoryview"


def takes_memoryview(deserializer):
    """Returns a deserializer that may also get a memoryview.

        @penstock.grpc.takes_memoryview
        def to_array(message):
            return numpy.frombuffer(message, "float32")

    The memoryview is read-only, and shows memory that the sender can still
    write. The memory stays taken until the program has dropped the memoryview
    and all that refers to it. Short messages, and those over grpcio, arrive as
    bytes."""

    @functools.wraps(deserializer, updated=())
    def deserialize(message):
        return deserializer(message)

    setattr(deserialize, _MARK, True)
    return deserialize


def are_taken_by(deserializer):
    """Returns true for a deserializer that takes_memoryview() has made."""
    return getattr(deserializer, _MARK, False) is True
