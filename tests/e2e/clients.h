// Makes the same two calls through each of gRPC's client APIs.

#ifndef PENSTOCK_TESTS_E2E_CLIENTS_H_
#define PENSTOCK_TESTS_E2E_CLIENTS_H_

#include <cstddef>
#include <vector>

#include "grpcpp/support/status.h"
#include "tests/e2e/servers.h"
#include "tests/e2e/testing.grpc.pb.h"

namespace penstock::e2e {

// How a call ended, and the sizes of the responses that came before.
struct Ending {
  grpc::Status status;
  std::vector<size_t> sizes;
};

// Makes a UnaryCall with one message of `size` each way.
Ending MakeUnaryCall(Api api, TestService::Stub* stub, size_t size);

// Makes a FullDuplexCall with one message of each size each way, by turns.
// After the last one it half-closes, or cancels.
Ending MakeDuplexCall(Api api, TestService::Stub* stub,
                      const std::vector<size_t>& sizes, bool cancel);

}  // namespace penstock::e2e

#endif  // PENSTOCK_TESTS_E2E_CLIENTS_H_
