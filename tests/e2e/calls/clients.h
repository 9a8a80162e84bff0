// Makes the same two calls through each of gRPC's client APIs.

#ifndef PENSTOCK_TESTS_E2E_CALLS_CLIENTS_H_
#define PENSTOCK_TESTS_E2E_CALLS_CLIENTS_H_

#include <cstddef>
#include <vector>

#include "grpcpp/support/status.h"
#include "tests/e2e/calls/servers.h"
#include "tests/e2e/testing.grpc.pb.h"

namespace penstock::e2e {

// The end of a call, and the sizes of the responses before it.
struct Ending {
  grpc::Status status;
  std::vector<size_t> sizes;
};

// Makes a UnaryCall with one message of `size` in each direction.
Ending MakeUnaryCall(Api api, TestService::Stub* stub, size_t size);

// Makes a FullDuplexCall that alternates between sending and receiving a
// message of each size. After the last message, half-closes or cancels.
Ending MakeDuplexCall(Api api, TestService::Stub* stub,
                      const std::vector<size_t>& sizes, bool cancel);

}  // namespace penstock::e2e

#endif  // PENSTOCK_TESTS_E2E_CALLS_CLIENTS_H_
