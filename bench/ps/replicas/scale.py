#!/usr/bin/python3
"""Simulates a large training whose servers have backups, with measured costs.

Each step, each worker pulls rows and pushes their gradients. Ids follow Zipf's
law, and a batch has each id once. A synchronous step waits for the slowest
worker and for the busiest server; an asynchronous worker waits for its own
calls. A server is busy with the bytes of its link, in each direction, and with
the CPU seconds that bench/ps/replicas/cost.py measured, spread over its cores.
When a server fails, all workers wait for the failover. Another server then
leads two shards, until the lost server is back, has copied its shards again,
and leads its own shard again.

  scale.py [--workers=N] [--servers=N] [--cores=N] [--steps=N] [--seed=N]
"""

import argparse

import numpy

# CPU seconds of all replicas of a shard, by the number of backups: for each call
# of a worker, and for each byte of a push. Measured by cost.py with rows, 4 KiB
# and 1 MiB a push: docs/lab/2026-11-29-cost-of-replicas.md.
CALL_CPU = {0: 134e-6, 1: 543e-6, 2: 1028e-6}
PUSH_BYTE_CPU = {0: 1.2e-9, 1: 4.8e-9, 2: 6.0e-9}
# Assumed: a pull costs as much as a push without backups.
PULL_CALL_CPU, PULL_BYTE_CPU = CALL_CPU[0], PUSH_BYTE_CPU[0]
# From kill -9 until all shards answer: measured by tests/ps/failover.
FAILOVER = 2.6
# Assumed: the seconds in which a returned server copies a byte of its shards.
COPY_BYTE = 1 / 400e6
ROW_BYTES = 64 * 4 + 8  # a row of 64 floats, and its id
BATCHES = 64  # drawn batches, of which each worker takes one in each step


def draw_batches(options):
    """Returns how many rows of each batch are at each server."""
    random = numpy.random.default_rng(options.seed)
    rows = numpy.zeros((BATCHES, options.servers))
    for worker in range(BATCHES):
        ids = random.zipf(options.zipf, options.batch)
        unique = numpy.unique(ids).astype(numpy.uint64)
        hashed = (unique * numpy.uint64(0x9E3779B97F4A7C15)) >> numpy.uint64(33)
        rows[worker] = numpy.bincount(
            (hashed % numpy.uint64(options.servers)).astype(int),
            minlength=options.servers)
    return rows


def busy_seconds(options, rows, backups, gigabits, leads):
    """Returns the time that each server needs for a step of all workers.

    leads: leads[shard, server] is 1 if the server leads the shard, otherwise 0.
    """
    pushed = rows.sum(axis=0) * ROW_BYTES  # by shard
    calls = (rows > 0).sum(axis=0)
    cpu = (calls * (CALL_CPU[backups] + PULL_CALL_CPU)
           + pushed * (PUSH_BYTE_CPU[backups] + PULL_BYTE_CPU)) / options.cores
    # Counts the traffic of a push: in at the primary, out to each backup, and
    # in at each backup. Pulled rows go out.
    link = gigabits * 1e9 / 8
    bytes_in = (1 + backups) * pushed / link
    bytes_out = (1 + backups) * pushed / link
    return numpy.maximum(numpy.maximum(bytes_in, bytes_out), cpu) @ leads


def simulate(options, batches, backups, gigabits, synchronous):
    random = numpy.random.default_rng(options.seed)
    own = numpy.eye(options.servers)
    time, paused, steps, hot = 0.0, 0.0, 0, []
    next_failure = random.exponential(options.failure_every)
    doubled_until, lost = 0.0, 0
    shard_bytes = options.rows * ROW_BYTES / options.servers
    while steps < options.steps:
        rows = batches[random.integers(BATCHES, size=options.workers)]
        compute = random.lognormal(numpy.log(options.compute), options.spread,
                                   options.workers)
        leads = own
        if time < doubled_until and backups > 0:
            leads = own.copy()
            leads[lost] = 0
            leads[lost, (lost + 1) % options.servers] = 1
        busy = busy_seconds(options, rows, backups, gigabits, leads)
        hot.append(busy.max() / busy.mean())
        if synchronous:
            took = compute.max() + busy.max()
        else:
            # All workers push at their own pace, so the busiest server is the
            # limit.
            took = max(numpy.mean(compute) + busy.mean(), busy.max())
        # Simulates one step and multiplies its time, because steps are alike.
        many = 20
        steps += many
        time += many * took
        while backups > 0 and time > next_failure:
            time += FAILOVER
            paused += FAILOVER
            lost = int(random.integers(options.servers))
            doubled_until = time + options.restart + shard_bytes * COPY_BYTE
            next_failure += random.exponential(options.failure_every)
    return steps / time, paused / time, numpy.mean(hot), busy.max()


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--workers", type=int, default=1000)
    parser.add_argument("--servers", type=int, default=100)
    parser.add_argument("--cores", type=int, default=16)
    parser.add_argument("--batch", type=int, default=100000,
                        help="ids of a batch, before repeated ones are merged")
    parser.add_argument("--zipf", type=float, default=1.2)
    parser.add_argument("--rows", type=float, default=4e8,
                        help="of the table, at all servers together")
    parser.add_argument("--compute", type=float, default=0.1,
                        help="median seconds of a worker's own work")
    parser.add_argument("--spread", type=float, default=0.15,
                        help="standard deviation of its logarithm: stragglers")
    parser.add_argument("--failure-every", type=float, default=600)
    parser.add_argument("--restart", type=float, default=60,
                        help="seconds until a lost server runs again")
    parser.add_argument("--steps", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    print(f"{options.workers} workers, {options.servers} servers of "
          f"{options.cores} cores, seed {options.seed}")
    batches = draw_batches(options)
    print(f"{numpy.mean(batches.sum(axis=1)):.0f} rows a batch, of "
          f"{ROW_BYTES} bytes")
    print(f"{'tables':>12} {'backups':>7} {'Gb/s':>5} {'steps/s':>8} "
          f"{'paused':>7} {'hottest':>8} {'busy ms':>8}")
    for synchronous in (True, False):
        for backups in (0, 1, 2):
            for gigabits in (25, 50, 100, 200):
                rate, paused, hot, busy = simulate(options, batches, backups,
                                                   gigabits, synchronous)
                print(f"{'synchronous' if synchronous else 'asynchronous':>12} "
                      f"{backups:>7} {gigabits:>5} {rate:>8.2f} "
                      f"{100 * paused:>6.2f}% {hot:>8.2f} {1e3 * busy:>8.1f}",
                      flush=True)


if __name__ == "__main__":
    main()
