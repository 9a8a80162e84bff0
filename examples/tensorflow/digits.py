"""Reads the handwritten digits of ../digits/data, and makes a network for
them."""

import argparse
import pathlib

import numpy as np
import tensorflow as tf

FOLDER = pathlib.Path(__file__).resolve().parent
CSV = FOLDER.parent / "digits/data/optdigits.csv"

# The seed of the split. As in ../digits/dataset.cc, every run has the same test
# digits.
SPLIT_SEED = 1


def parse_flags(description, learning_rate):
    parser = argparse.ArgumentParser(
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hidden", type=int, default=1024,
                        help="width of the hidden layers")
    parser.add_argument("--epochs", type=int, default=16)
    parser.add_argument("--batch", type=int, default=32,
                        help="images a step and worker")
    parser.add_argument("--learning-rate", type=float, default=learning_rate)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--csv", default=CSV)
    return parser.parse_args()


def load(csv):
    """Returns images and labels for training, validation and test.

    Shuffles by Fisher and Yates with a Mersenne twister, like the example in
    C++, so that both have the same parts.
    """
    rows = np.loadtxt(csv, delimiter=",", dtype=np.int32)
    numbers = np.random.RandomState(SPLIT_SEED).randint(
        0, 1 << 32, size=len(rows) - 1, dtype=np.uint32)
    order = np.arange(len(rows))
    for last, number in zip(range(len(rows) - 1, 0, -1), numbers):
        other = number % (last + 1)
        order[[last, other]] = order[[other, last]]
    images = rows[order, :-1].astype(np.float32) / 16
    labels = rows[order, -1]
    ends = [len(rows) * 3 // 5, len(rows) * 4 // 5]
    return list(zip(np.split(images, ends), np.split(labels, ends)))


def network(hidden, seed):
    """Returns a network with three hidden layers without biases.

    A ParameterServerStrategy assigns variables to its servers in turn. With
    biases, one server would get all large variables.
    """
    def layer(number, width, activation=None):
        return tf.keras.layers.Dense(
            width, activation, use_bias=False,
            kernel_initializer=tf.keras.initializers.HeNormal(seed + number))

    return tf.keras.Sequential([
        tf.keras.Input([64]),
        layer(0, hidden, "relu"),
        layer(1, hidden, "relu"),
        layer(2, hidden, "relu"),
        layer(3, 10),
    ])


def optimizer(learning_rate, steps):
    """Returns an optimizer with a learning rate that decreases to zero."""
    return tf.keras.optimizers.SGD(
        tf.keras.optimizers.schedules.PolynomialDecay(
            learning_rate, steps, end_learning_rate=0.0))


def losses(labels, logits):
    return tf.keras.losses.sparse_categorical_crossentropy(
        labels, logits, from_logits=True)


def evaluate(model, images, labels):
    """Returns the fraction of correctly classified images, and the loss."""
    logits = model(images, training=False)
    right = np.argmax(logits, axis=1) == labels
    return np.mean(right), np.mean(losses(labels, logits))
