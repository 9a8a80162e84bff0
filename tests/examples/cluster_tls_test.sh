#!/bin/sh
# A parameter server and its workers under TLS: they train where both sides have
# certificates, and a worker without one is turned away.
set -eu
server=ps/ps_server
worker=examples/digits/digits_worker
folder="$TEST_TMPDIR"

# certificate NAME: signed by ca.pem, for localhost.
certificate() {
  openssl req -newkey rsa:2048 -nodes -subj "/CN=$1" \
    -keyout "$folder/$1.key" -out "$folder/$1.csr"
  printf 'subjectAltName=DNS:localhost,IP:127.0.0.1' > "$folder/$1.ext"
  openssl x509 -req -in "$folder/$1.csr" -CA "$folder/ca.pem" \
    -CAkey "$folder/ca.key" -CAcreateserial -days 2 \
    -extfile "$folder/$1.ext" -out "$folder/$1.pem"
}
{
  openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=ca \
    -keyout "$folder/ca.key" -out "$folder/ca.pem"
  certificate server
  certificate worker
} 2> "$folder/openssl"

# shows NAME: the flags that show its certificate.
shows() {
  echo "--ca=$folder/ca.pem --cert=$folder/$1.pem --key=$folder/$1.key"
}

# refused PATTERN COMMAND... : it fails and says PATTERN.
refused() {
  pattern=$1
  shift
  if "$@" > /dev/null 2> "$folder/error"; then
    echo "should fail: $*" >&2
    exit 1
  fi
  grep -q -e "$pattern" "$folder/error" || {
    cat "$folder/error" >&2
    exit 1
  }
}

refused 'give all three' "$server" --workers=1 --cert="$folder/server.pem"
refused 'give all three' "$worker" --servers=x:1 --ca="$folder/ca.pem"
for program in "$server --workers=1" "$worker --servers=x:1"; do
  # Empty ones, as of variables that are not set, are not "none".
  # shellcheck disable=SC2086  # a program and its flag
  refused 'File does not exist' $program --ca "" --cert "" --key ""
done
refused 'File does not exist.*absent' "$server" --workers=1 --ca="$folder/absent" \
  --cert="$folder/server.pem" --key="$folder/server.key"

mkfifo "$folder/said"
# shellcheck disable=SC2046  # several flags
"$server" --workers=1 $(shows server) > "$folder/said" &
pid=$!
read -r _ port < "$folder/said"

if timeout 5 "$worker" --servers="localhost:$port" --steps=10 \
  > "$folder/out" 2>&1; then
  echo "a worker without a certificate was admitted" >&2
  exit 1
fi
if grep -q '^step' "$folder/out"; then
  echo "a worker without a certificate has trained" >&2
  exit 1
fi
# shellcheck disable=SC2046  # several flags
"$worker" --servers="localhost:$port" --steps=10 --hidden=64 \
  $(shows worker) > "$folder/out"
grep -q '^result ' "$folder/out"
kill "$pid"
wait "$pid"
