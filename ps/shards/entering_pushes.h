// The pushes between the check of their room and the log.

#ifndef PENSTOCK_PS_SHARDS_ENTERING_PUSHES_H_
#define PENSTOCK_PS_SHARDS_ENTERING_PUSHES_H_

#include <cstddef>
#include <cstdint>
#include <map>

namespace penstock::ps {

// Counts the gradients of pushes that are on their way into the log. A push
// takes its room before the check, since the check runs without the lock of the
// log. Each push finds the room that earlier ones have left, so that two pushes
// at the same time never take the same room. Not thread-safe.
class EnteringPushes {
 public:
  // Adds a push. Returns its number.
  uint64_t Enter(size_t bytes) {
    bytes_[++last_] = bytes;
    return last_;
  }
  // Returns the bytes of the pushes that entered earlier and have not left.
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
