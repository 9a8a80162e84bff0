// The messages of a replayed call. Both sides know the recording, and so what
// each message has to be.

#ifndef PENSTOCK_BENCH_RPC_REPLAY_MESSAGE_H_
#define PENSTOCK_BENCH_RPC_REPLAY_MESSAGE_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "grpcpp/support/byte_buffer.h"

namespace penstock {
namespace bench {

// Message `index` of call `call`.
inline uint64_t ReplaySeed(size_t call, size_t index) {
  return call * 0x9e3779b97f4a7c15u + index;
}

// Allocates it and writes it. Unlike MakePayload(), it may be empty.
grpc::ByteBuffer MakeReplayMessage(size_t bytes, uint64_t seed);

// Reads every byte. Returns DATA_LOSS if it is not that message.
absl::Status CheckReplayMessage(const grpc::ByteBuffer& message, size_t bytes,
                                uint64_t seed);

}  // namespace bench
}  // namespace penstock

#endif  // PENSTOCK_BENCH_RPC_REPLAY_MESSAGE_H_
