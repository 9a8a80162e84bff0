"""The exceptions of this package, one class for each kind of failure."""

from __future__ import annotations


class Error(Exception):
    """The base class of Penstock's exceptions.

    The text says which operation failed, and how to fix the cause. `code` is
    the name of gRPC's status code, such as "NOT_FOUND".
    """

    code = "UNKNOWN"

    def __str__(self) -> str:
        # Returns the text without quotes, which KeyError's own __str__() would
        # add.
        return str(self.args[0]) if self.args else ""


class InvalidArgument(Error, ValueError):
    """An argument or a peer's message is invalid."""

    code = "INVALID_ARGUMENT"


class NotFound(Error, KeyError):
    """The server has no tensor with this name."""

    code = "NOT_FOUND"


class DeadlineExceeded(Error, TimeoutError):
    """No answer came before the timeout."""

    code = "DEADLINE_EXCEEDED"


class Unavailable(Error, ConnectionError):
    """The server cannot be reached, or an address cannot be used."""

    code = "UNAVAILABLE"


class ResourceExhausted(Error, MemoryError):
    """There is not enough memory, or the server's budget is exhausted."""

    code = "RESOURCE_EXHAUSTED"


class FailedPrecondition(Error):
    """The object is in the wrong state, for example a closed client."""

    code = "FAILED_PRECONDITION"


class Cancelled(Error):
    """A rank has aborted the group of an operation."""

    code = "CANCELLED"


_CLASSES: dict[str, type[Error]] = {
    kind.code: kind
    for kind in (InvalidArgument, NotFound, DeadlineExceeded, Unavailable,
                 ResourceExhausted, FailedPrecondition, Cancelled)
}


def error_of(code: str, message: str) -> Error:
    """Makes the exception for a status."""
    error = _CLASSES.get(code, Error)(message)
    error.code = code
    return error
