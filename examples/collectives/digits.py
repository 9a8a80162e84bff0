"""Learns the handwritten digits of ../digits/data in data-parallel processes,
with only NumPy and penstock.collectives.

    mpirun -x MASTER_ADDR=127.0.0.1 -x MASTER_PORT=29500 -n 2 python3 digits.py
    python3 digits.py --ranks=2         # without a launcher, on this machine
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

from penstock import collectives

CSV = (pathlib.Path(__file__).resolve().parent.parent
       / "digits/data/optdigits.csv")
HELD_OUT = 360


def parse_flags():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--ranks", type=int,
                        help="start as many processes here")
    parser.add_argument("--rank", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--batch", type=int, default=64,
                        help="images of a step, of all ranks together")
    parser.add_argument("--hidden", type=int, default=128)
    parser.add_argument("--learning-rate", type=float, default=0.3)
    return parser.parse_args()


def load():
    """Returns images and labels, in the same order on all ranks."""
    rows = np.loadtxt(CSV, delimiter=",", dtype="f4")
    rows = np.random.default_rng(1).permutation(rows)
    return rows[:, :-1] / 16, rows[:, -1].astype("i8")


class Network:
    """A hidden layer, and the negative log likelihood of a softmax."""

    def __init__(self, hidden, seed):
        draw = np.random.default_rng(seed)
        self.weights = [draw.normal(0, 0.15, (64, hidden)).astype("f4"),
                        draw.normal(0, 0.15, (hidden, 10)).astype("f4")]

    def _forward(self, images):
        hidden = np.maximum(images @ self.weights[0], 0)
        scores = hidden @ self.weights[1]
        scores -= scores.max(axis=1, keepdims=True)
        odds = np.exp(scores)
        return hidden, odds / odds.sum(axis=1, keepdims=True)

    def gradients(self, images, labels):
        """Returns the gradients of the mean loss."""
        hidden, errors = self._forward(images)
        errors[np.arange(len(labels)), labels] -= 1
        errors /= len(labels)
        back = (errors @ self.weights[1].T) * (hidden > 0)
        return [images.T @ back, hidden.T @ errors]

    def score(self, images, labels):
        """Returns the share of right answers, and the mean loss."""
        odds = self._forward(images)[1]
        right = odds[np.arange(len(labels)), labels]
        return np.array([(odds.argmax(axis=1) == labels).mean(),
                         -np.log(right).mean()])


def train(group, network, images, labels, flags):
    # All ranks begin with the weights of rank 0.
    for weights in network.weights:
        group.broadcast(weights, root=0)
    draw = np.random.default_rng(7)
    for _ in range(flags.epochs):
        order = draw.permutation(len(labels))  # the same on all ranks
        for begin in range(0, len(order) - flags.batch + 1, flags.batch):
            # This rank's part of the batch.
            own = order[begin:begin + flags.batch][group.rank::group.size]
            gradients = network.gradients(images[own], labels[own])
            # Start all sums, which run concurrently.
            sums = [group.allreduce_async(g, "average", out=g)
                    for g in gradients]
            for weights, total in zip(network.weights, sums):
                weights -= flags.learning_rate * total.wait()


def work(group, flags):
    if flags.batch % group.size:
        sys.exit(f"--batch={flags.batch} is no multiple of {group.size} ranks")
    images, labels = load()
    network = Network(flags.hidden, seed=group.rank)
    train(group, network, images[HELD_OUT:], labels[HELD_OUT:], flags)
    score = network.score(images[:HELD_OUT], labels[:HELD_OUT])
    everyone = group.allgather(score[np.newaxis])
    if (everyone != score).any():
        sys.exit(f"the ranks differ: {everyone.tolist()}")
    if group.rank == 0:
        print(f"{group.size} ranks: accuracy {100 * score[0]:.2f} % on "
              f"held-out digits, loss {score[1]:.4f}")


def start_ranks(count):
    """Runs this program once for each rank. Returns the first failure."""
    with tempfile.TemporaryDirectory() as folder:
        ranks = [subprocess.Popen([sys.executable, *sys.argv, f"--rank={rank}",
                                   f"--folder={folder}/ranks"])
                 for rank in range(count)]
        return max(abs(process.wait()) for process in ranks)


def main():
    flags = parse_flags()
    if flags.ranks is not None and flags.rank is None:
        sys.exit(start_ranks(flags.ranks))
    with collectives.init(flags.rank, flags.ranks,
                          folder=flags.folder) as group:
        work(group, flags)


if __name__ == "__main__":
    main()
