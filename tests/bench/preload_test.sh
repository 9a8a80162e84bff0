#!/usr/bin/env bash
# bench/preload measures each program in each of its ways.
set -euo pipefail
said=$(bench/preload/preload --rounds=1 --calls=100)
for line in 'c++, 8' 'sync, 64KiB' 'aio, 1MiB'; do
  grep -Fqx "$line" <<<"$said"
done
(($(grep -Ec '^  (stock|run|linked) .*[0-9]x$' <<<"$said") == 21))
