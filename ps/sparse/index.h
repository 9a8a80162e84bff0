// Finds rows by the hashes of their ids.

#ifndef PENSTOCK_PS_SPARSE_INDEX_H_
#define PENSTOCK_PS_SPARSE_INDEX_H_

#include <emmintrin.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "ps/sparse/memory.h"
#include "ps/sparse/prefetch.h"

namespace penstock::ps::sparse {

// The row number that stands for "no row".
constexpr uint32_t kNoRow = 0xffffffff;

// A map from 32 bits of a hash, the tag, to a row number. Rows may share a tag.
//
// Uses open addressing with buckets of eight entries. Each bucket is one cache
// line, and its eight tags are compared together, without branches. (A loop
// over entries would end unpredictably, and its branch misses would cost half
// as much as a look-up.) An entry is in the home bucket of its tag, or in a
// later bucket if all buckets between are full. Nearly always, a look-up reads
// one cache line of the index. The row itself, which is read anyway, has the
// full id. Growing reads no row. Erasing leaves no tombstone, because later
// entries move up.
//
// absl::flat_hash_map is no alternative: it does not survive a failed
// allocation, and needs two cache lines per look-up and 17 bytes per entry.
//
// Not thread-safe.
class RowIndex {
 public:
  explicit RowIndex(Memory* memory) : memory_(memory) {}
  ~RowIndex();
  RowIndex(const RowIndex&) = delete;
  RowIndex& operator=(const RowIndex&) = delete;

  // Returns the row with the tag `tag` for which `is_it(row)` is true, or
  // kNoRow.
  template <typename IsIt>
  uint32_t Find(uint32_t tag, const IsIt& is_it) const {
    if (size_ == 0) return kNoRow;
    for (size_t home = tag & mask_;; home = (home + 1) & mask_) {
      const Bucket& bucket = buckets_[home];
      for (uint32_t equal = PlacesOf(tag, bucket.tags); equal != 0;
           equal &= equal - 1) {
        const uint32_t row = bucket.rows[__builtin_ctz(equal)];
        if (row != kNoRow && is_it(row)) return row;
      }
      if (!bucket.full()) return kNoRow;
    }
  }

  void Prefetch(uint32_t tag) const { FetchLine(buckets_ + (tag & mask_)); }

  // Adds a row. Call only if size() < limit().
  void Insert(uint32_t tag, uint32_t row);
  // Erase an entry, and change its row. Both require an entry of this tag and
  // row.
  void Erase(uint32_t tag, uint32_t row);
  void Replace(uint32_t tag, uint32_t row, uint32_t by);

  // Doubles the index. Returns false, and changes nothing, if memory cannot be
  // allocated.
  bool Grow();

  size_t size() const { return size_; }
  // Returns how many rows fit before the index must grow: three quarters of its
  // places. At this load, one entry in 16 is not in its home bucket; after
  // growing, one in 500.
  size_t limit() const { return buckets() * kPlaces / 4 * 3; }
  size_t bytes() const { return buckets() * sizeof(Bucket); }
  // Returns the bytes that Grow() allocates.
  size_t bytes_to_grow() const {
    return (buckets() == 0 ? kFirstBuckets : buckets() * 2) * sizeof(Bucket);
  }

  // Returns the number of entries in the longest run of full buckets. The run
  // bounds each look-up. Visits all buckets.
  size_t LongestRun() const;

 private:
  static constexpr size_t kPlaces = 8;
  static constexpr size_t kFirstBuckets = 8;

  // A bucket of eight places. Entries come before free places.
  struct alignas(64) Bucket {
    uint32_t tags[kPlaces];
    uint32_t rows[kPlaces];  // kNoRow: free

    bool full() const { return rows[kPlaces - 1] != kNoRow; }
    size_t size() const {
      return full() ? kPlaces : __builtin_ctz(PlacesOf(kNoRow, rows));
    }
  };
  struct Place {
    size_t bucket;
    size_t i;
  };

  // Returns a bit mask of eight bits. A bit is set if the element equals
  // `value`.
  static uint32_t PlacesOf(uint32_t value, const uint32_t* eight) {
    const __m128i values = _mm_set1_epi32(static_cast<int>(value));
    const auto* from = reinterpret_cast<const __m128i*>(eight);
    const __m128i low = _mm_cmpeq_epi32(_mm_load_si128(from), values);
    const __m128i high = _mm_cmpeq_epi32(_mm_load_si128(from + 1), values);
    const __m128i words = _mm_packs_epi32(low, high);
    return _mm_movemask_epi8(_mm_packs_epi16(words, words)) & 0xff;
  }

  size_t buckets() const { return buckets_ == nullptr ? 0 : mask_ + 1; }
  // Returns the distance from the home of `tag` to `bucket`, in buckets.
  size_t FromHome(uint32_t tag, size_t bucket) const {
    return (bucket - tag) & mask_;
  }
  Place PlaceOf(uint32_t tag, uint32_t row) const;
  void TakeOut(Place place);
  bool FindBehind(size_t bucket, Place* place) const;

  Memory* const memory_;
  Bucket* buckets_ = nullptr;
  size_t mask_ = 0;
  size_t size_ = 0;
};

}  // namespace penstock::ps::sparse

#endif  // PENSTOCK_PS_SPARSE_INDEX_H_
