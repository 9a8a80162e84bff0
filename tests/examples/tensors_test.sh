#!/bin/sh
# Tests that the C++ example gets back what it sends, over shared memory.
set -eu
examples/tensors/tensors > "$TEST_TMPDIR/said"
grep -qx 'f32\[2,3\] 0 1 2 3 4 5' "$TEST_TMPDIR/said"
grep -q '^over shm' "$TEST_TMPDIR/said"
