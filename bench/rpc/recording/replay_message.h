// The messages of a replayed call. Both sides know the recording, and so the
// contents of each message.

#ifndef PENSTOCK_BENCH_RPC_RECORDING_REPLAY_MESSAGE_H_
#define PENSTOCK_BENCH_RPC_RECORDING_REPLAY_MESSAGE_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "grpcpp/support/byte_buffer.h"

namespace penstock {
namespace bench {

// Returns the seed for the contents of message `index` of call `call`.
inline uint64_t ReplaySeed(size_t call, size_t index) {
  return call * 0x9e3779b97f4a7c15u + index;
}

// Returns a new message of `bytes` bytes. The message may be empty, unlike that
// of MakePayload().
grpc::ByteBuffer MakeReplayMessage(size_t bytes, uint64_t seed);

// Reads every byte of a message. Returns DATA_LOSS if the message differs from
// MakeReplayMessage(bytes, seed).
absl::Status CheckReplayMessage(const grpc::ByteBuffer& message, size_t bytes,
                                uint64_t seed);

}  // namespace bench
}  // namespace penstock

#endif  // PENSTOCK_BENCH_RPC_RECORDING_REPLAY_MESSAGE_H_
