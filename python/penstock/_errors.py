"""The exceptions of this package, one for each kind of failure."""

from __future__ import annotations


class Error(Exception):
    """What Penstock raises. Its text says what failed and what can be done.

    `code` is the name of gRPC's status, such as "NOT_FOUND".
    """

    code = "UNKNOWN"

    def __str__(self) -> str:
        # KeyError would quote it.
        return str(self.args[0]) if self.args else ""


class InvalidArgument(Error, ValueError):
    """An argument is wrong, or a peer's message."""

    code = "INVALID_ARGUMENT"


class NotFound(Error, KeyError):
    """The server has no tensor of that name."""

    code = "NOT_FOUND"


class DeadlineExceeded(Error, TimeoutError):
    """No answer came in time."""

    code = "DEADLINE_EXCEEDED"


class Unavailable(Error, ConnectionError):
    """The server cannot be reached, or an address not be used."""

    code = "UNAVAILABLE"


class ResourceExhausted(Error, MemoryError):
    """Memory, or the server's budget, does not suffice."""

    code = "RESOURCE_EXHAUSTED"


class FailedPrecondition(Error):
    """The object is in the wrong state, such as a client that is closed."""

    code = "FAILED_PRECONDITION"


_CLASSES: dict[str, type[Error]] = {
    kind.code: kind
    for kind in (InvalidArgument, NotFound, DeadlineExceeded, Unavailable,
                 ResourceExhausted, FailedPrecondition)
}


def error_of(code: str, message: str) -> Error:
    """Makes the exception of a status."""
    error = _CLASSES.get(code, Error)(message)
    error.code = code
    return error
