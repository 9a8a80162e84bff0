#!/usr/bin/env bash
# Does what docs/current_grpc.md tells a newcomer to do after the build: installs
# Penstock, builds the greeter against it, and calls over shared memory.
#
# usage: install_test.sh SOURCE BUILD make|cmake
set -euo pipefail

source=$1 build=$2 by=$3
work=$(mktemp -d)
trap '[[ -z ${server:-} ]] || kill "$server" || true; rm -rf "$work"' EXIT
cmake --install "$build" --prefix "$work/prefix" >"$work/log"
cp -r "$source/examples/greeter" "$work/"
cd "$work/greeter"
case $by in
  make)
    PKG_CONFIG_PATH=$(dirname "$(find "$work/prefix" -name penstock.pc)") \
      make
    ;;
  cmake)
    cmake -S . -B . -DCMAKE_PREFIX_PATH="$work/prefix"
    cmake --build .
    ;;
esac

: >"$work/out" # the loop below may read the file before the server exists
./greeter_server 127.0.0.1:0 >>"$work/out" 2>"$work/server" &
server=$!
for ((i = 0; i < 100; ++i)); do
  port=$(sed -n 's/^listening on port //p' "$work/out")
  [[ -z $port ]] || break
  sleep 0.1
done
./greeter_client "127.0.0.1:$port" |& tee "$work/client"
cat "$work/server"
grep -q 'connection to .*: shm (ring' "$work/client"
grep -q 'connection from .*: shm (ring' "$work/server"
