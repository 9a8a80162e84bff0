#!/bin/sh
# Tests the tensors example in Python, as two processes.
set -eu
export PYTHONPATH="$PWD/python"
mkfifo "$TEST_TMPDIR/said"
/usr/bin/python3 -B examples/tensors/tensors.py > "$TEST_TMPDIR/said" &
server=$!
trap 'kill $server' EXIT
read -r address < "$TEST_TMPDIR/said"
/usr/bin/python3 -B examples/tensors/tensors.py "$address" > "$TEST_TMPDIR/got"
grep -qF '[3. 4. 5.]' "$TEST_TMPDIR/got"
grep -q '^over shm' "$TEST_TMPDIR/got"
