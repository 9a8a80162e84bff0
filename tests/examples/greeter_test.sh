#!/bin/sh
# Tests that the two programs greet each other on a free port.
set -eu
mkfifo "$TEST_TMPDIR/said"
examples/greeter/greeter_server 127.0.0.1:0 > "$TEST_TMPDIR/said" &
server=$!
trap 'kill $server' EXIT
read -r line < "$TEST_TMPDIR/said"
examples/greeter/greeter_client "127.0.0.1:${line##* }" | grep 'Hello world'
