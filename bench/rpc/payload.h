// Messages that have to be written and read. A sender fills a fresh buffer. A
// receiver reads every byte of it, and knows whether the bytes are right.
//
// A message is the words seed, seed + k, seed + 2k, ... in little-endian order;
// the last one is cut off where the message ends. Its receiver adds up all
// words and compares the sum with its closed form. So the compiler cannot drop
// the reading, and a lost, doubled or altered word is noticed. The bytes are
// raw gRPC messages (grpc::ByteBuffer), so no copy by protobuf is measured,
// unless
// --message says otherwise.

#ifndef PENSTOCK_BENCH_RPC_PAYLOAD_H_
#define PENSTOCK_BENCH_RPC_PAYLOAD_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "grpcpp/support/byte_buffer.h"

namespace penstock {
namespace bench {

// The least size: a message's first word is its seed.
constexpr size_t kMinPayload = 8;

// Sums the little-endian words of a byte string, modulo 2^64, the last one
// padded with zeros. The string may come in pieces of any length.
class WordSum {
 public:
  void Add(const uint8_t* data, size_t size);
  uint64_t value() const { return sum_; }

 private:
  uint64_t sum_ = 0;
  size_t offset_ = 0;  // bytes seen so far
};

// Returns what WordSum gives for an undamaged message.
uint64_t ExpectedSum(size_t bytes, uint64_t seed);

// Makes a message (see message.h): allocates it and writes it. Needs `bytes` >=
// kMinPayload.
grpc::ByteBuffer MakePayload(size_t bytes, uint64_t seed);

// Reads every byte. Returns the seed, and sets `*size`, unless that is null, to
// the number of bytes; or returns DATA_LOSS for a damaged message.
absl::StatusOr<uint64_t> CheckPayload(const grpc::ByteBuffer& message,
                                      size_t* size = nullptr);

// Writes `bytes` bytes of a message, from its byte `offset` on, to the caller's
// memory.
void FillPayload(uint8_t* data, size_t bytes, uint64_t seed, size_t offset = 0);

// In the seed of a request, this bit asks for times instead of an echo: the
// reply says when the handler had the message, and when it had read all of it.
constexpr uint64_t kWantsTimes = uint64_t{1} << 63;

// In the seed of a request, this bit asks for a reply of kMinPayload bytes.
constexpr uint64_t kWantsAck = uint64_t{1} << 61;

// In the seed of a stream's message, this bit makes the reader read only the
// first word, as other benchmarks do. Then only moving the bytes is measured.
constexpr uint64_t kUnread = uint64_t{1} << 62;

// Times by std::chrono::steady_clock, which all processes of a machine share.
struct HandoverTimes {
  int64_t got_ns = 0;
  int64_t read_ns = 0;
};

// Returns DATA_LOSS if the reply is something else.
absl::StatusOr<HandoverTimes> ReadTimes(const grpc::ByteBuffer& reply);

// Returns the seed of the reply to a request. As it differs, a server that
// sends the request's own buffer back is noticed.
inline uint64_t ReplySeed(uint64_t request_seed) { return ~request_seed; }

// Checks a request and makes its reply: one of the same size, in a fresh
// buffer, or what the request's seed asks for. Call it as soon as the request
// is there.
absl::StatusOr<grpc::ByteBuffer> Answer(const grpc::ByteBuffer& request);

// Checks that `reply` is the answer to a request of these bytes and this seed.
absl::Status CheckReply(const grpc::ByteBuffer& reply, size_t bytes,
                        uint64_t request_seed);

// What the two ends of a stream compare at its close: the number of messages,
// and the sum of their seeds.
class StreamTally {
 public:
  // For the sender: adds a message that it has handed over.
  void AddSeed(uint64_t seed);
  // For the receiver: reads every byte of the message (but see kUnread) and
  // adds it.
  absl::Status Add(const grpc::ByteBuffer& message);

  uint64_t messages() const { return messages_; }
  // Make the receiver's reply, and check it at the sender.
  grpc::ByteBuffer Encode() const;
  absl::Status Check(const grpc::ByteBuffer& reply) const;

 private:
  uint64_t messages_ = 0;
  uint64_t seeds_ = 0;
};

}  // namespace bench
}  // namespace penstock

#endif  // PENSTOCK_BENCH_RPC_PAYLOAD_H_
