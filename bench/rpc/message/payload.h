// Messages that must be written and read. A sender fills a new buffer. A
// receiver reads every byte, and detects wrong bytes.
//
// A message consists of the words seed, seed + k, seed + 2k, ... in
// little-endian order; the last word is truncated at the message's end. The
// receiver compares the sum of all words with its closed form. Thus the
// compiler cannot remove the reading, and a lost, repeated or changed word is
// detected. By default, the bytes are raw gRPC messages (grpc::ByteBuffer), so
// the measurement includes no copy by protobuf.

#ifndef PENSTOCK_BENCH_RPC_MESSAGE_PAYLOAD_H_
#define PENSTOCK_BENCH_RPC_MESSAGE_PAYLOAD_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "grpcpp/support/byte_buffer.h"

namespace penstock {
namespace bench {

// The minimal size of a message in bytes: the first word is the seed.
constexpr size_t kMinPayload = 8;

// The sum of the little-endian words of a byte string, modulo 2^64. The last
// word is padded with zeros. The string may come in pieces of any length.
class WordSum {
 public:
  void Add(const uint8_t* data, size_t size);
  uint64_t value() const { return sum_; }

 private:
  uint64_t sum_ = 0;
  size_t offset_ = 0;  // bytes seen so far
};

// Returns the WordSum of an undamaged message.
uint64_t ExpectedSum(size_t bytes, uint64_t seed);

// Allocates and writes a message (message.h). `bytes` must be at least
// kMinPayload.
grpc::ByteBuffer MakePayload(size_t bytes, uint64_t seed);

// Reads every byte of a message, and returns its seed. Sets `*size`, unless
// that is null, to the number of bytes. Returns DATA_LOSS for a damaged
// message.
absl::StatusOr<uint64_t> CheckPayload(const grpc::ByteBuffer& message,
                                      size_t* size = nullptr);

// Writes `bytes` bytes of a message to `data`, starting at byte `offset` of the
// message.
void FillPayload(uint8_t* data, size_t bytes, uint64_t seed, size_t offset = 0);

// A bit in a request's seed that requests times instead of an echo: the reply
// has the times at which the handler had the message, and had read it.
constexpr uint64_t kWantsTimes = uint64_t{1} << 63;

// A bit in a request's seed that requests a reply of kMinPayload bytes.
constexpr uint64_t kWantsAck = uint64_t{1} << 61;

// A bit in the seed of a stream's message that makes the reader read only the
// first word, like other benchmarks. Then only moving the bytes is measured.
constexpr uint64_t kUnread = uint64_t{1} << 62;

// Times of std::chrono::steady_clock, which all processes of a machine share.
struct HandoverTimes {
  int64_t got_ns = 0;
  int64_t read_ns = 0;
};

// Returns the times that a reply has. Returns DATA_LOSS for a reply without
// times.
absl::StatusOr<HandoverTimes> ReadTimes(const grpc::ByteBuffer& reply);

// Returns the seed of the reply to a request. The two seeds differ, to detect a
// server that returns the request's own buffer.
inline uint64_t ReplySeed(uint64_t request_seed) { return ~request_seed; }

// Checks a request and returns the reply: a new message of the same size, or
// the kind that the request's seed asks for. Call it as soon as the request is
// available.
absl::StatusOr<grpc::ByteBuffer> Answer(const grpc::ByteBuffer& request);

// Returns OK if `reply` is the answer to a request of this size and seed.
absl::Status CheckReply(const grpc::ByteBuffer& reply, size_t bytes,
                        uint64_t request_seed);

// The state that both ends of a stream compare at its end: the number of
// messages, and the sum of their seeds.
class StreamTally {
 public:
  // Adds a sent message by its seed. For the sender.
  void AddSeed(uint64_t seed);
  // Reads every byte of a received message (except with kUnread), and adds the
  // message. For the receiver.
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

#endif  // PENSTOCK_BENCH_RPC_MESSAGE_PAYLOAD_H_
