"""Runs gRPC's driver and its two workers, the server and the client."""

import json
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from ports import free_ports  # noqa: E402

# The fabric that Penstock offers for each transport; none for stock gRPC. The
# policy is not `require`, because gRPC's driver uses HTTP/2 to the workers. The
# client's log shows the paths of the channels.
FABRICS = {"tcp": None, "penstock-tcp": "tcp", "shm": "shm"}
# The side that reads, for each kind of one-way stream.
READERS = {"STREAMING_FROM_CLIENT": "server",
           "STREAMING_FROM_SERVER": "client"}
# The number of batches that proves that messages are read. The setup takes
# fewer batches.
FIRST_READS = 200
SAMPLE_S = 0.05
CONNECTED = re.compile(r"connection to \S+: (\w+)")
# Limits the seconds for connecting and ending. gRPC's benchmark itself waits
# three seconds for an async server of endless streams.
GRACE_S = 60


class CellFailed(Exception):
    """A cell's measurement failed. The message is the reason."""


# The variables of Penstock that the measured programs inherit. A user may set
# them to compare two runs.
KEPT = ("PENSTOCK_POLLING", "PENSTOCK_STUB_MEMORY")


def environment(transport):
    """Returns this process's environment without variables that affect the
    measurement."""
    kept = {name: value for name, value in os.environ.items()
            if name in KEPT or not name.startswith("PENSTOCK_")}
    return {**kept, "PENSTOCK_LOG": "info",
            "PENSTOCK_FABRICS": FABRICS[transport] or "tcp"}


def end_of(log):
    return log.read_text(encoding="utf-8", errors="replace")[-2000:]


def check_path(fabric, channels, log):
    """Raises CellFailed if a channel of a client did not use `fabric`. `log`
    is the client's log."""
    paths = CONNECTED.findall(log)
    if fabric and paths != [fabric] * channels:
        raise CellFailed(f"{channels} channels went over {paths}, not over "
                         f"{fabric}")


class Reads:
    """The number of messages read over time, from the counter of
    count_batches.cc."""

    def __init__(self, file):
        self.file = file
        self.file.write_bytes(bytes(8))
        self._samples = []

    def sample(self):
        count, = struct.unpack("@Q", self.file.read_bytes())
        if count >= FIRST_READS:
            self._samples.append((time.monotonic(), count))

    def per_second(self, warmup_s, seconds):
        """Returns the messages read per second in the measured time, after the
        warm-up."""
        start = self._samples[0][0] + warmup_s if self._samples else 0
        inside = [(when, count) for when, count in self._samples
                  if start <= when <= start + seconds]
        if len(inside) < 2:
            raise CellFailed("its reader has read nothing")
        (first, before), (last, after) = inside[0], inside[-1]
        return (after - before) / (last - first)


class Cell:
    """The server, the client and the driver of one scenario over one
    transport, in separate processes."""

    def __init__(self, folder, transport):
        self._folder, self._transport = pathlib.Path(folder), transport

    def measure(self, scenario):
        """Runs the scenario, and returns gRPC's ScenarioResult. Raises
        CellFailed."""
        with tempfile.TemporaryDirectory() as scratch:
            return self._measure(scenario, pathlib.Path(scratch))

    def _measure(self, scenario, scratch):
        logs = {name: scratch / name for name in ("server", "client")}
        ports = dict(zip(logs, free_ports(len(logs))))
        config = scenario["client_config"]
        reader = READERS.get(config["rpc_type"])
        reads = Reads(scratch / "reads") if reader else None
        workers = [self._start_worker(ports[name], log,
                                      reads if name == reader else None)
                   for name, log in logs.items()]
        try:
            result = self._drive(scenario, ports.values(), scratch, reads)
            check_path(FABRICS[self._transport], config["client_channels"],
                       logs["client"].read_text(encoding="utf-8",
                                                errors="replace"))
            return result
        except CellFailed as problem:
            ends = "\n".join(f"{name}: {end_of(log)}"
                             for name, log in logs.items())
            raise CellFailed(f"{scenario['name']} over {self._transport}: "
                             f"{problem}\n{ends}") from problem
        finally:
            for worker in workers:
                worker.kill()
                worker.wait()

    def _start_worker(self, port, log, reads):
        program = ("penstock_worker" if FABRICS[self._transport] else
                   "stock_worker")
        settings = environment(self._transport)
        if reads:
            settings["LD_PRELOAD"] = str(self._folder / "count_batches.so")
            settings["GRPC_QPS_COUNTER"] = str(reads.file)
        with open(log, "wb") as output:
            return subprocess.Popen(
                [self._folder / program, f"--driver_port={port}"],
                env=settings, stdin=subprocess.DEVNULL, stdout=output,
                stderr=output)

    def _drive(self, scenario, ports, scratch, reads):
        result = scratch / "result.json"
        seconds = scenario["warmup_seconds"], scenario["benchmark_seconds"]
        command = [self._folder / "qps_driver",
                   f"--scenarios_json={json.dumps({'scenarios': [scenario]})}",
                   f"--scenario_result_file={result}"]
        workers = ",".join(f"localhost:{port}" for port in ports)
        with open(scratch / "driver", "wb") as log:
            driver = subprocess.Popen(
                command, env={**os.environ, "QPS_WORKERS": workers},
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)
            try:
                code = self._await(driver, sum(seconds) + GRACE_S, reads)
            finally:
                driver.kill()
                driver.wait()
        if code:
            raise CellFailed(f"gRPC's driver ended with {code}: "
                             f"{end_of(scratch / 'driver')}")
        said = json.loads(result.read_text(encoding="utf-8"))
        if reads:
            said["readPerSecond"] = reads.per_second(*seconds)
        return said

    @staticmethod
    def _await(driver, limit_s, reads):
        end = time.monotonic() + limit_s
        while driver.poll() is None:
            if time.monotonic() > end:
                raise CellFailed(f"not done within {limit_s} s")
            if reads:
                reads.sample()
            time.sleep(SAMPLE_S)
        return driver.returncode
