#!/usr/bin/env bash
# Tests the digits training over verbs. The training must reach its accuracy,
# equal the training over stock gRPC to the last bit (otherwise the demo fails),
# and report that verbs carried it.
set -euo pipefail
: "${RDMA_VM:?wants the devices of tools/rdma-vm}"

export PENSTOCK_FABRICS=verbs,tcp PENSTOCK_POLICY=require
# Uses narrow layers, because the guest is slow.
output=$(examples/digits/demo --steps 200 --hidden 32 --workers 2 --servers 1 \
  --rounds 1 2>&1) ||
  { echo "$output"; exit 1; }
echo "$output"
grep -qE '^Penstock .* verbs \(rxe[01]/1, GID 1, RoCE v2, ' <<<"$output"
! grep -q 'not better because' <<<"$output"
