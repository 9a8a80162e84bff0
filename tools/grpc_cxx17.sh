#!/usr/bin/env bash
# Builds and tests transport/grpc where gRPC 1.51.1 is compiled as C++17, on
# Debian's forky and sid; see docs/testing.md.
#
#   tools/grpc_cxx17.sh             builds the library and the greeter, and runs
#                                   tests
#   tools/grpc_cxx17.sh --packages  installs what that needs. Exit code 77 if the
#                                   archive has another gRPC by now
#
# gRPC's internal headers come from ~/.cache/penstock/grpc-1.51.1, where
# tools/setup of Debian 12 or 13 puts them, or from PENSTOCK_GRPC_SOURCE.
set -euo pipefail

readonly PACKAGES=(
  bazel-bootstrap bazel-platforms bazel-rules-java bazel-rules-proto
  bazel-skylib g++ libgrpc++-dev libgrpc-dev protobuf-compiler
  protobuf-compiler-grpc libprotobuf-dev libabsl-dev nlohmann-json3-dev
  libspdlog-dev libxxhash-dev libcli11-dev libjs-chart.js libdlpack-dev
  libssl-dev prometheus-cpp-dev libcurl4-openssl-dev zlib1g-dev
  systemtap-sdt-dev python3 dpkg-dev libibverbs-dev librdmacm-dev
  libhwy-dev libtbb-dev librocksdb-dev pybind11-dev python3-dev cython3 git
  libgtest-dev libgmock-dev openssl ca-certificates ibverbs-providers iproute2
)
# Tests of the adapter and of calls through the whole stack, which need no other
# packages.
readonly TESTS=(//tests/transport/grpc/... //tests/e2e/calls/...)

install_packages() {
  local version
  apt-get -q update
  version=$(apt-cache policy libgrpc++-dev | awk '$1 == "Candidate:" { print $2 }')
  if [[ $version != 1.51.1-* ]]; then
    echo "grpc_cxx17.sh: the archive has moved on: libgrpc++-dev is" \
      "${version:-missing}, not 1.51.1" >&2
    exit 77
  fi
  DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends \
    install "${PACKAGES[@]}"
}

case ${1:-} in
  --packages) install_packages ;;
  '')
    bazel --bazelrc=third_party/bazel7.bazelrc build \
      //transport/grpc/... //examples/greeter/...
    bazel --bazelrc=third_party/bazel7.bazelrc test "${TESTS[@]}"
    ;;
  *) sed -n -e '1d' -e '/^#/!q' -e 's/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
