"""Defines the layers, and the includes that each may have. Nothing else
defines them.

users() derives Bazel's visibility from this file, and tools/check_layers checks
each include against it. tests/docs/layers_test.py compares the BUILD files, and
the drawing and table of docs/architecture.md, with it. Both Starlark and Python
read this file.
"""

# Each folder that contains C++, from the bottom up, with the rest of the
# project that it may include: whole folders, or single files of a folder. Each
# folder is below all folders that name it, so that there is no cycle. A folder
# does not include its subfolders.
LAYERS = {
    # The public headers. transport/ implements them.
    "penstock": [],
    "transport/base": [],
    "transport/wire": ["transport/base"],
    # The counters of the process; transport/monitoring shows them.
    "transport/metrics": ["transport/base"],
    "transport/progress": ["transport/base"],
    "transport/memory": ["transport/base"],
    # Arithmetic on a GPU, without its driver.
    "transport/device/kernels": ["transport/base"],
    # Memory of GPUs. The only layer that knows CUDA's driver.
    "transport/device": [
        "transport/base",
        "transport/progress/fork_count.h",
        "transport/memory",
        "transport/device/kernels",
    ],
    # Records the requests and answers of servers, for a replay.
    "transport/record": ["transport/base", "transport/progress"],
    "transport/fabric": [
        "transport/base",
        "transport/progress",
        "transport/memory",
    ],
    "transport/fabric/fake": [
        "transport/memory",
        "transport/fabric/fabric.h",
    ],
    "transport/fabric/tcp": [
        "transport/base",
        "transport/wire",
        "transport/memory",
        "transport/fabric/fabric.h",
    ],
    "transport/fabric/shm": [
        "transport/base",
        "transport/wire",
        "transport/metrics",
        "transport/progress",
        "transport/memory",
        "transport/fabric",
    ],
    # The bytes that the two sides of an RDMA connection exchange.
    "transport/fabric/verbs/formats": ["transport/base", "transport/wire"],
    "transport/fabric/verbs": [
        "transport/base",
        "transport/wire",
        "transport/metrics",
        "transport/progress",
        "transport/memory",
        "transport/fabric",
        "transport/fabric/verbs/formats",
    ],
    "transport/fabric/tcp/stripes": [
        "transport/base",
        "transport/wire",
        "transport/progress",
        "transport/memory",
        "transport/fabric",
        "transport/fabric/tcp",
    ],
    "transport/settings": [
        "penstock/options.h",
        "transport/base",
        "transport/progress/spin_policy.h",
        "transport/fabric/shm/huge_pages.h",
    ],
    "transport/protocol": [
        "transport/base",
        "transport/wire",
        "transport/memory",
    ],
    "transport/session": [
        "transport/base",
        "transport/wire",
        "transport/metrics",
        "transport/memory",
        "transport/fabric/fabric.h",
        "transport/protocol",
    ],
    "transport/paths": [
        "transport/base",
        "transport/wire",
        "transport/metrics",
        "transport/progress",
        "transport/fabric/fabric.h",
        "transport/fabric/shm",
        "transport/fabric/verbs",
        "transport/fabric/tcp/stripes",
        "transport/settings",
        "transport/session",
    ],
    # One connection for every front end.
    "transport/connection": [
        "transport/base",
        "transport/wire",
        "transport/metrics",
        "transport/progress",
        "transport/memory",
        "transport/fabric/fabric.h",
        "transport/fabric/tcp",
        "transport/settings",
        "transport/session",
        "transport/paths",
    ],
    # The byte stream of the front end for current gRPC, which moves between TCP
    # and a path. Knows no gRPC.
    "transport/event_engine/stream": [
        "transport/wire",
        "transport/memory",
        "transport/fabric/fabric.h",
    ],
    # Where the two ends of a TCP connection meet for a path. Knows no gRPC.
    "transport/event_engine/meeting": [
        "transport/wire",
        "transport/progress",
        "transport/fabric",
        "transport/fabric/shm",
    ],
    # Paths over RDMA between hosts. Knows no gRPC.
    "transport/event_engine/rdma": [
        "transport/base",
        "transport/fabric/fabric.h",
        "transport/fabric/verbs",
        "transport/settings",
        "transport/event_engine/meeting",
    ],
    # The threads that poll paths and run tasks for current gRPC.
    "transport/event_engine/threads": [
        "transport/base",
        "transport/progress",
    ],
    # The front end for frameworks that bring their own gRPC, or none.
    "transport/rpc": [
        "transport/base",
        "transport/wire",
        "transport/metrics",
        "transport/progress",
        "transport/memory",
        "transport/record",
        "transport/fabric/fabric.h",
        "transport/fabric/tcp",
        "transport/settings",
        "transport/session",
        "transport/paths",
        "transport/connection",
    ],
    # gRPC's internal headers, and the conversions that the rest shares.
    "transport/grpc/internal": ["transport/memory", "transport/connection"],
    # Threads that wait in gRPC.
    "transport/grpc/polling": [
        "transport/base",
        "transport/progress",
        "transport/settings",
        "transport/grpc/internal",
    ],
    # The grpc_transport.
    "transport/grpc": [
        "transport/base",
        "transport/metrics",
        "transport/progress",
        "transport/memory",
        "transport/fabric/fabric.h",
        "transport/fabric/tcp",
        "transport/session",
        "transport/connection",
        "transport/grpc/internal",
        "transport/grpc/polling",
    ],
    # Filters of gRPC's channel stack.
    "transport/grpc/filters": [
        "transport/base",
        "transport/progress",
        "transport/memory",
        "transport/record",
        "transport/grpc/internal",
        "transport/grpc",
    ],
    # Credentials, gRPC's hooks, and the negotiation.
    "transport/grpc/handshake": [
        "transport/base",
        "transport/wire",
        "transport/metrics",
        "transport/memory",
        "transport/fabric/tcp/stripes",
        "transport/settings",
        "transport/paths",
        "transport/connection",
        "transport/grpc/internal",
        "transport/grpc/polling",
        "transport/grpc",
        "transport/grpc/filters",
    ],
    # Shows the counters of the process.
    "transport/monitoring": [
        "penstock/metrics.h",
        "transport/base",
        "transport/metrics",
        "transport/progress",
        "transport/fabric/shm/peer_user.h",
        "transport/settings",
    ],
    # The implementation of the public headers.
    "transport": [
        "penstock",
        "transport/base",
        "transport/metrics",
        "transport/memory",
        "transport/record",
        "transport/fabric/shm",
        "transport/settings",
        "transport/grpc/internal",
        "transport/grpc/polling",
        "transport/grpc",
        "transport/grpc/filters",
        "transport/grpc/handshake",
        "transport/monitoring",
    ],
    # TCP sockets that the engine's threads poll, for current gRPC.
    "transport/event_engine/sockets": [
        "transport/base",
        "transport/progress",
        "transport/event_engine/meeting",
        "transport/event_engine/threads",
    ],
    # The front end for current gRPC, by its public headers. CMakeLists.txt builds
    # it: Bazel's gRPC is older.
    "transport/event_engine": [
        "penstock",
        "transport/base",
        "transport/progress",
        "transport/memory",
        "transport/fabric/fabric.h",
        "transport/fabric/shm",
        "transport/settings",
        "transport/event_engine/stream",
        "transport/event_engine/meeting",
        "transport/event_engine/rdma",
        "transport/event_engine/threads",
        "transport/event_engine/sockets",
        "transport/pool.h",
        "transport/preload.h",
    ],
    # The library that penstock run preloads into a program. The preloaded
    # library calls Penstock's library by a plain C interface.
    "preload": ["transport/base", "transport/preload.h"],
    # The headers that programs include. The folders below implement them.
    "tensor_service": [],
    "tensor_service/tensor": [
        "transport/progress/fork_count.h",
        "tensor_service",
    ],
    "tensor_service/device": ["tensor_service", "tensor_service/tensor"],
    "tensor_service/codec": [
        "tensor_service",
        "tensor_service/tensor",
        "tensor_service/device",
    ],
    "tensor_service/calls": [
        "tensor_service",
        "tensor_service/tensor",
        "tensor_service/device",
        "tensor_service/codec",
    ],
    "tensor_service/exchange": [
        "tensor_service",
        "tensor_service/tensor",
        "tensor_service/device",
        "tensor_service/codec",
        "tensor_service/calls",
    ],
    "tensor_service/rendezvous": [
        "tensor_service",
        "tensor_service/tensor",
        "tensor_service/codec",
        "tensor_service/calls",
    ],
    # Tensors on GPUs.
    "tensor_service/cuda": [
        "transport/base",
        "transport/memory",
        "transport/device",
        "tensor_service",
    ],
    # Collective operations as schedules: no I/O, no clock.
    "collectives/schedule": [],
    # Sums and other reductions, vectorised.
    "collectives/reduction": [
        "tensor_service/dtype.h",
        "tensor_service/formats-inl.h",
    ],
    # The interface of groups of ranks, and helpers of its implementations.
    "collectives": [
        "tensor_service/dtype.h",
        "collectives/schedule",
        "collectives/reduction",
    ],
    # Operands of collective operations on GPUs.
    "collectives/cuda": [
        "transport/base",
        "transport/memory",
        "transport/device",
        "transport/device/kernels",
        "tensor_service/dtype.h",
        "collectives/reduction",
        "collectives",
    ],
    # Groups of ranks on one host, over shared memory.
    "collectives/host": [
        "transport/base",
        "transport/progress",
        "transport/memory",
        "transport/fabric/shm",
        "tensor_service/dtype.h",
        "collectives/schedule",
        "collectives/reduction",
        "collectives",
    ],
    # Groups of ranks on any hosts, over Penstock's connections.
    "collectives/net": [
        "transport/base",
        "transport/progress",
        "transport/memory",
        "transport/settings",
        "transport/rpc",
        "tensor_service/dtype.h",
        "collectives/schedule",
        "collectives/reduction",
        "collectives",
    ],
    # Groups of ranks on several hosts: both of the above.
    "collectives/hierarchical": [
        "transport/base",
        "transport/memory",
        "tensor_service/dtype.h",
        "collectives/schedule",
        "collectives/reduction",
        "collectives",
        "collectives/host",
        "collectives/net",
    ],
    # The rules by which a parameter server admits and applies pushes. Knows no
    # clock and no gRPC.
    "ps/consistency": [],
    # Replicas of shards: views, logs and leases, without a clock or messages.
    "ps/replication": ["ps/consistency"],
    "ps/optim": ["tensor_service/dtype.h", "tensor_service/formats-inl.h"],
    # Random numbers that are equal on all machines.
    "ps/random": [],
    # Dense tables: values with versions, and the steps that change them.
    "ps/dense": ["tensor_service", "ps/optim"],
    # Gradients in fewer bytes.
    "ps/compression": ["tensor_service", "ps/optim", "ps/random"],
    "ps/sparse": ["transport/base", "ps/random"],
    # Rows of sparse tables that have no room in memory, on a disk.
    "ps/tier": ["transport/base", "ps/sparse"],
    "ps/checkpoint": ["transport/base", "tensor_service"],
    "ps/placement": ["tensor_service"],
    # The tables of a model, and the data that each of these layers needs about
    # them.
    "ps/model": [
        "transport/base",
        "tensor_service",
        "ps/consistency",
        "ps/optim",
        "ps/sparse",
        "ps/placement",
    ],
    # Permissions at a server.
    "ps/access": ["transport/base"],
    # A client of etcd. Knows nothing of parameter servers.
    "ps/etcd": ["transport/base", "tensor_service"],
    # The members of a training, and what they agree on, in etcd.
    "ps/membership": ["transport/base", "ps/access", "ps/etcd"],
    # The views of a training, which its servers keep by etcd.
    "ps/views": [
        "transport/base",
        "ps/replication",
        "ps/etcd",
        "ps/membership",
    ],
    "ps/wire": [
        "tensor_service",
        "ps/replication",
        "ps/placement",
        "ps/model",
    ],
    "ps/server": [
        "transport/base",
        "tensor_service",
        "ps/consistency",
        "ps/optim",
        "ps/dense",
        "ps/compression",
        "ps/sparse",
        "ps/checkpoint",
        "ps/placement",
        "ps/model",
    ],
    # Replicas of shards at a server: their messages, threads and values.
    "ps/shards": [
        "transport/base",
        "tensor_service",
        "ps/consistency",
        "ps/replication",
        "ps/checkpoint",
        "ps/placement",
        "ps/model",
        "ps/wire",
        "ps/server",
    ],
    "ps/service": [
        "penstock/metrics.h",
        "transport/base",
        "tensor_service",
        "ps/consistency",
        "ps/checkpoint",
        "ps/placement",
        "ps/model",
        "ps/access",
        "ps/wire",
        "ps/server",
        "ps/shards",
    ],
    "ps/client": [
        "transport/base",
        "tensor_service",
        "ps/consistency/cut.h",
        "ps/replication",
        "ps/optim",
        "ps/compression",
        "ps/sparse",
        "ps/placement",
        "ps/model",
        "ps/wire",
    ],
    "ps": [
        "penstock",
        "transport/base",
        "tensor_service",
        "ps/checkpoint",
        "ps/access",
        "ps/replication",
        "ps/etcd/cancel.h",
        "ps/membership",
        "ps/views",
        "ps/wire",
        "ps/server",
        "ps/shards",
        "ps/service",
        "ps/client",
        "ps/tier",
    ],
    "python": [
        "penstock",
        "transport/base",
        "transport/progress/fork_count.h",
        "tensor_service",
        "tensor_service/cuda",
        "ps/optim",
        "ps/compression",
        "ps/model",
        "ps/access",
        "ps/client",
        "ps",
    ],
    # transport/rpc for Python, without gRPC.
    "python/rpc": [
        "penstock/options.h",
        "transport/base",
        "transport/progress",
        "transport/memory/bytes.h",
        "transport/settings",
        "transport/session/events.h",
        "transport/connection/keepalive.h",
        "transport/rpc",
        "transport/pool.h",
        "python/gil.h",
    ],
    # Groups of ranks for Python, without gRPC.
    "python/collectives": [
        "penstock/options.h",
        "transport/progress/fork_count.h",
        "transport/settings",
        "tensor_service/dtype.h",
        "collectives/schedule",
        "collectives/reduction",
        "collectives",
        "collectives/host",
        "collectives/net",
        "collectives/hierarchical",
        "python/errors.h",
        "python/gil.h",
    ],
    # The plugin for TensorFlow. Uses only layers below transport/grpc, because
    # TensorFlow brings its own gRPC.
    "frameworks/tensorflow": [
        "transport/base",
        "transport/wire",
        "transport/progress",
        "transport/memory",
        "transport/record",
        "transport/settings",
        "transport/session",
        "transport/rpc",
        "transport/pool.h",
        "tensor_service/dtype.h",
        "collectives/reduction",
        "collectives",
        "collectives/host",
        "collectives/net/address.h",
    ],
    # The c10d backend for PyTorch.
    "frameworks/torch": [
        "penstock/options.h",
        "transport/base",
        "transport/progress/fork_count.h",
        "transport/memory/bytes.h",
        "transport/settings",
        "transport/rpc",
        "tensor_service/dtype.h",
        "collectives/reduction",
        "collectives",
        "collectives/host",
        "collectives/net",
        "collectives/hierarchical",
    ],
    # The command `penstock`, which inspects this machine with the code of
    # the layers.
    "cli/text": ["transport/base"],
    "cli/doctor": [
        "transport/base",
        "transport/wire/hello.h",
        "transport/device/survey.h",
        "transport/progress",
        "transport/fabric/fabric.h",
        "transport/fabric/shm/huge_pages.h",
        "transport/fabric/verbs/locked_memory.h",
        "transport/fabric/verbs/options.h",
        "transport/fabric/verbs/survey.h",
        "transport/settings",
        "transport/paths/side_paths.h",
        "transport/grpc/internal/mismatch.h",
        "cli/text",
    ],
    "cli/top": [
        "transport/base",
        "transport/metrics/connection_info.h",
        "transport/metrics/histogram.h",
        "transport/metrics/labels.h",
        "transport/monitoring/connection_json.h",
        "transport/monitoring/status_client.h",
        "cli/text",
    ],
    # The reports of parameter servers, for people and for programs.
    "cli/ps": [
        "transport/base",
        "ps/wire",
        "cli/text",
        "cli/top/figures.h",
        "cli/top/table.h",
    ],
    "cli": [
        "penstock",
        "transport/base",
        "transport/settings",
        "preload",
        "ps/checkpoint",
        "ps/access",
        "ps/membership",
        "ps/views",
        "ps/wire",
        "ps/client",
        "ps/pem.h",
        "cli/text",
        "cli/doctor",
        "cli/top",
        "cli/ps",
    ],
    "examples/common": [
        "penstock",
        "tensor_service",
        "ps/consistency",
        "ps/model",
        "ps/access",
        "ps/client",
    ],
    "examples/digits": [
        "penstock",
        "tensor_service",
        "ps/optim",
        "ps/model",
        "ps/access",
        "ps/membership",
        "ps/client",
        "ps",
        "examples/common",
    ],
    "examples/embeddings": [
        "tensor_service",
        "ps/optim",
        "ps/model",
        "ps/client",
        "examples/common",
    ],
    "examples/greeter": ["penstock"],
    "examples/income": [
        "tensor_service",
        "ps/optim",
        "ps/model",
        "ps/client",
        "examples/common",
    ],
    "examples/tensors": ["penstock", "tensor_service"],
    "bench/rpc/message": ["penstock", "tensor_service", "tensor_service/cuda"],
    "bench/rpc/recording": ["bench/rpc/message"],
    "bench/rpc/setup": [
        "penstock",
        "transport/base",
        "bench/rpc/message",
        "bench/rpc/recording",
    ],
    "bench/rpc/client": [
        "penstock",
        "bench/rpc/message",
        "bench/rpc/recording",
        "bench/rpc/setup",
    ],
    "bench/rpc/server": [
        "penstock",
        "bench/rpc/message",
        "bench/rpc/recording",
        "bench/rpc/setup",
    ],
    "bench/rpc/report": [
        "bench/rpc/message",
        "bench/rpc/setup",
        "bench/rpc/client",
    ],
    "bench/rpc": [
        "penstock",
        "bench/rpc/message",
        "bench/rpc/setup",
        "bench/rpc/client",
        "bench/rpc/server",
        "bench/rpc/report",
    ],
    "bench/tensors": [
        "penstock",
        "tensor_service",
        "tensor_service/cuda",
        "bench/rpc/message",
        "bench/rpc/setup",
        "bench/rpc/report",
    ],
    "bench/ps": [
        "tensor_service",
        "ps/optim",
        "ps/compression",
        "bench/rpc/report/statistics.h",
    ],
    "bench/ps/checkpoint": [
        "tensor_service",
        "ps/checkpoint",
        "ps/model",
        "ps/wire",
        "ps/server",
        "ps/client",
        "bench/rpc/setup",
    ],
    "bench/ps/sparse": ["ps/sparse"],
    "bench/ps/replicas": [
        "penstock",
        "tensor_service",
        "ps/consistency",
        "ps/model",
        "ps/client",
    ],
    "bench/ps/training": [
        "penstock",
        "tensor_service",
        "ps/optim",
        "ps/random",
        "ps/model",
        "ps/server",
        "ps/service",
        "ps/client",
        "bench/rpc/message",
        "bench/rpc/setup",
        "bench/rpc/report",
        "bench/tensors/sum.h",
    ],
    "bench/collectives": [
        "transport/progress/spin_policy.h",
        "tensor_service/dtype.h",
        "collectives/schedule",
        "collectives/reduction",
        "collectives",
        "collectives/host",
        "collectives/net",
        "collectives/hierarchical",
        "bench/rpc/report/statistics.h",
    ],
    "bench/echo": [],
    "bench/connections": ["penstock", "bench/echo"],
    "bench/current_grpc": [
        "penstock",
        "bench/rpc/message",
        "bench/rpc/setup",
    ],
    "bench/device": [
        "penstock",
        "transport/memory",
        "transport/device",
        "bench/echo",
    ],
    "bench/grpc_qps": [],
    "bench/preload": ["penstock", "preload"],
    # Measures internals of the layers.
    "bench/micro": [
        "transport/base",
        "transport/wire",
        "transport/metrics",
        "transport/progress",
        "transport/memory",
        "transport/device",
        "transport/record",
        "transport/fabric",
        "transport/fabric/fake",
        "transport/fabric/tcp",
        "transport/fabric/shm",
        "transport/fabric/verbs",
        "transport/fabric/tcp/stripes",
        "transport/settings",
        "transport/protocol",
        "transport/session",
        "transport/paths",
        "transport/connection",
        "transport/event_engine/stream",
        "transport/event_engine/meeting",
        "transport/event_engine/rdma",
        "transport/event_engine/threads",
        "transport/rpc",
        "transport/grpc",
        "transport/monitoring",
        "tensor_service",
    ],
}

def layer_of(path):
    """Returns the layer of a folder or file of the project, or None."""
    if path in LAYERS:
        return path
    folder = path.rpartition("/")[0]
    return folder if folder in LAYERS else None

def users(layer):
    """Returns the visibility of `layer`: the layers that may include it."""
    return [
        "//%s:__pkg__" % user
        for user, included in LAYERS.items()
        if layer in [layer_of(path) for path in included]
    ]
