#!/bin/sh
# Tests the demo as users run it, only shorter: both runs must train, agree to
# the last bit, and name their transport; the bounded and the asynchronous run
# must train, too. A demo that cannot train must fail.
set -eu
demo=examples/digits/demo

"$demo" --quick | tee "$TEST_TMPDIR/out"
grep -q '^Penstock ' "$TEST_TMPDIR/out"
grep -q "^stock .* http2$" "$TEST_TMPDIR/out"
grep -q "^stock / ours" "$TEST_TMPDIR/out"
grep -q '^bounded : accuracy' "$TEST_TMPDIR/out"
grep -q '^async   : accuracy' "$TEST_TMPDIR/out"

if "$demo" --steps 2 > /dev/null 2> "$TEST_TMPDIR/error"; then
  echo "two steps should not suffice" >&2
  exit 1
fi
grep -q 'accuracy is below' "$TEST_TMPDIR/error"
