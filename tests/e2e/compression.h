// Detects compressed messages.

#ifndef PENSTOCK_TESTS_E2E_COMPRESSION_H_
#define PENSTOCK_TESTS_E2E_COMPRESSION_H_

#include <cstdint>

#include "grpc/grpc.h"

// Returns the flags of the last received message. Exported by libgrpc for
// interoperability tests. No package has the header that declares the function.
uint32_t grpc_call_test_only_get_message_flags(grpc_call* call);

namespace penstock::e2e {

// Returns true if the last message that this side of `call` received was
// compressed.
inline bool CameCompressed(grpc_call* call) {
  constexpr uint32_t kWasCompressed = 0x40000000;
  return (grpc_call_test_only_get_message_flags(call) & kWasCompressed) != 0;
}

}  // namespace penstock::e2e

#endif  // PENSTOCK_TESTS_E2E_COMPRESSION_H_
