"""Pulls and pushes by a parameter server, or by a worker with TF1 sessions."""

import json
import sys

import serve
import tensorflow as tf

tf1 = tf.compat.v1


class Step:
    """Moves all variables of a model from or to the parameter server."""

    def __init__(self, server, op, shapes):
        graph = tf1.Graph()
        with graph.as_default():
            theirs = self._variables("/job:ps/task:0", shapes)
            ours = self._variables("/job:worker/task:0", shapes)
            move = self._pull if op == "pull" else self._push
            self._step = tf1.group(*[move(there, here)
                                     for there, here in zip(theirs, ours)])
            initialize = tf1.global_variables_initializer()
        config = tf1.ConfigProto()
        # Disables the optimizer that removes operations without effect, because
        # it would remove the transfers.
        config.graph_options.rewrite_options.disable_meta_optimizer = True
        config.graph_options.optimizer_options.opt_level = -1
        self._session = tf1.Session(server.target, graph=graph, config=config)
        self._session.run(initialize)

    def __call__(self):
        self._session.run(self._step)

    def __del__(self):
        self._session.close()

    @staticmethod
    def _pull(there, _):
        with tf1.device("/job:worker/task:0"):
            # Receives the tensor in a step without using it.
            with tf1.control_dependencies([tf1.identity(there.read_value())]):
                return tf1.no_op()

    @staticmethod
    def _push(there, here):
        with tf1.device("/job:worker/task:0"):
            value = here.read_value()
        with tf1.device("/job:ps/task:0"):
            return there.assign(value, read_value=False)

    @staticmethod
    def _variables(device, shapes):
        with tf1.device(device):
            return [tf1.Variable(tf1.ones(shape), use_resource=True)
                    for shape in shapes]


def main():
    spec = json.loads(sys.argv[1])
    tf1.disable_eager_execution()
    server = tf.distribute.Server(
        spec["cluster"], spec["job"], 0, protocol=spec["protocol"])
    if spec["job"] == "ps":
        serve.wait_for_the_end()
    serve.measure(lambda op, shapes: Step(server, op, shapes))


main()
