"""One task of a cluster, in its own process.

The argument is JSON: cluster, job, index, protocol. The task writes "ready"
when it serves. Then it takes one command per line: "describe" writes the
plugin's description. The end of the input ends the process.
"""

import json
import os
import sys

import penstock_tensorflow
import tensorflow as tf


def main() -> None:
    spec = json.loads(sys.argv[1])
    server = tf.distribute.Server(
        spec["cluster"], spec["job"], spec["index"], protocol=spec["protocol"]
    )
    assert server
    print("ready", flush=True)
    for line in sys.stdin:
        assert line.strip() == "describe", line
        print(json.dumps(penstock_tensorflow.describe()), flush=True)
    os._exit(0)  # TensorFlow's servers are not made to be destroyed


main()
