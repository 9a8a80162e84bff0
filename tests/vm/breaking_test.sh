#!/usr/bin/env bash
# A test with its own machine may take devices away and add them again.
set -euo pipefail
: "${RDMA_VM:?wants the devices of tools/rdma-vm}"

devices() { ibv_devices | awk 'NR > 2 { print $1 }' | sort | xargs; }

[[ $(devices) == 'rxe0 rxe1' ]]
rdma link delete rxe1
[[ $(devices) == rxe0 ]]
rdma link add rxe1 type rxe netdev n1
[[ $(devices) == 'rxe0 rxe1' ]]
