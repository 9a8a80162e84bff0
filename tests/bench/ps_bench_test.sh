#!/usr/bin/env bash
# Runs each benchmark of bench/ps for a moment, to check that it still works.
set -euo pipefail
said=$(bench/ps/optimizers --mib=1 --rounds=1 --threads=2)
for row in triad sgd momentum adagrad adam ftrl; do
  grep -Eq "^ *$row" <<<"$said"
done
said=$(bench/ps/compression --mib=1 --rounds=1 --threads=2)
for row in memcpy bf16 f16 top-k random-k int8; do
  grep -Eq "^ *$row" <<<"$said"
done
said=$(bench/ps/sparse/sparse --rows=2000 --batch=64 --seconds=0.01 --rounds=1)
for row in table unordered_map; do
  grep -q "$row" <<<"$said"
done
for workload in dense dense4 small uniform zipf; do
  said=$(bench/ps/training/training --workloads=$workload --elements=1000 \
    --variables=10 --rows=1000 --batch=100 --rounds=2 --seconds=0.01 \
    --json="$TEST_TMPDIR/training.json" 2>/dev/null)
  for row in stock tcp shm 'stock / shm'; do
    grep -Eq "^ *$row" <<<"$said"
  done
  [[ $workload != dense* ]] || grep -q 'shm / plain' <<<"$said"
  grep -q '"shm"' "$TEST_TMPDIR/training.json"
done
folder=$(mktemp -d "$TEST_TMPDIR/XXXXXX")
for kind in '' --sparse; do
  # shellcheck disable=SC2086  # none, or one word
  said=$(bench/ps/checkpoint/checkpoint --folder="$folder" --megabytes=2 \
    --rounds=1 $kind)
  for row in write read; do
    grep -q "$row" <<<"$said"
  done
  # shellcheck disable=SC2086  # none, or one word
  said=$(bench/ps/checkpoint/during_pushes --folder="$folder" --megabytes=2 \
    --rounds=1 $kind)
  grep -q 'slowed: median' <<<"$said"
done
said=$(bench/ps/checkpoint/restore --folder="$folder" --megabytes=2 --servers=2 \
  --rounds=1 2>/dev/null)
grep -q 'times the slowest server alone' <<<"$said"
# Checks that the benchmarks remove their files, and refuse unknown flags.
[[ -z $(ls -A "$folder") ]]
for wrong in 'optimizers --rounds=0' 'compression --ratio=0' 'sparse/sparse --batch=0' \
  'checkpoint/checkpoint --folder=/no/such/folder' \
  'training/training --contenders=none' 'training/training --zipf=1'; do
  # shellcheck disable=SC2086  # words
  if bench/ps/$wrong >/dev/null 2>&1; then exit 1; fi
done
