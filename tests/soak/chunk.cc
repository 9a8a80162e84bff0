#include "tests/soak/chunk.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace penstock::soak {
namespace {

// The multiplier of Knuth's generator, for the contents of chunks and for their
// sums.
constexpr uint64_t kFactor = 6364136223846793005;

}  // namespace

// Returns the sum of the bytes. Processes eight bytes at a time: single bytes
// would dominate the test's time.
uint64_t SumOf(const std::string& bytes) {
  uint64_t sum = bytes.size();
  for (size_t at = 0; at < bytes.size(); at += sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, &bytes[at], std::min(sizeof word, bytes.size() - at));
    sum = (sum ^ word) * kFactor;
    sum ^= sum >> 32;
  }
  return sum;
}

void Fill(size_t size, uint64_t seed, Chunk* chunk) {
  chunk->set_seed(seed);
  std::string body(size, '\0');
  for (size_t at = 0; at < size; at += sizeof seed) {
    seed = seed * kFactor + 1;
    std::memcpy(&body[at], &seed, std::min(sizeof seed, size - at));
  }
  chunk->set_sum(SumOf(body));
  chunk->set_body(std::move(body));
}

bool IsIntact(const Chunk& chunk) { return chunk.sum() == SumOf(chunk.body()); }

}  // namespace penstock::soak
