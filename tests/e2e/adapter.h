// The adapter of Penstock with which these tests are built.

#ifndef PENSTOCK_TESTS_E2E_ADAPTER_H_
#define PENSTOCK_TESTS_E2E_ADAPTER_H_

#include "grpcpp/version_info.h"

namespace penstock::e2e {

// True for gRPC 1.60 and later (docs/current_grpc.md). Tests notice these
// differences:
//
// - Penstock has no frames of its own on a TCP connection.
// - A connection moves to shared memory while it works, and counts no messages.
// - DescribePaths() returns all connections of the process's channels of
//   Penstock, and none of stock channels.
constexpr bool kIsEventEngine =
    GRPC_CPP_VERSION_MAJOR > 1 || GRPC_CPP_VERSION_MINOR >= 60;

}  // namespace penstock::e2e

#endif  // PENSTOCK_TESTS_E2E_ADAPTER_H_
