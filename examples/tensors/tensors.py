"""Sends a numpy array to another process, and fetches it again.

tensors.py            the server: stores tensors, and prints its address
tensors.py HOST:PORT  the client: sends an array, and fetches it again
"""
import sys

import numpy
import penstock

if len(sys.argv) == 1:
    with penstock.TensorServer() as server:
        print(f"127.0.0.1:{server.port}", flush=True)
        server.wait()
else:
    with penstock.TensorClient(sys.argv[1]) as client:
        client.put({"x": numpy.arange(6.0).reshape(2, 3)})
        print(client.get(["x"])["x"].numpy())
        print("over", *penstock.describe_paths())
