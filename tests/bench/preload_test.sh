#!/usr/bin/env bash
# Checks that bench/preload measures each program in each of its modes.
set -euo pipefail
said=$(bench/preload/preload --rounds=1 --calls=100)
for line in 'c++, 8' 'sync, 64KiB' 'aio, 1MiB'; do
  grep -Fqx "$line" <<<"$said"
done
(($(grep -Ec '^  (stock|run|linked) .*[0-9]x$' <<<"$said") == 21))
said=$(bench/preload/preload --rounds=2 --calls=100 --programs=c++ --sizes=8 \
  --kinds=linked,run)
grep -Eq '^  linked .* 1\.000x$' <<<"$said"
(($(wc -l <<<"$said") == 4))
for wrong in --sizes=9 --kinds=stocked '--programs=sync --kinds=linked'; do
  # shellcheck disable=SC2086  # two words
  if bench/preload/preload $wrong 2>/dev/null; then exit 1; fi
done
