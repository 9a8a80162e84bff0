// Decides which ids were pushed often enough to get a row.

#ifndef PENSTOCK_PS_SPARSE_ADMISSION_H_
#define PENSTOCK_PS_SPARSE_ADMISSION_H_

#include <cstddef>
#include <cstdint>

#include "ps/sparse/hash.h"
#include "ps/sparse/memory.h"

namespace penstock::ps::sparse {

// A counter of pushes for a bounded number of ids without rows. The counters
// are exact, and grouped in sets of eight. If an id's set is full, the number
// of sets doubles, up to a limit. At the limit, the counter with the lowest
// count is evicted; among equal counts, the oldest. No id is admitted early. An
// id may be admitted late, or never, if more ids alternate than there are
// counters. This is intended: such ids are noise, and a counting sketch would
// admit them.
//
// Allocates one set with the first id, and more with use. Not thread-safe.
class Admission {
 public:
  // Makes a counter with room for at least `candidates` ids, if the caller
  // permits bytes() to grow so far. A `min_count` of 1 admits all ids at their
  // first push. `hash` and `memory` must outlive this object.
  Admission(uint32_t min_count, size_t candidates, const HashKey* hash,
            Memory* memory);
  ~Admission();
  Admission(const Admission&) = delete;
  Admission& operator=(const Admission&) = delete;

  // Counts one push of `id`. `tag` is the low half of the id's hash. Returns
  // true for the min_count-th push, and then forgets the id. Returns false if
  // memory cannot be allocated. Grows only if bytes() stays within
  // `byte_limit`.
  bool Admit(uint64_t id, uint32_t tag, size_t byte_limit);
  // Takes back the admission of `id`, because the table has no room for its
  // row. The next push of `id` is admitted. Returns false if every id is
  // admitted, so that no pushes are counted.
  bool Return(uint64_t id, uint32_t tag);
  // Returns the result that Admit() would return, without counting a push.
  bool WouldAdmit(uint64_t id, uint32_t tag) const;

  // Returns the maximal bytes of counters for `candidates` ids.
  static size_t BytesFor(size_t candidates);
  // Returns the bytes of the counters. Counts the first set even before it is
  // allocated: without room for one set, no id could be admitted.
  size_t bytes() const { return min_count_ > 1 ? sets_ * kSetBytes : 0; }

 private:
  static constexpr size_t kWays = 8;
  // Limits the number of pieces, and thus the number of sets to 2^29, for 2^32
  // candidates.
  static constexpr size_t kMaxPieces = 30;

  struct Candidate {
    uint64_t id;
    uint32_t count;  // 0: free
    uint32_t since;  // the push number at insertion
  };
  static constexpr size_t kSetBytes = kWays * sizeof(Candidate);

  // Returns the piece that contains a set. Doubling allocates only one new
  // piece: piece 0 has set 0, and each later piece has as many sets as all
  // earlier pieces together.
  static size_t PieceOf(size_t set) {
    return set == 0 ? 0 : 64 - static_cast<size_t>(__builtin_clzll(set));
  }
  static size_t SetsIn(size_t piece) {
    return piece == 0 ? 1 : size_t{1} << (piece - 1);
  }
  Candidate* SetAt(size_t set) const {
    const size_t piece = PieceOf(set);
    return pieces_[piece] + (set - (piece == 0 ? 0 : SetsIn(piece))) * kWays;
  }
  Candidate* SetOf(uint32_t tag) const { return SetAt(tag & (sets_ - 1)); }
  bool AddPiece(size_t piece);
  // Doubles the number of sets. Returns false, and changes nothing, if that
  // exceeds a limit or memory cannot be allocated.
  bool Grow(size_t byte_limit);
  // Moves the counters of `set` that belong to the new set `other` there.
  void Split(size_t set, size_t other);
  // Returns a free counter of an id's set, or null if the set is full.
  Candidate* FindFree(uint32_t tag) const;
  // Returns the counter to evict from a full set.
  Candidate* Rarest(uint32_t tag) const;

  const uint32_t min_count_;
  const HashKey& hash_;
  Memory* const memory_;
  const size_t max_sets_;
  size_t sets_ = 1;
  Candidate* pieces_[kMaxPieces] = {};
  uint32_t counted_ = 0;
};

}  // namespace penstock::ps::sparse

#endif  // PENSTOCK_PS_SPARSE_ADMISSION_H_
