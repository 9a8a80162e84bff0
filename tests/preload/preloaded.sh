#!/usr/bin/env bash
# Runs a test program that knows nothing of Penstock, with the stub preloaded.
# Fails if the program fails, or if no connection went over shared memory.
#
# usage: preloaded.sh STUB PROGRAM [ARGUMENT...]
set -euo pipefail

stub=$PWD/$1
shift
log=$(mktemp "${TEST_TMPDIR:?}/log.XXXXXX")
code=0
PENSTOCK_LIBRARY=$PWD/penstock/libpenstock.so.0 LD_PRELOAD=$stub PENSTOCK_FABRICS=shm "$@" 2>"$log" || code=$?
if ((code != 0)); then
  tail -n 200 "$log" >&2
  exit "$code"
fi
for side in to from; do
  grep -q "penstock\[.*connection $side .*: shm (ring" "$log" || {
    echo "no connection $side a peer went over shm" >&2
    exit 1
  }
done
