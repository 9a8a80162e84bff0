"""Learns handwritten digits with a ParameterServerStrategy of TensorFlow.

One program for all tasks: TF_CONFIG says which one it is, the chief, a worker
or a parameter server, and by which protocol they talk (rpc_layer).
"""

import time

import digits
import tensorflow as tf


def serve(resolver):
    """A worker or a parameter server: does what the chief asks, for ever."""
    server = tf.distribute.Server(
        resolver.cluster_spec(), job_name=resolver.task_type,
        task_index=resolver.task_id, protocol=resolver.rpc_layer or "grpc")
    server.join()


# A loop of our own: model.fit of Keras 3, which TensorFlow has since 2.16, does
# not know ClusterCoordinator, and ends with an error under this strategy.
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

    def make_dataset(_):  # no seed: else all workers had the same order
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
