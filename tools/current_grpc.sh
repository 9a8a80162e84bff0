#!/usr/bin/env bash
# Builds and tests Penstock for current gRPC; see docs/current_grpc.md.
#
#   tools/current_grpc.sh FOLDER      builds into FOLDER, and runs the tests
#   tools/current_grpc.sh --packages  installs what that needs, in a root of
#                                     Debian sid with experimental. Exit code 77
#                                     if the archive has no such gRPC any more
set -euo pipefail

# Says that the archive has moved on. Usage: moved_on WHAT
moved_on() { echo "current_grpc.sh: the archive has moved on: $*" >&2; exit 77; }

# Prints the version of a package that `install` would take from experimental.
candidate() {
  apt-cache policy -t experimental "$1" | awk '$1 == "Candidate:" { print $2 }'
}

# Installs packages. Usage: install OPTION_OR_PACKAGE...
install() {
  DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends \
    install "$@"
}

# Prints the newest version of libabsl-dev that fits the installed libgrpc,
# which names the release of abseil in its dependencies.
fitting_abseil() {
  local release
  release=$(dpkg-query -W -f '${Depends}\n' 'libgrpc[0-9]*' |
    grep -o 'libabsl[0-9]*' | head -n 1)
  apt-cache madison libabsl-dev |
    awk -v release="${release#libabsl}" 'index($3, release) == 1 {
      print $3; exit }'
}

install_packages() {
  local abseil version
  apt-get -q update
  version=$(candidate libgrpc++-dev)
  if [[ $version != [0-9]* ]] || dpkg --compare-versions "$version" lt 1.60; then
    moved_on "libgrpc++-dev is ${version:-missing}, not 1.60 or later"
  fi
  install -t experimental g++ libgrpc++-dev pkgconf protobuf-compiler-grpc libprotobuf-dev
  install cmake make ninja-build libspdlog-dev libgmock-dev openssl
  install libssl-dev libibverbs-dev librdmacm-dev
  install libcli11-dev nlohmann-json3-dev libjs-chart.js zlib1g-dev
  # Stock gRPC 1.51.1, with a core of its own, as a peer.
  install python3-grpcio
  abseil=$(fitting_abseil)
  [[ -n $abseil ]] || moved_on "no libabsl-dev fits the libgrpc"
  install --allow-downgrades "libabsl-dev=$abseil"
}

case ${1:-} in
  --packages) install_packages ;;
  '' | -*) sed -n -e '1d' -e '/^#/!q' -e 's/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
  *)
    cmake -G Ninja -B "$1" -DPENSTOCK_TESTS=ON -DPENSTOCK_RDMA=ON
    cmake --build "$1"
    ctest --test-dir "$1" --output-on-failure
    ;;
esac
