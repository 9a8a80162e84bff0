"""How ranks exchange their addresses."""

from __future__ import annotations

import os
import pathlib
import socket
import time
from typing import Any, List, Optional, Tuple

from .. import _collectives  # type: ignore[attr-defined]
from .._errors import (
    Cancelled, DeadlineExceeded, FailedPrecondition, InvalidArgument)

# The pause between two checks of a folder, in seconds.
_PAUSE = 0.02
# The time, in seconds, for which a rank leaves its file in the folder after it
# has refused another rank, so that the other rank can read the refusal.
_FAREWELL = 0.5
# An address for documentation (RFC 5737), to which no packet is ever sent.
_ELSEWHERE = "192.0.2.1"


def parse(address: str) -> Tuple[str, int]:
    """Splits "HOST:PORT". IPv6 is in brackets."""
    host, colon, port = str(address).rpartition(":")
    if not colon or not host or not port.isascii() or not port.isdigit() or (
            not 0 < int(port) < 65536):
        raise InvalidArgument(f"address is {address!r}: give HOST:PORT of "
                              "rank 0, with a port that is free there")
    return host.strip("[]"), int(port)


def resolve(host: str) -> str:
    """Returns a numeric address of a host, IPv4 if there is one."""
    try:
        found = socket.getaddrinfo(host, 1, type=socket.SOCK_DGRAM)
    except OSError as error:
        raise InvalidArgument(
            f"the name of rank 0's host, {host!r}, has no address: {error}"
        ) from error
    found.sort(key=lambda one: one[0] != socket.AF_INET)
    return str(found[0][4][0])


def check_numeric(host: str) -> None:
    """Raises InvalidArgument unless `host` is a numeric address."""
    try:
        socket.getaddrinfo(host.strip("[]"), None, flags=socket.AI_NUMERICHOST)
    except OSError as error:
        raise InvalidArgument(
            f"host is {host!r}: give a numeric address of this host, such as "
            "10.0.0.7") from error


def is_hidden(host: str, address: str) -> bool:
    """Returns True if the name of a host leads to a loopback address here,
    although other hosts may know another address. Debian's installer gives a
    machine's own name the address 127.0.1.1."""
    return (address.startswith("127.") and host != address
            and host != "localhost")


def in_brackets(address: str) -> str:
    return f"[{address}]" if ":" in address else address


def own_address(towards: Optional[str]) -> str:
    """Returns the address of this host from which packets go to `towards`, or
    to any other host. Returns the loopback address if no packet leaves this
    host. Sends nothing."""
    target = towards or _ELSEWHERE
    family = socket.AF_INET6 if ":" in target else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((target, 9))
            return in_brackets(str(probe.getsockname()[0]))
    except OSError:
        return "127.0.0.1"


def by_address(target: str, secret: bytes, rank: int, size: int,
               timeout: float, own: str) -> List[str]:
    """Exchanges addresses through rank 0, which listens at `target`."""
    return list(_collectives.exchange_addresses(target, secret, rank, size,
                                                timeout, own))


def by_store(store: Any, rank: int, size: int, timeout: float,
             own: str) -> List[str]:
    """Exchanges addresses through an object with the set(), get() and add() of
    c10d's Store. Ranks may form several groups, one after another."""
    number = store.add(f"penstock/groups of rank {rank}", 1)
    store.set(f"penstock/{number}/{rank}", f"{size}\n{own}")
    until = time.monotonic() + timeout
    found = []
    for other in range(size):
        text = _from_store(store, f"penstock/{number}/{other}", other, until)
        found.append(_check(text, other, rank, size))
    return found


def _from_store(store: Any, key: str, rank: int, until: float) -> str:
    wait = getattr(store, "wait", None)
    try:
        if wait is not None:
            import datetime  # pylint: disable=import-outside-toplevel
            left = max(until - time.monotonic(), 0.001)
            wait([key], datetime.timedelta(seconds=left))
        value = store.get(key)
    except Exception as error:
        raise DeadlineExceeded(
            f"rank {rank} did not come to the store: {error}") from error
    return value.decode() if isinstance(value, bytes) else str(value)


def _check(text: str, other: int, rank: int, size: int) -> str:
    theirs, _, address = text.partition("\n")
    if theirs != str(size):
        raise FailedPrecondition(
            f"rank {other} expects {theirs} ranks, rank {rank} expects {size}")
    return address


class Folder:
    """A folder that all ranks see, which is empty before and afterwards."""

    def __init__(self, path: Any, rank: int) -> None:
        self._path = pathlib.Path(path)
        self._rank = rank
        self._has_file = False

    def exchange(self, size: int, timeout: float, own: str) -> List[str]:
        """Writes this rank's address, and waits for the addresses of all
        ranks. Raises Cancelled after leave()."""
        self._write(f"{size}\n{own}\n")
        until = time.monotonic() + timeout
        found: List[str] = []
        while True:
            while len(found) < size:
                text = self._read(len(found))
                if text is None:
                    break
                found.append(self._check(text, len(found), size))
            if len(found) == size:
                return found
            if not self._has_file:
                raise Cancelled(f"rank {self._rank} has given up")
            if time.monotonic() >= until:
                missing = [rank for rank in range(size)
                           if self._read(rank) is None]
                raise DeadlineExceeded(
                    "these ranks did not come to "
                    f"{self._path}: {', '.join(map(str, missing))}")
            time.sleep(_PAUSE)

    def leave(self) -> None:
        """Deletes the file that this object has written. Call it once all ranks
        have met, or the meeting has failed. Idempotent."""
        if not self._has_file:
            return
        self._has_file = False
        try:
            self._file(self._rank).unlink()
        except OSError:
            pass  # another rank has deleted the folder

    def _check(self, text: str, other: int, size: int) -> str:
        try:
            return _check(text, other, self._rank, size)
        except FailedPrecondition:
            time.sleep(_FAREWELL)
            raise

    def _file(self, rank: int) -> pathlib.Path:
        return self._path / f"rank-{rank}"

    def _write(self, text: str) -> None:
        self._path.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = self._path / f".rank-{self._rank}.{os.getpid()}"
        try:
            # Makes the file readable only for this user, because the address
            # contains a secret.
            opened = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
            try:
                with open(opened, "w", encoding="ascii") as file:
                    file.write(text)
                self._link(draft)
            finally:
                draft.unlink(missing_ok=True)
        except FileExistsError as error:
            raise FailedPrecondition(
                f"{self._file(self._rank)} exists: rank {self._rank} was given "
                "twice, or a group that was never formed has used the folder. "
                "Give an empty folder") from error

    def _link(self, draft: pathlib.Path) -> None:
        try:
            os.link(draft, self._file(self._rank))
        except FileExistsError:
            raise
        except OSError as error:
            raise FailedPrecondition(
                f"{self._path} does not support hard links ({error.strerror}): "
                "give a folder on another disk, or address=") from error
        self._has_file = True

    def _read(self, rank: int) -> Optional[str]:
        file = self._file(rank)
        try:
            text = file.read_text("ascii").rstrip("\n")
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as error:
            raise FailedPrecondition(
                f"cannot read {file}: {error}. Give an empty folder") from error
        if not text.partition("\n")[0].isdigit():
            raise FailedPrecondition(
                f"{file} was not written by a rank: give an empty folder")
        return text
