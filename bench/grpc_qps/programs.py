"""gRPC's driver and its two workers, the server and the client of a cell."""

import json
import os
import pathlib
import re
import socket
import subprocess
import tempfile

# Penstock's fabric for each, and none for stock gRPC. It is not required, for
# gRPC's driver speaks HTTP/2 to the workers; the client's log tells what its
# channels went over.
FABRICS = {"tcp": None, "penstock-tcp": "tcp", "shm": "shm"}
CONNECTED = re.compile(r"connection to \S+: (\w+)")
# What connecting and ending take at most; an async server of streams that do
# not end is given three seconds by gRPC's benchmark itself.
GRACE_S = 60


class CellFailed(Exception):
    """Says why."""


def free_ports(count):
    listeners = [socket.socket() for _ in range(count)]
    try:
        for listener in listeners:
            listener.bind(("127.0.0.1", 0))
        return [listener.getsockname()[1] for listener in listeners]
    finally:
        for listener in listeners:
            listener.close()


def environment(transport):
    """Ours, without what would change what is measured."""
    kept = {name: value for name, value in os.environ.items()
            if name == "PENSTOCK_POLLING" or not name.startswith("PENSTOCK_")}
    return {**kept, "PENSTOCK_LOG": "info",
            "PENSTOCK_FABRICS": FABRICS[transport] or "tcp"}


def end_of(log):
    return log.read_text(encoding="utf-8", errors="replace")[-2000:]


def check_path(fabric, channels, log):
    """Raises CellFailed where a channel of a client was not on `fabric`."""
    paths = CONNECTED.findall(log)
    if fabric and paths != [fabric] * channels:
        raise CellFailed(f"{channels} channels went over {paths}, not over "
                         f"{fabric}")


class Cell:
    """One scenario over one transport, in processes of its own."""

    def __init__(self, folder, transport):
        self._folder, self._transport = pathlib.Path(folder), transport

    def measure(self, scenario):
        """gRPC's ScenarioResult, as it writes it; raises CellFailed."""
        with tempfile.TemporaryDirectory() as scratch:
            return self._measure(scenario, pathlib.Path(scratch))

    def _measure(self, scenario, scratch):
        logs = {name: scratch / name for name in ("server", "client")}
        ports = free_ports(len(logs))
        workers = [self._start_worker(port, log)
                   for port, log in zip(ports, logs.values())]
        try:
            result = self._drive(scenario, ports, scratch)
            check_path(FABRICS[self._transport],
                       scenario["client_config"]["client_channels"],
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

    def _start_worker(self, port, log):
        program = ("penstock_worker" if FABRICS[self._transport] else
                   "stock_worker")
        with open(log, "wb") as output:
            return subprocess.Popen(
                [self._folder / program, f"--driver_port={port}"],
                env=environment(self._transport), stdin=subprocess.DEVNULL,
                stdout=output, stderr=output)

    def _drive(self, scenario, ports, scratch):
        result = scratch / "result.json"
        limit = (scenario["warmup_seconds"] + scenario["benchmark_seconds"] +
                 GRACE_S)
        command = [self._folder / "qps_driver",
                   f"--scenarios_json={json.dumps({'scenarios': [scenario]})}",
                   f"--scenario_result_file={result}"]
        workers = ",".join(f"localhost:{port}" for port in ports)
        with open(scratch / "driver", "wb") as log:
            try:
                code = subprocess.run(
                    command, env={**os.environ, "QPS_WORKERS": workers},
                    stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                    timeout=limit, check=False).returncode
            except subprocess.TimeoutExpired as problem:
                raise CellFailed(f"not done within {limit} s") from problem
        if code:
            raise CellFailed(f"gRPC's driver ended with {code}: "
                             f"{end_of(scratch / 'driver')}")
        return json.loads(result.read_text(encoding="utf-8"))
