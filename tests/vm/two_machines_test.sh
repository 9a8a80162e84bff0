#!/usr/bin/env bash
# Tests that two machines reach each other by rdma_cm and by verbs.
set -euo pipefail
: "${RDMA_VM:?wants the devices of tools/rdma-vm}"

[[ $RDMA_VM_HOSTS == 2 ]]
if ((RDMA_VM_RANK == 0)); then
  rping -s -a 10.8.0.1 -C 5 -V
else
  until rping -c -a 10.8.0.1 -C 5 -V; do sleep 1; done # until both run
fi
