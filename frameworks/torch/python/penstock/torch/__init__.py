"""PyTorch's collective operations over Penstock, for tensors of the CPU::

    torch.distributed.init_process_group("penstock")

The installed wheel needs no import: ``import torch`` finds the backend by the
entry point ``torch.backends``. ``"cpu:penstock,cuda:nccl"`` leaves tensors of
GPUs to NCCL.
"""

# Loads torch first, whose import runs the entry point, which imports
# _registration. Otherwise the entry point would find that module half
# initialized.
import torch as _torch

from ._registration import describe, register, use_pool

__all__ = ["describe", "register", "use_pool"]

register()
