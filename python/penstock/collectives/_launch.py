"""Reads from the environment which rank a launcher has given to this
process."""

from __future__ import annotations

import re
from typing import Mapping, NamedTuple, Optional

from .._errors import InvalidArgument

# The ports for Slurm's jobs. They are below the ports that Linux gives to
# clients.
_FIRST_PORT, _PORTS = 20000, 10000


class Launch(NamedTuple):
    """The place of a process in its job."""

    launcher: str
    rank: int
    size: int
    address: Optional[str]  # HOST:PORT of rank 0
    job: str                # differs between jobs
    # True if the launcher itself runs a store of c10d at the address.
    has_store: bool = False


def find(environ: Mapping[str, str]) -> Optional[Launch]:
    """Returns the place that the environment describes. Returns None without a
    launcher."""
    for name, launcher in _LAUNCHERS.items():
        if name in environ:
            return launcher(environ)
    return None


def _number(environ: Mapping[str, str], name: str) -> int:
    text = environ.get(name, "")
    if not text.isascii() or not text.isdigit():
        raise InvalidArgument(
            f"{name} is {text!r} in the environment, expected a number: give "
            "rank= and size= yourself, or start the program by a launcher")
    return int(text)


def _address(environ: Mapping[str, str]) -> Optional[str]:
    """Returns the address of rank 0: from PyTorch's variables, or the first
    node of Slurm's job with a port that is computed from the job's number."""
    host, port = environ.get("MASTER_ADDR"), environ.get("MASTER_PORT")
    if host and port:
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    job = environ.get("SLURM_JOB_ID", "")
    nodes = (environ.get("SLURM_STEP_NODELIST")
             or environ.get("SLURM_JOB_NODELIST"))
    if not nodes or not job.isascii() or not job.isdigit():
        return None
    return f"{first_node(nodes)}:{_FIRST_PORT + int(job) % _PORTS}"


def _job(environ: Mapping[str, str]) -> str:
    return (f"{environ.get('SLURM_JOB_ID', '')}."
            f"{environ.get('SLURM_STEP_ID', '')}")


def _torchrun(environ: Mapping[str, str]) -> Launch:
    restart = environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    return Launch("torchrun", _number(environ, "RANK"),
                  _number(environ, "WORLD_SIZE"), _address(environ),
                  f"{environ.get('TORCHELASTIC_RUN_ID', '')}/{restart}",
                  environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True")


def _open_mpi(environ: Mapping[str, str]) -> Launch:
    return Launch("Open MPI's mpirun",
                  _number(environ, "OMPI_COMM_WORLD_RANK"),
                  _number(environ, "OMPI_COMM_WORLD_SIZE"), _address(environ),
                  environ.get("PMIX_NAMESPACE", ""))


def _pmi(environ: Mapping[str, str]) -> Launch:
    return Launch("mpiexec", _number(environ, "PMI_RANK"),
                  _number(environ, "PMI_SIZE"), _address(environ),
                  _job(environ))


def _slurm(environ: Mapping[str, str]) -> Launch:
    return Launch("Slurm", _number(environ, "SLURM_PROCID"),
                  _number(environ, "SLURM_NTASKS"), _address(environ),
                  _job(environ))


def first_node(nodes: str) -> str:
    """Returns the first node of Slurm's list of nodes, such as
    "n[01-03,07],m1". Rank 0 runs there."""
    match = re.match(r"([^,\[]*)(?:\[([^,\-\]]*)[^\]]*\]([^,\[]*))?", nodes)
    assert match is not None  # because the expression matches any text
    return "".join(part or "" for part in match.groups())


# The launchers by their variable, in the order of the checks. Slurm comes
# last, because its variables are also set for torchrun or mpirun within a job
# of Slurm.
_LAUNCHERS = {
    "RANK": _torchrun,
    "OMPI_COMM_WORLD_RANK": _open_mpi,
    "PMI_RANK": _pmi,
    "SLURM_PROCID": _slurm,
}
