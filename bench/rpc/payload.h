// Messages that have to be written and read: a sender fills a fresh buffer, a
// receiver reads every byte of it and knows whether the bytes are right.
//
// A message is the words seed, seed + k, seed + 2k, ... in little-endian order,
// the last one cut off where the message ends. Its receiver adds up all words
// and compares with the sum in closed form, so the compiler cannot drop the
// reading and a lost, doubled or altered word shows. The bytes are raw gRPC
// messages (grpc::ByteBuffer), so no protobuf copy is measured.

#ifndef PENSTOCK_BENCH_RPC_PAYLOAD_H_
#define PENSTOCK_BENCH_RPC_PAYLOAD_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "grpcpp/support/byte_buffer.h"

namespace penstock {
namespace bench {

// A message's first word is its seed, so it has at least one.
constexpr size_t kMinPayload = 8;

// The sum modulo 2^64 of a byte string's little-endian words, the last one
// padded with zeros. The string may come in pieces of any length.
class WordSum {
 public:
  void Add(const uint8_t* data, size_t size);
  uint64_t value() const { return sum_; }

 private:
  uint64_t sum_ = 0;
  size_t offset_ = 0;  // bytes seen so far
};

// What WordSum gives for an undamaged message.
uint64_t ExpectedSum(size_t bytes, uint64_t seed);

// A message of one slice, allocated and written here. `bytes` is at least
// kMinPayload.
grpc::ByteBuffer MakePayload(size_t bytes, uint64_t seed);

// Reads every byte; gives the seed, or DATA_LOSS for a damaged message.
absl::StatusOr<uint64_t> CheckPayload(const grpc::ByteBuffer& message);

// Writes a message to memory that the caller has.
void FillPayload(uint8_t* data, size_t bytes, uint64_t seed);

// A request with this bit in its seed is not echoed: the reply has the times
// at which the handler had the message, and had read all of it.
constexpr uint64_t kWantsTimes = uint64_t{1} << 63;

// Of a stream's message with this bit in its seed, only the first word is read,
// as other benchmarks do it: what moving the bytes takes, and nothing else.
constexpr uint64_t kUnread = uint64_t{1} << 62;

// Of std::chrono::steady_clock, which all processes of a machine share.
struct HandoverTimes {
  int64_t got_ns = 0;
  int64_t read_ns = 0;
};

// DATA_LOSS where the reply is something else.
absl::StatusOr<HandoverTimes> ReadTimes(const grpc::ByteBuffer& reply);

// The seed of the reply to a request: a server that sends the request's own
// buffer back does not pass.
inline uint64_t ReplySeed(uint64_t request_seed) { return ~request_seed; }

// Checks a request and makes its reply: of the same size, in a fresh buffer, or
// HandoverTimes. To be called as soon as the request is there.
absl::StatusOr<grpc::ByteBuffer> Answer(const grpc::ByteBuffer& request);

// Checks that `reply` is the answer to a request of these bytes and this seed.
absl::Status CheckReply(const grpc::ByteBuffer& reply, size_t bytes,
                        uint64_t request_seed);

// What a stream's two ends compare at its close: how many messages there were
// and the sum of their seeds.
class StreamTally {
 public:
  // For the sender, of a message it has handed over.
  void AddSeed(uint64_t seed);
  // For the receiver: reads every byte of the message, or see kUnread.
  absl::Status Add(const grpc::ByteBuffer& message);

  uint64_t messages() const { return messages_; }
  // The receiver's reply, and the sender's check of it.
  grpc::ByteBuffer Encode() const;
  absl::Status Check(const grpc::ByteBuffer& reply) const;

 private:
  uint64_t messages_ = 0;
  uint64_t seeds_ = 0;
};

}  // namespace bench
}  // namespace penstock

#endif  // PENSTOCK_BENCH_RPC_PAYLOAD_H_
