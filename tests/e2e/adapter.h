// Tells the tests for which gRPC release Penstock is built.

#ifndef PENSTOCK_TESTS_E2E_ADAPTER_H_
#define PENSTOCK_TESTS_E2E_ADAPTER_H_

#include "grpcpp/version_info.h"

namespace penstock::e2e {

// True for gRPC 1.60 and later (docs/current_grpc.md). There, tests see these
// differences:
//
// - Penstock has no frames of its own on a TCP connection.
// - A connection moves to shared memory while calls are in progress, and counts
//   no messages.
// - DescribePaths() returns all connections of the process's Penstock channels,
//   and none of stock channels.
constexpr bool kIsEventEngine =
    GRPC_CPP_VERSION_MAJOR > 1 || GRPC_CPP_VERSION_MINOR >= 60;

}  // namespace penstock::e2e

#endif  // PENSTOCK_TESTS_E2E_ADAPTER_H_
