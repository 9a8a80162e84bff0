"""Makes the scenarios, in the format of gRPC's benchmark."""

import itertools
from typing import NamedTuple

KIB, MIB = 1 << 10, 1 << 20
SIZES = {"0B": 0, "64KiB": 64 * KIB, "1MiB": MIB}
# The loads of the benchmark. Each is (channels, concurrent calls or streams on
# a channel).
LOADS = [(1, 1), (1, 100), (8, 1), (8, 100)]
# Limits the payload bytes in flight, because more would measure the page
# allocator.
MAX_OUTSTANDING_BYTES = 128 * MIB
# Limits the calls of the sync API, which uses a thread per call on each side.
MAX_THREADS = 100

RPC_TYPES = {
    "unary": "UNARY",
    "streaming": "STREAMING",
    "from-client": "STREAMING_FROM_CLIENT",
    "from-server": "STREAMING_FROM_SERVER",
    "generic": "STREAMING",
}
# The APIs that gRPC's benchmark supports.
APIS = {
    "unary": ["sync", "async", "callback"],
    "streaming": ["sync", "async", "callback"],
    "from-client": ["sync", "async"],
    "from-server": ["sync", "async"],
    "generic": ["async"],
}
QUICK = [
    "unary-sync-0B-1x1", "unary-async-0B-1x1", "unary-async-1MiB-1x1",
    "unary-async-0B-1x100", "streaming-callback-0B-1x1",
    "from-client-async-0B-1x1", "from-server-async-0B-1x1",
    "generic-async-64KiB-1x1", "secure-unary-async-0B-1x1",
]


class Scenario(NamedTuple):
    """One row of the table: a scenario of gRPC's benchmark."""

    kind: str
    api: str
    size: str
    channels: int
    outstanding: int
    secure: bool

    @property
    def name(self):
        return (f"{'secure-' if self.secure else ''}{self.kind}-{self.api}-"
                f"{self.size}-{self.channels}x{self.outstanding}")

    def is_sensible(self):
        calls = self.channels * self.outstanding
        return (SIZES[self.size] * calls <= MAX_OUTSTANDING_BYTES and
                (self.api != "sync" or calls <= MAX_THREADS) and
                (not self.secure or calls == 1))

    def to_grpc(self, warmup_s, seconds):
        """Returns the scenario in the format of gRPC's control.proto."""
        size = {"req_size": SIZES[self.size], "resp_size": SIZES[self.size]}
        payload = {"bytebuf_params" if self.kind == "generic" else
                   "simple_params": size}
        # Uses one thread for one call at a time. 0 means one thread per core.
        threads = 1 if self.channels * self.outstanding == 1 else 0
        client = {
            "client_type": f"{self.api.upper()}_CLIENT",
            "rpc_type": RPC_TYPES[self.kind],
            "outstanding_rpcs_per_channel": self.outstanding,
            "client_channels": self.channels,
            "async_client_threads": threads,
            "load_params": {"closed_loop": {}},
            "payload_config": payload,
            "histogram_params": {"resolution": 0.01,
                                 "max_possible": 60e9},
            "channel_args": [
                {"name": "grpc.max_receive_message_length", "int_value": -1}],
        }
        server = {
            "server_type": ("ASYNC_GENERIC_SERVER" if self.kind == "generic"
                            else f"{self.api.upper()}_SERVER"),
            "async_server_threads": threads,
            "channel_args": [
                {"name": "grpc.max_receive_message_length", "int_value": -1}],
        }
        if self.kind == "generic":
            server["payload_config"] = payload
        if self.secure:
            security = {"use_test_ca": True,
                        "server_host_override": "foo.test.google.fr"}
            client["security_params"] = server["security_params"] = security
        return {"name": self.name, "num_servers": 1, "num_clients": 1,
                "client_config": client, "server_config": server,
                "warmup_seconds": warmup_s, "benchmark_seconds": seconds}


def all_scenarios():
    for secure, kind in itertools.product((False, True), RPC_TYPES):
        for api, size, load in itertools.product(APIS[kind], SIZES, LOADS):
            scenario = Scenario(kind, api, size, *load, secure)
            if scenario.is_sensible():
                yield scenario
