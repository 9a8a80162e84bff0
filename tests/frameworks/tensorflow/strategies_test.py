"""Tests TensorFlow's strategies. Only the name of the protocol is changed."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import cluster
import numpy as np
import penstock_tensorflow
import tensorflow as tf

PROTOCOL = penstock_tensorflow.PROTOCOL
MIRRORED = pathlib.Path(__file__).with_name("mirrored.py")


class MirroredTest(unittest.TestCase):
    def test_workers_of_one_host_reduce_by_a_group_and_survive_faults(self):
        with tempfile.TemporaryDirectory() as folder:
            outputs, _ = self.run_workers(
                2, group={0, 1}, PENSTOCK_TEST_FAULTS=folder)
        digests = {output[0]["digest"] for output in outputs}
        self.assertEqual(len(digests), 1)
        for output in outputs:
            [team] = output[0]["servers"][0]["teams"]
            self.assertEqual(team["state"], "reducing", team)
            # Reduces each of SIZES four times, and six types.
            self.assertGreaterEqual(team["reductions"], 4 * 3 + 4 + 6)
            # One team for each strategy. Only the last one is in use.
            teams = output[1]["servers"][0]["teams"]
            self.assertEqual(
                sorted(team["state"] for team in teams),
                ["ended", "ended", "reducing"], teams)
        self.assertRegex(
            outputs[0][2]["error"],
            "rank 1 has (died|left).*/task:0 /job:worker/replica:0/task:1")
        self.assertLess(outputs[0][2]["seconds"], 10)

    def test_the_ring_is_the_default_and_goes_over_shared_memory(self):
        # The first worker learns at once that the other has no teams.
        outputs, addresses = self.run_workers(
            2, group={0}, PENSTOCK_TENSORFLOW_MEMORY="pool")
        [team] = outputs[0][0]["servers"][0]["teams"]
        self.assertEqual(team["state"], "refused", team)
        self.assertIn("is not group there", team["reason"])
        self.assertEqual(outputs[1][0]["servers"][0]["teams"], [])
        for index, [output] in enumerate(outputs):
            route = cluster.route_to(output, addresses["worker"][1 - index])
            self.assertEqual(route["path"], "shm")
            self.assertGreater(route["bytes_received"], 4 << 20)
            self.assertEqual(route["grpc_calls"], 0)

    def test_a_worker_without_a_data_plane_makes_all_use_the_ring(self):
        outputs, _ = self.run_workers(
            2, stock={1}, group={0, 1})
        self.assertEqual(outputs[0][0]["digest"], outputs[1][0]["digest"])
        [team] = outputs[0][0]["servers"][0]["teams"]
        self.assertEqual(team["state"], "refused", team)
        self.assertIn("data plane", team["reason"])

    def run_workers(self, count, stock=(), group=(), **environment):
        """Returns the lines of each worker, and the addresses. Workers in
        `stock` use TensorFlow's own protocol. Workers in `group` reduce by a
        group."""
        addresses = cluster.addresses(worker=count)
        workers = []
        for index in range(count):
            config = json.dumps({
                "cluster": addresses,
                "task": {"type": "worker", "index": index},
                "rpc_layer": "grpc" if index in stock else PROTOCOL,
            })
            env = dict(os.environ, TF_CONFIG=config, **environment)
            if index in group:
                env["PENSTOCK_TENSORFLOW_ALL_REDUCE"] = "group"
            workers.append(subprocess.Popen(
                [sys.executable, str(MIRRORED)], stdout=subprocess.PIPE,
                text=True, env=env))
            self.addCleanup(workers[-1].stdout.close)
            self.addCleanup(workers[-1].kill)
        lines = []
        for worker in workers:
            output, _ = worker.communicate(timeout=120)
            self.assertEqual(worker.returncode, 0)
            lines.append([json.loads(line) for line in output.splitlines()
                          if line.startswith("{")])
        return lines, addresses


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
