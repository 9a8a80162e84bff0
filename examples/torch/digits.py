"""Learns the handwritten digits of ../digits/data in data-parallel processes.

An ordinary program of PyTorch: torchrun starts it, and --backend is what a user
gives to init_process_group.
"""

import argparse
import contextlib
import json
import pathlib
import time

import numpy as np
import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

CSV = (pathlib.Path(__file__).resolve().parent.parent
       / "digits/data/optdigits.csv")

# The test digits are the same in every run, as in ../digits/dataset.cc.
SPLIT_SEED = 1


def parse_flags():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--backend", default="penstock")
    parser.add_argument("--sharded", action="store_true",
                        help="FSDP2 instead of DDP")
    parser.add_argument("--accumulate", type=int, default=1,
                        help="batches whose gradients make one step")
    parser.add_argument("--hidden", type=int, default=512,
                        help="width of the hidden layers")
    parser.add_argument("--epochs", type=int, default=24)
    parser.add_argument("--batch", type=int, default=32,
                        help="images a batch and rank")
    parser.add_argument("--learning-rate", type=float, default=0.5)
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
    images = torch.from_numpy(rows[order, :-1].astype(np.float32) / 16)
    labels = torch.from_numpy(rows[order, -1].astype(np.int64))
    sizes = [len(rows) * 3 // 5, len(rows) // 5]
    sizes.append(len(rows) - sum(sizes))
    return list(zip(images.split(sizes), labels.split(sizes)))


def network(hidden, seed):
    torch.manual_seed(seed)
    layers = []
    for width in (64, hidden, hidden):
        layers += [torch.nn.Linear(width, hidden, bias=False), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers,
                               torch.nn.Linear(hidden, 10, bias=False))


def distribute(model, sharded):
    if not sharded:
        return DistributedDataParallel(model)
    for layer in model:
        if isinstance(layer, torch.nn.Linear):
            fully_shard(layer)
    return fully_shard(model)


def gradients(model, last):
    """Returns a context in which only the last batch of a step sends gradients."""
    if isinstance(model, DistributedDataParallel):
        return contextlib.nullcontext() if last else model.no_sync()
    model.set_requires_gradient_sync(last)
    return contextlib.nullcontext()


def batches(count, flags):
    """Yields the images of this rank, for each batch of one epoch."""
    ranks, rank = dist.get_world_size(), dist.get_rank()
    order = torch.randperm(count)  # the same on all ranks
    for begin in range(0, count - flags.batch * ranks + 1, flags.batch * ranks):
        yield order[begin + rank * flags.batch:][:flags.batch]


def train(model, images, labels, flags):
    """Returns the seconds of each epoch, without the first."""
    optimizer = torch.optim.SGD(model.parameters(), lr=flags.learning_rate)
    schedule = torch.optim.lr_scheduler.LinearLR(
        optimizer, 1.0, 0.0, total_iters=flags.epochs)
    torch.manual_seed(flags.seed)
    times = []
    for _ in range(flags.epochs):
        begun = time.perf_counter()
        for number, chosen in enumerate(batches(len(labels), flags)):
            last = (number + 1) % flags.accumulate == 0
            with gradients(model, last):
                loss = torch.nn.functional.cross_entropy(
                    model(images[chosen]), labels[chosen]) / flags.accumulate
                loss.backward()
            if last:
                optimizer.step()
                optimizer.zero_grad()
        schedule.step()
        times.append(time.perf_counter() - begun)
    return times[1:] or times


@torch.no_grad()
def evaluate(model, images, labels):
    """Returns the fraction of correctly classified images, and the loss."""
    logits = model(images)
    right = (logits.argmax(dim=1) == labels).float().mean()
    return right.item(), torch.nn.functional.cross_entropy(logits, labels).item()


def main():
    flags = parse_flags()
    torch.set_num_threads(1)
    dist.init_process_group(flags.backend)
    training, _, held_out = load(flags.csv)
    model = distribute(network(flags.hidden, flags.seed), flags.sharded)
    times = train(model, *training, flags)
    accuracy, loss = evaluate(model, *held_out)
    losses = [None] * dist.get_world_size()
    dist.all_gather_object(losses, loss)
    if dist.get_rank() == 0:
        steps = len(training[1]) // (flags.batch * dist.get_world_size())
        print(json.dumps({
            "backend": dist.get_backend(), "accuracy": accuracy,
            "losses": losses,
            "ms_per_batch": sorted(times)[len(times) // 2] / steps * 1e3}))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
