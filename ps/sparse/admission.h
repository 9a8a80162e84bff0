// Which ids have been pushed often enough to have a row.

#ifndef PENSTOCK_PS_SPARSE_ADMISSION_H_
#define PENSTOCK_PS_SPARSE_ADMISSION_H_

#include <cstddef>
#include <cstdint>

#include "ps/sparse/memory.h"

namespace penstock::ps::sparse {

// Counts the pushes of ids that have no row: exact counters, of a bounded
// number of ids. An id's counter is one of the eight of its set; if all are
// taken, the one with the lowest count makes room, of those the one that came
// first. So no id is ever admitted early. It may be admitted late, or, if more
// ids than there is room for come by turns, never. That is meant: such ids are
// noise, and a counting sketch would err the other way and give them rows.
//
// Memory comes with the first id. Not thread-safe.
class Admission {
 public:
  // Has room for at least `candidates` ids. `min_count` 1 admits all at once.
  Admission(uint32_t min_count, size_t candidates, Memory* memory);
  ~Admission();
  Admission(const Admission&) = delete;
  Admission& operator=(const Admission&) = delete;

  // Counts one push of `id`, whose hash is `tag`. Returns whether it is the
  // min_count-th, and then forgets the id. False, too, without memory.
  bool Admit(uint64_t id, uint32_t tag);
  // Admit() has just admitted `id`, but there is no row for it: its next push
  // will admit it again. Returns false if pushes are not counted.
  bool Return(uint64_t id, uint32_t tag);
  // Returns what Admit() would, and counts nothing.
  bool WouldAdmit(uint64_t id, uint32_t tag) const;

  // What it takes once there is a candidate.
  static size_t BytesFor(size_t candidates);
  size_t bytes() const { return candidates_ == nullptr ? 0 : bytes_; }

 private:
  static constexpr size_t kWays = 8;

  struct Candidate {
    uint64_t id;
    uint32_t count;  // 0: free
    uint32_t since;  // the number of pushes counted when it came
  };

  Candidate* SetOf(uint32_t tag) const {
    return candidates_ + (tag & mask_) * kWays;
  }
  bool Prepare();

  const uint32_t min_count_;
  Memory* const memory_;
  const size_t bytes_;
  const size_t mask_;  // of sets
  Candidate* candidates_ = nullptr;
  uint32_t counted_ = 0;
};

}  // namespace penstock::ps::sparse

#endif  // PENSTOCK_PS_SPARSE_ADMISSION_H_
