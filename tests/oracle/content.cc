#include "tests/oracle/content.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "grpcpp/support/slice.h"

namespace penstock::oracle {
namespace {

// Returns a word of the content. Neighbouring words are unrelated, so that
// every shift is detected.
uint64_t WordOf(uint64_t seed, uint64_t index) {
  // The increment of splitmix64.
  uint64_t word = (seed + index) * 0x9e3779b97f4a7c15;
  return word ^ (word >> 29);
}

std::string BytesOf(const Message& message) {
  std::string bytes(message.size, '\0');
  if (message.seed == 0) return bytes;
  for (size_t at = 0; at < bytes.size(); at += sizeof(uint64_t)) {
    const uint64_t word = WordOf(message.seed, at);
    std::memcpy(&bytes[at], &word, std::min(sizeof word, bytes.size() - at));
  }
  return bytes;
}

// Computes a checksum over bytes that come in any pieces.
class Summer {
 public:
  void Add(const uint8_t* bytes, size_t size) {
    for (size_t i = 0; i < size; ++i) {
      word_ |= uint64_t{bytes[i]} << (8 * (count_ % 8));
      if (++count_ % 8 == 0) Mix();
    }
  }
  Digest Result() {
    Mix();
    return {count_, sum_};
  }

 private:
  void Mix() {
    // A factor of MurmurHash3's finisher.
    sum_ = (sum_ ^ word_) * 0xff51afd7ed558ccd;
    sum_ ^= sum_ >> 32;
    word_ = 0;
  }

  size_t count_ = 0;
  uint64_t word_ = 0;
  uint64_t sum_ = 1;
};

}  // namespace

grpc::ByteBuffer ToBuffer(const Message& message) {
  const std::string bytes = BytesOf(message);
  std::vector<grpc::Slice> slices;
  const size_t count = std::max(message.slices, 1);
  for (size_t i = 0; i < count; ++i) {
    const size_t from = bytes.size() * i / count;
    const size_t to = bytes.size() * (i + 1) / count;
    slices.emplace_back(bytes.data() + from, to - from);
  }
  return grpc::ByteBuffer(slices.data(), slices.size());
}

Digest DigestOf(const grpc::ByteBuffer& buffer) {
  Summer summer;
  std::vector<grpc::Slice> slices;
  if (buffer.Valid() && buffer.Dump(&slices).ok()) {
    for (const grpc::Slice& slice : slices) {
      summer.Add(slice.begin(), slice.size());
    }
  }
  return summer.Result();
}

Digest DigestOf(const Message& message) {
  const std::string bytes = BytesOf(message);
  Summer summer;
  summer.Add(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  return summer.Result();
}

}  // namespace penstock::oracle
