"""Tests TensorFlow's strategies. Only the name of the protocol is changed."""

import json
import os
import pathlib
import subprocess
import sys
import unittest

import cluster
import numpy as np
import penstock_tensorflow
import tensorflow as tf

PROTOCOL = penstock_tensorflow.PROTOCOL
MIRRORED = pathlib.Path(__file__).with_name("mirrored.py")


class MirroredTest(unittest.TestCase):
    def test_sums_are_right_and_go_over_shared_memory(self):
        self.check("heap")

    def test_workers_of_the_pool_do_not_wait_for_each_other(self):
        self.check("pool")

    def check(self, memory):
        addresses = cluster.addresses(worker=2)
        workers = []
        for index in range(2):
            config = json.dumps({
                "cluster": addresses,
                "task": {"type": "worker", "index": index},
                "rpc_layer": PROTOCOL,
            })
            workers.append(subprocess.Popen(
                [sys.executable, str(MIRRORED)], stdout=subprocess.PIPE,
                text=True,
                env=dict(os.environ, TF_CONFIG=config,
                         PENSTOCK_TENSORFLOW_MEMORY=memory)))
            self.addCleanup(workers[-1].stdout.close)
            self.addCleanup(workers[-1].kill)
        for index, worker in enumerate(workers):
            output, _ = worker.communicate(timeout=120)
            self.assertEqual(worker.returncode, 0)
            route = cluster.route_to(
                json.loads(output.splitlines()[-1]),
                addresses["worker"][1 - index])
            self.assertEqual(route["path"], "shm")
            self.assertGreater(route["bytes_received"], 4 << 20)
            self.assertEqual(route["grpc_calls"], 0)


class ParameterServerTest(unittest.TestCase):
    """Makes this process the chief."""

    def test_training_converges_and_goes_over_shared_memory(self):
        addresses = cluster.addresses(chief=1, ps=2, worker=2)
        tasks = [
            cluster.Task(addresses, job, index, PROTOCOL)
            for job in ("ps", "worker") for index in range(2)
        ]
        for task in tasks:
            self.addCleanup(task.stop)
        for task in tasks:
            task.wait_until_ready()
        resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
            tf.train.ClusterSpec(addresses), task_type="chief", task_id=0,
            rpc_layer=PROTOCOL)
        partitioner = (
            tf.distribute.experimental.partitioners.FixedShardsPartitioner(2))
        strategy = tf.distribute.ParameterServerStrategy(
            resolver, variable_partitioner=partitioner)
        coordinator = (
            tf.distribute.experimental.coordinator.ClusterCoordinator(strategy))
        size = 1 << 18
        with strategy.scope():
            weights = tf.Variable(tf.zeros([size]))

        @tf.function
        def step():
            def replica():
                with tf.GradientTape() as tape:
                    value = tf.concat([tf.identity(w) for w in
                                       weights.variables], axis=0)
                    tape.watch(value)
                    loss = tf.reduce_sum((value - 3.0) ** 2)
                gradient = tape.gradient(loss, value)
                for part, delta in zip(weights.variables,
                                       tf.split(gradient, 2)):
                    part.assign_sub(0.05 * delta)
                return loss
            return strategy.run(replica)

        for _ in range(60):
            coordinator.schedule(step)
        coordinator.join()
        final = np.concatenate([w.numpy() for w in weights.variables])
        np.testing.assert_allclose(final, np.full(size, 3.0), atol=0.1)
        for worker in tasks[2:]:
            description = worker.describe()
            for address in addresses["ps"]:
                route = cluster.route_to(description, address)
                self.assertEqual(route["path"], "shm")
                self.assertGreater(route["bytes_received"], 1 << 20)


if __name__ == "__main__":
    unittest.main()
