"""Learns handwritten digits with a MultiWorkerMirroredStrategy of TensorFlow.

Every worker runs this program. TF_CONFIG names the worker and the protocol
(rpc_layer).
"""

import time

import digits
import tensorflow as tf


# Trains the model. Uses an explicit loop, because model.fit of Keras 3 (in
# TensorFlow since 2.16) does not support this strategy.
def train(flags):
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    training, _, held_out = digits.load(flags.csv)
    batch = flags.batch * strategy.num_replicas_in_sync
    steps = len(training[0]) // batch
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = (
        tf.data.experimental.AutoShardPolicy.DATA)
    dataset = (tf.data.Dataset.from_tensor_slices(training)
               .shuffle(len(training[0]), seed=flags.seed)
               .repeat().batch(batch).with_options(options))
    with strategy.scope():
        model = digits.network(flags.hidden, flags.seed)
        optimizer = digits.optimizer(
            flags.learning_rate, flags.epochs * steps)
        optimizer.build(model.trainable_variables)

    @tf.function
    def step(iterator):
        def replica(inputs):
            images, labels = inputs
            with tf.GradientTape() as tape:
                logits = model(images, training=True)
                loss = tf.nn.compute_average_loss(
                    digits.losses(labels, logits), global_batch_size=batch)
            variables = model.trainable_variables
            gradients = tape.gradient(loss, variables)
            optimizer.apply_gradients(zip(gradients, variables))
            return loss
        parts = strategy.run(replica, args=(next(iterator),))
        return strategy.reduce(tf.distribute.ReduceOp.SUM, parts, axis=None)

    iterator = iter(strategy.experimental_distribute_dataset(dataset))
    for epoch in range(1, flags.epochs + 1):
        begun = time.perf_counter()
        results = [step(iterator).numpy() for _ in range(steps)]
        took = (time.perf_counter() - begun) / steps * 1e3
        loss = sum(results) / steps
        print(f"epoch {epoch}: loss {loss:.4f}, {took:.2f} ms a step")
    accuracy, loss = digits.evaluate(model, *held_out)
    print(f"accuracy {accuracy:.4f}, loss {loss:.9g} on held-out digits")


train(digits.parse_flags(__doc__, learning_rate=0.2))
