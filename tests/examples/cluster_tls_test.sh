#!/bin/sh
# Tests a parameter server and its workers under TLS. They must train if both
# sides have certificates. A worker without a certificate must be refused.
set -eu
server=ps/ps_server
worker=examples/digits/digits_worker
folder="$TEST_TMPDIR"

# authority NAME: signs certificates.
authority() {
  openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj "/CN=$1" \
    -keyout "$folder/$1.key" -out "$folder/$1.pem"
}

# certificate NAME CA HOST: makes a certificate signed by CA.
certificate() {
  openssl req -newkey rsa:2048 -nodes -subj "/CN=$1" \
    -keyout "$folder/$1.key" -out "$folder/$1.csr"
  printf 'subjectAltName=DNS:%s' "$3" > "$folder/$1.ext"
  openssl x509 -req -in "$folder/$1.csr" -CA "$folder/$2.pem" \
    -CAkey "$folder/$2.key" -CAcreateserial -days 2 \
    -extfile "$folder/$1.ext" -out "$folder/$1.pem"
}
{
  authority ca
  authority other
  certificate server ca localhost
  certificate worker ca localhost
  certificate elsewhere ca elsewhere
  certificate foreign other localhost
} 2> "$folder/openssl"

# shows NAME: prints the flags for NAME's certificate.
shows() {
  echo "--ca=$folder/ca.pem --cert=$folder/$1.pem --key=$folder/$1.key"
}

# refused PATTERN COMMAND... : the command fails with the message PATTERN.
refused() {
  pattern=$1
  shift
  code=0
  "$@" > /dev/null 2> "$folder/error" || code=$?
  if [ "$code" -eq 0 ] || [ "$code" -ge 124 ]; then
    echo "should fail, and neither hang nor crash: $*: $code" >&2
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
  # Passes empty paths, as from variables that are not set. They count as paths
  # of files that do not exist.
  # shellcheck disable=SC2086  # a program and its flag
  refused 'File does not exist' $program --ca "" --cert "" --key ""
done
refused 'File does not exist.*absent' "$server" --workers=1 --ca="$folder/absent" \
  --cert="$folder/server.pem" --key="$folder/server.key"

# malformed FILE PATTERN: puts FILE in the place of one of the server's files.
for name in ca server; do cp "$folder/$name.pem" "$folder/cut-$name.pem"; done
cp "$folder/server.key" "$folder/cut-server.key"
openssl rsa -aes128 -passout pass:secret -in "$folder/server.key" \
  -out "$folder/locked.key" 2>> "$folder/openssl"
for name in cut-ca.pem cut-server.pem cut-server.key; do
  truncate -s 700 "$folder/$name"
done
echo nothing > "$folder/nothing"
malformed() {
  refused "$4" "$server" --workers=1 --ca="$folder/$1" --cert="$folder/$2" \
    --key="$folder/$3"
}
malformed nothing server.pem server.key '/nothing: there is no certificate in PEM'
malformed ca.pem nothing server.key '/nothing: there is no certificate in PEM'
malformed ca.pem server.pem nothing '/nothing: there is no private key in PEM'
malformed cut-ca.pem server.pem server.key '/cut-ca.pem: its certificate cannot'
malformed ca.pem cut-server.pem server.key '/cut-server.pem: its certificate c'
malformed ca.pem server.pem cut-server.key '/cut-server.key: its private key c'
malformed ca.pem server.pem locked.key '/locked.key: .* a passphrase'
malformed ca.pem server.pem worker.key '/worker.key: .* in .*/server.pem'
malformed ca.pem server.key server.pem '/server.key: there is no certificate'

mkfifo "$folder/said"
# shellcheck disable=SC2046  # several flags
"$server" --workers=1 $(shows server) > "$folder/said" &
pid=$!
read -r _ port < "$folder/said"

# Expects that each worker reports the fault long before 60 s, the time for
# which it waits for a server.
joins() {
  timeout 30 "$worker" --servers="localhost:$port" --steps=10 --hidden=64 "$@"
}
closes='server 0: it closes each connection: .*--ca, --cert and --key'
for stock in --gate --stock; do
  refused "$closes" joins $stock
  # shellcheck disable=SC2046
  refused "$closes" joins $stock --ca="$folder/ca.pem" \
    --cert="$folder/foreign.pem" --key="$folder/foreign.key"
  refused 'server 0: no TLS: .*--ca names who signed' joins $stock \
    --ca="$folder/other.pem" --cert="$folder/worker.pem" \
    --key="$folder/worker.key"
done
# turned_away PATTERN FLAG... : a server with these flags refuses the worker.
turned_away() {
  pattern=$1
  shift
  mkfifo "$folder/other-said"
  "$server" --workers=1 "$@" > "$folder/other-said" &
  other=$!
  read -r _ other_port < "$folder/other-said"
  rm "$folder/other-said"
  # shellcheck disable=SC2046
  refused "$pattern" timeout 30 "$worker" --servers="localhost:$other_port" \
    --steps=1 $(shows worker)
  kill "$other"
  wait "$other"
}
# shellcheck disable=SC2046
turned_away 'no TLS: .*another name' $(shows elsewhere)
turned_away 'no TLS: the server does not use TLS'

# shellcheck disable=SC2046  # several flags
"$worker" --servers="localhost:$port" --steps=10 --hidden=64 \
  $(shows worker) > "$folder/out"
grep -q '^result ' "$folder/out"
kill "$pid"
wait "$pid"
