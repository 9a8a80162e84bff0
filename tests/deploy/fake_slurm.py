#!/usr/bin/python3 -B
"""Simulates srun and scontrol of a cluster whose nodes are loopback addresses.

Called by the name `srun` or `scontrol`. The program knows the flags that the
scripts of deploy/slurm use, and refuses all others. Tasks run side by side, in
blocks of --ntasks-per-node; SIGTERM ends them, as in Slurm.
"""

import argparse
import os
import pathlib
import signal
import subprocess
import sys


def expand(nodelist):
    """Expands 127.0.0.[1-3] like Slurm, or splits names at commas."""
    if "[" not in nodelist:
        return nodelist.split(",")
    prefix, _, numbers = nodelist.rstrip("]").partition("[")
    first, _, last = numbers.partition("-")
    return [f"{prefix}{n}" for n in range(int(first), int(last) + 1)]


def srun(arguments):
    parser = argparse.ArgumentParser(prog="srun", allow_abbrev=False)
    parser.add_argument("--overlap", action="store_true", required=True)
    parser.add_argument("--nodes", type=int, required=True)
    parser.add_argument("--ntasks", type=int, required=True)
    parser.add_argument("--ntasks-per-node", type=int, required=True)
    parser.add_argument("--nodelist")
    parser.add_argument("--kill-on-bad-exit", type=int, choices=[1],
                        required=True)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    flags = parser.parse_args(arguments)
    nodes = expand(flags.nodelist or os.environ["SLURM_JOB_NODELIST"])
    assert flags.nodes == len(nodes), (flags.nodes, nodes)
    assert flags.ntasks == flags.nodes * flags.ntasks_per_node, flags
    tasks = [subprocess.Popen(flags.command, env=dict(
        os.environ, SLURM_PROCID=str(rank),
        SLURMD_NODENAME=nodes[rank // flags.ntasks_per_node]))
             for rank in range(flags.ntasks)]

    def end(*_):
        for task in tasks:
            task.terminate()

    signal.signal(signal.SIGTERM, end)
    codes = []
    while len(codes) < len(tasks):
        pid, status = os.wait()
        task = next((task for task in tasks if task.pid == pid), None)
        if task is None:  # of the shell that became this process
            continue
        task.returncode = os.waitstatus_to_exitcode(status)
        codes.append(task.returncode)
        if task.returncode != 0:
            end()
    return max(abs(code) for code in codes)


def main():
    if pathlib.Path(sys.argv[0]).name == "scontrol":
        assert sys.argv[1:3] == ["show", "hostnames"], sys.argv
        print("\n".join(expand(sys.argv[3])))
        return 0
    return srun(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
