#!/bin/sh
# Tests which source decides the role of a process: flags win over TF_CONFIG. A
# process without either, or with the role of another program, must report it.
set -eu
server=ps/ps_server
worker=examples/digits/digits_worker
error="$TEST_TMPDIR/error"
unset TF_CONFIG

# refused PATTERN COMMAND... : the command fails with the message PATTERN.
refused() {
  pattern=$1
  shift
  if "$@" > /dev/null 2> "$error"; then
    echo "should fail: $*" >&2
    exit 1
  fi
  grep -q -e "$pattern" "$error" || {
    cat "$error" >&2
    exit 1
  }
}

refused 'give --workers .* or set TF_CONFIG' "$server"
refused 'give --servers .* or set TF_CONFIG' "$worker"
refused 'rank=2 is out of range' "$worker" --servers=x:1 --rank=2 --workers=2
refused '--servers' "$worker" --rank=1
for size in --memory --held-gradients --sparse-memory --held-answers \
  --spill-limit; do
  refused "$size: .*-1 " "$server" --workers=1 --spill=/tmp "$size=-1"
  refused "$size" "$server" --workers=1 --spill=/tmp "$size=much"
done

for size in --memory --held-gradients --held-answers; do
  refused "$size: .*no room" "$server" --workers=1 "$size=0"
done
for address in 127.0.0.1:99999 127.0.0.1:65536 '[::1]:' 127.0.0.1:x; do
  refused '--listen: .*port that is not 0 to 65535' \
    "$server" --workers=1 "--listen=$address"
done
refused '--listen: .*has no port.*127.0.0.1:2222' \
  "$server" --workers=1 --listen=127.0.0.1

export TF_CONFIG='{"cluster": {"ps": ["nowhere.invalid:1"], "worker": ["w:1"]},
  "task": {"type": "worker", "index": 0}}'
refused 'is not ps' "$server"
export TF_CONFIG='{"cluster": {"ps": ["nowhere.invalid:1"], "worker": ["w:1"]},
  "task": {"type": "ps", "index": 0}}'
refused 'run ps_server' "$worker"
refused 'the name "nowhere.invalid" is unknown' "$server"
TF_CONFIG='{' refused 'not valid JSON' "$server"
TF_CONFIG='{"cluster": {"ps": ["127.0.0.1"], "worker": ["w:1"]},
  "task": {"type": "ps", "index": 0}}'
refused 'TF_CONFIG' "$server"

# --listen wins over the address in TF_CONFIG, but the workers of TF_CONFIG
# still count. If both flags are given, even a malformed TF_CONFIG does not
# matter.
greets() {
  mkfifo "$TEST_TMPDIR/said"
  "$@" > "$TEST_TMPDIR/said" &
  read -r line < "$TEST_TMPDIR/said"
  rm "$TEST_TMPDIR/said"
  kill $!
  wait $!
  test "${line%% *}" = port
}
greets "$server" --quiet --listen=127.0.0.1:0
TF_CONFIG='{'
greets "$server" --quiet --listen=127.0.0.1:0 --workers=1
