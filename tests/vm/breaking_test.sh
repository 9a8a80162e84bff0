#!/usr/bin/env bash
# Tests that a test in a machine of its own may remove devices and add them.
set -euo pipefail
: "${RDMA_VM:?wants the devices of tools/rdma-vm}"

devices() { ibv_devices | awk 'NR > 2 { print $1 }' | sort | xargs; }

[[ $(devices) == 'rxe0 rxe1' ]]
rdma link delete rxe1
[[ $(devices) == rxe0 ]]
rdma link add rxe1 type rxe netdev n1
[[ $(devices) == 'rxe0 rxe1' ]]
