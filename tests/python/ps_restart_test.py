#!/usr/bin/python3 -B
"""Tests servers that are killed in mid-training, and started again with one
command."""

import concurrent.futures
import subprocess
import threading

import run_pytest

import numpy as np
import penstock
import pytest
from penstock import ps
from teams import RATE, dense, sparse

SHAPE = (4, 3)
ONES = np.ones(SHAPE, "f4")


class Servers:
    """Processes of ps_server, which keep their addresses."""

    def __init__(self, folder, count=2, workers=1):
        self._flags = [f"--workers={workers}", f"--checkpoints={folder}",
                       "--restore=newest", "--quiet"]
        self._processes = [self._start("127.0.0.1:0") for _ in range(count)]
        self.addresses = [f"127.0.0.1:{port}" for _, port in self._processes]

    def _start(self, address):
        process = subprocess.Popen(
            ["ps/ps_server", f"--listen={address}", *self._flags], text=True,
            stdout=subprocess.PIPE)
        word, port = process.stdout.readline().split()
        assert word == "port"
        return process, int(port)

    def kill(self, *servers):
        for server in servers:
            process, _ = self._processes[server]
            process.kill()
            process.communicate()

    def restart(self, *servers):
        self.kill(*servers)
        for server in servers:
            self._processes[server] = self._start(self.addresses[server])


@pytest.fixture
def start(tmp_path):
    started = []

    def start(**options):
        started.append(Servers(tmp_path, **options))
        return started[-1]
    yield start
    for servers in started:
        servers.kill(*range(len(servers.addresses)))


def join(servers, rank=0, staleness=0):
    chief = {"model": [dense(staleness=staleness),
                       sparse(staleness=ps.UNLIMITED)],
             "values": {"w": np.zeros(SHAPE, "f4")}}
    return ps.Worker(servers.addresses, rank=rank, pull_timeout=60,
                     push_timeout=60, **({} if rank else chief))


def step_once(worker, step):
    worker.pull(step)
    worker.push(step, {"w": ONES}, rows={"emb": ([7], np.ones((1, 8), "f4"))})


@pytest.mark.parametrize("killed", [(1,), (0, 1)])
@pytest.mark.parametrize("staleness", [0, ps.UNLIMITED])
def test_steps_go_back_to_the_checkpoint(start, staleness, killed):
    servers = start()
    steps, restarts, checkpoint = [], [], None
    with join(servers, staleness=staleness) as worker:
        for step in worker.steps(9):
            if step == 3 and checkpoint is None:
                checkpoint = worker.checkpoint().step
            if step == 6 and not restarts:
                servers.restart(*killed)
            steps.append(step)
            try:
                step_once(worker, step)
            except ps.Restarted as restarted:
                restarts.append(restarted.step)
                assert "even acknowledged ones" in str(restarted)
        assert checkpoint == worker.restored_step == 3
        assert restarts == [3]
        assert steps == [*range(7), *range(3, 9)]
        # Pulls repeatedly, because asynchronous pulls may lack the last push
        # for a moment.
        values = (worker.pull(9)["w"] for _ in range(10000))
        assert any((value == -9 * RATE).all() for value in values)
        with pytest.raises(penstock.InvalidArgument):
            worker.push(7)  # the old worker's next step


def test_workers_in_threads_go_on_together(start):
    servers = start(workers=2)
    barrier = threading.Barrier(2)

    def train(rank):
        with join(servers, rank) as worker:
            restarts = 0
            for step in worker.steps(12):
                try:
                    if step == 4 and not restarts:
                        # Pulls first. Otherwise the checkpoint would wait for
                        # the push of a worker that waits for the checkpoint.
                        worker.pull(4)
                        barrier.wait()
                        if rank == 0:
                            worker.checkpoint()
                        barrier.wait()
                    if rank == 0 and step == 8 and not restarts:
                        servers.restart(1)
                    step_once(worker, step)
                except ps.Restarted:
                    restarts += 1
            # Pulls the last step, so that no worker leaves before the others
            # have all values.
            return restarts, np.unique(worker.pull(12)["w"]).tolist()
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        results = list(pool.map(train, range(2)))
    assert results == [(1, [float(-12 * RATE)])] * 2


def test_futures_and_other_threads_hear_of_the_restart(start):
    servers = start()
    with join(servers) as worker:
        step_once(worker, 0)
        worker.pull(1)
        worker.checkpoint()
        step_once(worker, 1)
        servers.restart(0, 1)
        futures = [worker.push_async(2, {"w": ONES}), worker.pull_async(2),
                   worker.pull_async(2)]
        for future in futures:
            with pytest.raises(ps.Restarted) as raised:
                future.result(timeout=60)
            assert raised.value.step == 1
        assert list(worker.steps(3)) == [1, 2]
        step_once(worker, 1)


def test_without_a_checkpoint_the_training_is_lost(start):
    servers = start()
    with join(servers) as worker:
        step_once(worker, 0)
        servers.restart(1)
        with pytest.raises(ps.TrainingLost, match=r"server 1 .*no checkpoint"):
            step_once(worker, 1)
        with pytest.raises(ps.TrainingLost, match=r"server 1 .*no checkpoint"):
            join(servers)


def test_a_worker_that_is_closed_does_not_attach_again(start):
    servers = start()
    worker = join(servers)
    step_once(worker, 0)
    worker.pull(1)
    worker.checkpoint()
    worker.close()
    servers.restart(1)
    with pytest.raises(penstock.FailedPrecondition, match="closed"):
        worker.pull(1)


if __name__ == "__main__":
    run_pytest.main(__file__)
