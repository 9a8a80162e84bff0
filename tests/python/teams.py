"""Runs trainings of small models, with all of their workers in one process."""

import contextlib

import numpy as np
import peer

from penstock import ps

RATE = np.float32(0.125)


@contextlib.contextmanager
def workers(model, values, count=1, servers=1, **options):
    """Yields all workers of a training. The chief is the first."""
    with contextlib.ExitStack() as stack:
        addresses = [stack.enter_context(peer.ps_server(workers=count))
                     for _ in range(servers)]
        yield [stack.enter_context(
            ps.Worker(addresses, rank=rank, model=None if rank else model,
                      values=None if rank else values, **options))
               for rank in range(count)]


def dense(name="w", shape=(4, 3), **options):
    return ps.Dense(name, "f32", shape, optimizer=ps.Sgd(float(RATE)),
                    **options)


def sparse(name="emb", dim=8, **options):
    return ps.Sparse(name, dim, optimizer=ps.Sgd(float(RATE)), **options)
