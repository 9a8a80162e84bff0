#include "ps/compression/random_k.h"

#include <array>
#include <vector>

namespace penstock::ps::compression {
namespace {

// A sequence of random words: the outputs of Philox for the counters 0, 1, 2,
// ... of a step.
class Words {
 public:
  Words(PhiloxKey key, uint64_t step) : key_(key), step_(step) {}

  uint32_t Next() {
    if (used_ == four_.size()) {
      four_ = Philox(
          {static_cast<uint32_t>(block_), static_cast<uint32_t>(block_ >> 32),
           static_cast<uint32_t>(step_), static_cast<uint32_t>(step_ >> 32)},
          key_);
      ++block_;
      used_ = 0;
    }
    return four_[used_++];
  }

 private:
  const PhiloxKey key_;
  const uint64_t step_;
  uint64_t block_ = 0;
  std::array<uint32_t, 4> four_ = {};
  size_t used_ = 4;
};

// Returns a uniformly distributed number below `end` (D. Lemire, "Fast Random
// Integer Generation in an Interval", ACM TOMACS 2019).
uint32_t NextBelow(uint32_t end, Words* words) {
  const uint32_t unfair = -end % end;  // 2^32 mod end
  while (true) {
    const uint64_t product = uint64_t{words->Next()} * end;
    if (static_cast<uint32_t>(product) >= unfair) {
      return static_cast<uint32_t>(product >> 32);
    }
  }
}

// Returns a bitmap of `count` bits, in which `marks` random bits are set.
std::vector<uint64_t> Draw(size_t count, size_t marks, Words words) {
  std::vector<uint64_t> bits((count + 63) / 64);
  while (marks > 0) {
    const uint32_t drawn = NextBelow(static_cast<uint32_t>(count), &words);
    uint64_t& word = bits[drawn / 64];
    const uint64_t bit = uint64_t{1} << drawn % 64;
    if ((word & bit) == 0) --marks;
    word |= bit;
  }
  return bits;
}

}  // namespace

void SelectRandomK(size_t count, PhiloxKey key, uint64_t step,
                   absl::Span<int32_t> indices) {
  const bool leave_out = indices.size() > count / 2;
  std::vector<uint64_t> bits =
      Draw(count, leave_out ? count - indices.size() : indices.size(),
           Words(key, step));
  size_t written = 0;
  for (size_t i = 0; i < bits.size(); ++i) {
    uint64_t left = leave_out ? ~bits[i] : bits[i];
    // Stops at the end of `indices`. Otherwise, with leave_out, unmarked bits
    // beyond `count` would be chosen.
    for (; left != 0 && written < indices.size(); left &= left - 1) {
      indices[written++] = static_cast<int32_t>(i * 64 + __builtin_ctzll(left));
    }
  }
}

}  // namespace penstock::ps::compression
