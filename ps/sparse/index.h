// Finds a row by the hash of its id.

#ifndef PENSTOCK_PS_SPARSE_INDEX_H_
#define PENSTOCK_PS_SPARSE_INDEX_H_

#include <cstddef>
#include <cstdint>

#include "ps/sparse/memory.h"
#include "ps/sparse/prefetch.h"

namespace penstock::ps::sparse {

// No row.
constexpr uint32_t kNoRow = 0xffffffff;

// Maps 32 bits of a hash, the tag, to the number of a row; rows may share a
// tag. Open addressing with linear probing: an entry's place is its tag, modulo
// the size. So 8 bytes of one cache line tell all that can be known without the
// row, which has the id and is read in any case; growing reads no row; and
// erasing leaves no tombstone, since later entries move up.
//
// Why not absl::flat_hash_map: it has no way to survive a failed allocation,
// takes two cache lines for a look-up, and 17 bytes for an entry of an id and a
// number.
//
// Not thread-safe.
class RowIndex {
 public:
  explicit RowIndex(Memory* memory) : memory_(memory) {}
  ~RowIndex();
  RowIndex(const RowIndex&) = delete;
  RowIndex& operator=(const RowIndex&) = delete;

  // Returns the row with `tag` of which `is_it(row)` holds, or kNoRow.
  template <typename IsIt>
  uint32_t Find(uint32_t tag, const IsIt& is_it) const {
    if (size_ == 0) return kNoRow;
    for (size_t i = tag & mask_;; i = (i + 1) & mask_) {
      const Entry& entry = entries_[i];
      if (entry.row == kNoRow) return kNoRow;
      if (entry.tag == tag && is_it(entry.row)) return entry.row;
    }
  }

  void Prefetch(uint32_t tag) const { FetchLine(entries_ + (tag & mask_)); }

  // Adds a row. Asks for room: size() < limit().
  void Insert(uint32_t tag, uint32_t row);
  // Both ask for an entry of that tag and row.
  void Erase(uint32_t tag, uint32_t row);
  void Replace(uint32_t tag, uint32_t row, uint32_t by);

  // Doubles. Returns false, and changes nothing, if there is no memory for it.
  bool Grow();

  size_t size() const { return size_; }
  // So many rows it can have before it must grow: three quarters of its places.
  // Runs are a few entries long then.
  size_t limit() const { return places() / 4 * 3; }
  size_t bytes() const { return places() * sizeof(Entry); }
  // What Grow() asks for.
  size_t bytes_to_grow() const {
    return (places() == 0 ? kFirstPlaces : places() * 2) * sizeof(Entry);
  }

  // Returns the longest run of entries, which bounds each look-up. Walks all of
  // them.
  size_t LongestRun() const;

 private:
  static constexpr size_t kFirstPlaces = 64;

  struct Entry {
    uint32_t tag;
    uint32_t row;  // kNoRow: free
  };

  size_t places() const { return entries_ == nullptr ? 0 : mask_ + 1; }
  size_t PlaceOf(uint32_t tag, uint32_t row) const;

  Memory* const memory_;
  Entry* entries_ = nullptr;
  size_t mask_ = 0;
  size_t size_ = 0;
};

}  // namespace penstock::ps::sparse

#endif  // PENSTOCK_PS_SPARSE_INDEX_H_
