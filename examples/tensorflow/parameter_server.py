"""Learns handwritten digits with a ParameterServerStrategy of TensorFlow.

All tasks run this program. TF_CONFIG names the task, which is the chief, a
worker or a parameter server, and the protocol (rpc_layer).
"""

import time

import digits
import tensorflow as tf


def serve(resolver):
    """Serves the chief, as a worker or a parameter server. Never returns."""
    server = tf.distribute.Server(
        resolver.cluster_spec(), job_name=resolver.task_type,
        task_index=resolver.task_id, protocol=resolver.rpc_layer or "grpc")
    server.join()


# Trains the model as the chief. Uses an explicit loop, because model.fit of
# Keras 3 (in TensorFlow since 2.16) does not support ClusterCoordinator.
def train(resolver, flags):
    training, _, held_out = digits.load(flags.csv)
    strategy = tf.distribute.ParameterServerStrategy(resolver)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    workers = resolver.cluster_spec().num_tasks("worker")
    steps = len(training[0]) // (flags.batch * workers)
    with strategy.scope():
        model = digits.network(flags.hidden, flags.seed)
        optimizer = digits.optimizer(
            flags.learning_rate, flags.epochs * steps * workers)
        optimizer.build(model.trainable_variables)

    def make_dataset(_):  # unseeded, so that workers have different orders
        return (tf.data.Dataset.from_tensor_slices(training)
                .shuffle(len(training[0])).repeat().batch(flags.batch))

    @tf.function
    def make_worker_dataset():
        return strategy.distribute_datasets_from_function(make_dataset)

    @tf.function
    def step(iterator):
        def replica(batch):
            images, labels = batch
            with tf.GradientTape() as tape:
                logits = model(images, training=True)
                loss = tf.reduce_mean(digits.losses(labels, logits))
            variables = model.trainable_variables
            gradients = tape.gradient(loss, variables)
            optimizer.apply_gradients(zip(gradients, variables))
            return loss
        return strategy.run(replica, args=(next(iterator),))

    iterator = iter(coordinator.create_per_worker_dataset(make_worker_dataset))
    for epoch in range(1, flags.epochs + 1):
        begun = time.perf_counter()
        results = [coordinator.schedule(step, args=(iterator,))
                   for _ in range(steps * workers)]
        coordinator.join()
        took = (time.perf_counter() - begun) / steps * 1e3
        loss = sum(coordinator.fetch(results)) / len(results)
        print(f"epoch {epoch}: loss {loss:.4f}, {took:.2f} ms a step")
    accuracy, loss = digits.evaluate(model, *held_out)
    print(f"accuracy {accuracy:.4f}, loss {loss:.9g} on held-out digits")


def main():
    flags = digits.parse_flags(__doc__, learning_rate=0.1)
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    if resolver.task_type in ("worker", "ps"):
        serve(resolver)
    else:
        train(resolver, flags)


main()
