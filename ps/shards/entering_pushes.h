// The pushes that are checked, but not in the log yet.

#ifndef PENSTOCK_PS_SHARDS_ENTERING_PUSHES_H_
#define PENSTOCK_PS_SHARDS_ENTERING_PUSHES_H_

#include <cstddef>
#include <cstdint>
#include <map>

namespace penstock::ps {

// Counts the bytes of pushes that are on their way into the log. A push
// reserves its room before it is checked, because the check runs without the
// log's lock. Each push sees the room that earlier pushes have left, so two
// concurrent pushes never use the same room. Not thread-safe.
class EnteringPushes {
 public:
  // Adds a push, and returns its number.
  uint64_t Enter(size_t bytes) {
    bytes_[++last_] = bytes;
    return last_;
  }
  // Returns the bytes of the pushes with lower numbers that have not left.
  size_t BytesBefore(uint64_t number) const {
    size_t before = 0;
    for (const auto& [each, bytes] : bytes_) {
      if (each < number) before += bytes;
    }
    return before;
  }
  void Leave(uint64_t number) { bytes_.erase(number); }

 private:
  uint64_t last_ = 0;
  std::map<uint64_t, size_t> bytes_;  // by number
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SHARDS_ENTERING_PUSHES_H_
