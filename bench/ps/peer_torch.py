"""A process of peers.py with torch.distributed.rpc: a server or a worker.

usage: peer_torch.py server|worker PORT ELEMENTS

The server holds the values. A pull returns the values. A push subtracts a
gradient from the values, and returns afterwards.
"""

import json
import os
import sys
import time

import torch
import torch.distributed.rpc as rpc

RATE = 1 / 1024
values = None


def pull():
    return values


def push(gradient):
    values.sub_(gradient, alpha=RATE)


def work(elements):
    gradient = torch.ones(elements)

    def step():
        rpc.rpc_sync("server", pull)
        rpc.rpc_sync("server", push, args=(gradient,))

    steps = {"pull": lambda: rpc.rpc_sync("server", pull),
             "push": lambda: rpc.rpc_sync("server", push, args=(gradient,)),
             "step": step}
    print(json.dumps("ready"), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        seconds = []
        for _ in range(request["count"]):
            begun = time.perf_counter()
            steps[request["op"]]()
            seconds.append(time.perf_counter() - begun)
        print(json.dumps(seconds), flush=True)


def main():
    global values
    role, port, elements = sys.argv[1], sys.argv[2], int(sys.argv[3])
    if role == "server":
        values = torch.zeros(elements)
    options = rpc.TensorPipeRpcBackendOptions(
        init_method=f"tcp://127.0.0.1:{port}")
    rpc.init_rpc(role, rank=("server", "worker").index(role), world_size=2,
                 rpc_backend_options=options)
    if role == "worker":
        work(elements)
    else:
        sys.stdin.read()
    os._exit(0)  # skip shutdown(), which would wait for the other process


main()
