#!/bin/sh
# Tests the demos of sparse tables as a user runs them. They must print their
# progress and no log lines, and must fail with a reason.
set -eu
income=examples/income/demo
embeddings=examples/embeddings/demo
out=$TEST_TMPDIR/out
error=$TEST_TMPDIR/error

# Runs a command that must fail with a message that contains $1.
refuses() {
  message=$1
  shift
  if "$@" > "$out" 2> "$error"; then
    echo "should have failed: $*" >&2
    exit 1
  fi
  grep -q -e "$message" "$error" || { cat "$error" >&2; exit 1; }
}

# Silences the log: lines for each connection would hide the demo's own.
quiet() {
  if grep ' info penstock' "$error"; then
    exit 1
  fi
}

"$income" > "$out" 2> "$error"
cat "$out" "$error"
grep -q '^parameter servers: 2, workers: 2, staleness: 0$' "$out"
grep -q '^step  500: loss 0\.[23]' "$out"
grep -q '^held out: AUC 0\.9' "$out"
grep -q '^weights that are not 0: ' "$out"
quiet

"$embeddings" --steps=100 Monday xyzzy > "$out" 2> "$error"
cat "$out" "$error"
grep -q '^step  100: loss 0\.' "$out"
grep -q '^monday  .* 0\.' "$out"
grep -q '^xyzzy  *none: it is not 10 times in the novels' "$out"
quiet

refuses 'AUC is below 0.88' "$income" --steps=1
refuses "'soon' is neither a number of steps" "$income" --staleness=soon
refuses "'-1' is neither a number of steps" "$embeddings" --staleness=-1
refuses '--dim: Value 0 not in range' "$embeddings" --dim=0
refuses 'not expected: --speed' "$income" --speed

cp "$embeddings" "$TEST_TMPDIR/alone"
refuses 'no program at .*embeddings_worker.*bazel run' "$TEST_TMPDIR/alone"
