"""Makes the backend known to ``torch.distributed``.

A module of its own for the entry point, which ``import torch`` loads within
``import penstock.torch``.
"""

import datetime
from typing import Any

import torch
import torch.distributed as _dist

_NAME = "penstock"
_PAGE = 4096  # the pool's size is a multiple


def register() -> None:
    """Makes the backend known to ``torch.distributed``.

    Importing ``penstock.torch`` does the same.
    """
    if _dist.is_available() and not hasattr(_dist.Backend, _NAME.upper()):
        _dist.Backend.register_backend(_NAME, _create, extended_api=True,
                                       devices=["cpu"])


def use_pool(nbytes: int = 1 << 30) -> None:
    """Gives the next process group memory that its ranks read in place.

    Call this before ``init_process_group``. The number of rank 0 counts for
    all. If the group is on one host, it takes ``nbytes`` of shared memory for
    each rank. Tensors of the CPU of 64 KiB and more, such as DDP's buckets,
    then are there as long as there is room. Operations on more than 512 KiB in
    this group copy nothing but the result. Other groups work as before.
    ``describe()`` counts the operations of both kinds.

    After ``os.fork()``, such a tensor is shared with the child, rather than
    copied when one of them writes.
    """
    if not 0 < nbytes <= 64 << 30:
        raise ValueError(f"nbytes is {nbytes}, expected 1 to 64 GiB")
    load().use_pool(-(-nbytes // _PAGE) * _PAGE)


def describe(group: Any = None) -> str:
    """Returns a text for people about a process group of this backend.

    The text names the paths to the other ranks. For a group with a pool, it
    also says how many large operations read tensors in place, and how many had
    to copy them.
    """
    return load().describe(
        (group or _dist.group.WORLD)._get_backend(torch.device("cpu")))


def load() -> Any:
    """Returns the extension module.

    Raises ``ImportError`` if the module is made for another PyTorch.
    """
    try:
        from . import _backend
    except ImportError as error:
        raise ImportError(
            "penstock.torch fits one minor release of PyTorch, and one release "
            f"of a distribution; with PyTorch {torch.__version__} it does not "
            f"load here: {error}") from error
    if _minor(_backend.built_for) != _minor(torch.__version__):
        raise ImportError(
            f"penstock.torch is made for PyTorch {_minor(_backend.built_for)}, "
            f"and this is {torch.__version__}: install the wheel for this "
            "release")
    return _backend


def _minor(release: str) -> str:
    return ".".join(release.split(".")[:2])


def _create(group: Any, _options: Any) -> Any:
    """Returns a backend for one process group. c10d calls this."""
    timeout = group.timeout
    if not isinstance(timeout, datetime.timedelta):
        timeout = datetime.timedelta(seconds=timeout)
    return load().create(
        store=group.store, rank=group.group_rank, size=group.group_size,
        timeout=timeout, group_name=group.group_id or "",
        global_ranks=list(group.global_ranks_in_group or ()),
        enable_reconfigure=getattr(group, "enable_reconfigure", False))
