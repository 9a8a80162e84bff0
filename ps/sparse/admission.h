// Decides which ids were pushed often enough to get a row.

#ifndef PENSTOCK_PS_SPARSE_ADMISSION_H_
#define PENSTOCK_PS_SPARSE_ADMISSION_H_

#include <cstddef>
#include <cstdint>

#include "ps/sparse/memory.h"

namespace penstock::ps::sparse {

// Exact push counters for a bounded number of ids without rows. The counters
// are grouped in sets of eight. If an id's set is full, the counter with the
// lowest count is evicted; among equal counts, the oldest. No id is admitted
// early. An id may be admitted late, or never if more ids alternate than there
// is room for. This is intended: such ids are noise, and a counting sketch
// would instead admit them.
//
// Allocates memory with the first id. Not thread-safe.
class Admission {
 public:
  // Makes room for at least `candidates` ids. A `min_count` of 1 admits all ids
  // at their first push.
  Admission(uint32_t min_count, size_t candidates, Memory* memory);
  ~Admission();
  Admission(const Admission&) = delete;
  Admission& operator=(const Admission&) = delete;

  // Counts one push of `id`, whose hash is `tag`. Returns true for the
  // min_count-th push, and then forgets the id. Returns false if memory cannot
  // be allocated.
  bool Admit(uint64_t id, uint32_t tag);
  // Undoes Admit(), which admitted `id` although there is no room for its row.
  // The id's next push admits it again. Returns false if pushes are not
  // counted.
  bool Return(uint64_t id, uint32_t tag);
  // Returns the result of Admit() without counting.
  bool WouldAdmit(uint64_t id, uint32_t tag) const;

  // Returns the bytes that Admission allocates with the first candidate.
  static size_t BytesFor(size_t candidates);
  size_t bytes() const { return candidates_ == nullptr ? 0 : bytes_; }

 private:
  static constexpr size_t kWays = 8;

  struct Candidate {
    uint64_t id;
    uint32_t count;  // 0: free
    uint32_t since;  // the push count at insertion
  };

  Candidate* SetOf(uint32_t tag) const {
    return candidates_ + (tag & mask_) * kWays;
  }
  bool Prepare();

  const uint32_t min_count_;
  Memory* const memory_;
  const size_t bytes_;
  const size_t mask_;  // number of sets - 1
  Candidate* candidates_ = nullptr;
  uint32_t counted_ = 0;
};

}  // namespace penstock::ps::sparse

#endif  // PENSTOCK_PS_SPARSE_ADMISSION_H_
