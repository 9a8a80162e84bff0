"""The handwritten digits of ../digits/data, and a network that learns them."""

import argparse
import pathlib

import numpy as np
import tensorflow as tf

FOLDER = pathlib.Path(__file__).resolve().parent
CSV = FOLDER.parent / "digits/data/optdigits.csv"

# The same digits are held out in every run, as in ../digits/dataset.cc.
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
    """Three parts, each images and labels: to train, to choose, held out.

    Shuffled by Fisher and Yates with a Mersenne twister, by hand: so they are
    those of the example in C++.
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
    """Three hidden layers, which have no biases.

    A ParameterServerStrategy deals variables out to its servers by turns. With
    biases, one server would get all the large ones.
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
    """Its rate falls to nothing, so that the last steps are small ones."""
    return tf.keras.optimizers.SGD(
        tf.keras.optimizers.schedules.PolynomialDecay(
            learning_rate, steps, end_learning_rate=0.0))


def losses(labels, logits):
    return tf.keras.losses.sparse_categorical_crossentropy(
        labels, logits, from_logits=True)


def evaluate(model, images, labels):
    """The share of the images that it reads, and its mean loss."""
    logits = model(images, training=False)
    right = np.argmax(logits, axis=1) == labels
    return np.mean(right), np.mean(losses(labels, logits))
