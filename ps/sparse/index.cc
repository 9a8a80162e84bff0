#include "ps/sparse/index.h"

#include <algorithm>

namespace penstock::ps::sparse {

RowIndex::~RowIndex() {
  if (buckets_ != nullptr) memory_->Free(buckets_, bytes());
}

void RowIndex::Insert(uint32_t tag, uint32_t row) {
  size_t i = tag & mask_;
  while (buckets_[i].full()) i = (i + 1) & mask_;
  Bucket& bucket = buckets_[i];
  const size_t end = bucket.size();
  bucket.tags[end] = tag;
  bucket.rows[end] = row;
  ++size_;
}

RowIndex::Place RowIndex::PlaceOf(uint32_t tag, uint32_t row) const {
  for (size_t i = tag & mask_;; i = (i + 1) & mask_) {
    const uint32_t places = PlacesOf(row, buckets_[i].rows);
    if (places != 0) return {i, static_cast<size_t>(__builtin_ctz(places))};
  }
}

void RowIndex::Replace(uint32_t tag, uint32_t row, uint32_t by) {
  const Place place = PlaceOf(tag, row);
  buckets_[place.bucket].rows[place.i] = by;
}

// Removes an entry, and moves the bucket's last entry into the free place.
void RowIndex::TakeOut(Place place) {
  Bucket& bucket = buckets_[place.bucket];
  const size_t last = bucket.size() - 1;
  bucket.tags[place.i] = bucket.tags[last];
  bucket.rows[place.i] = bucket.rows[last];
  bucket.rows[last] = kNoRow;
}

// Finds an entry in a bucket after `bucket` that belongs to `bucket` or an
// earlier one. Returns false if there is none.
bool RowIndex::FindBehind(size_t bucket, Place* place) const {
  for (size_t i = (bucket + 1) & mask_;; i = (i + 1) & mask_) {
    const Bucket& other = buckets_[i];
    for (size_t j = 0; j < other.size(); ++j) {
      if (FromHome(other.tags[j], i) >= ((i - bucket) & mask_)) {
        *place = {i, j};
        return true;
      }
    }
    if (!other.full()) return false;
  }
}

// Erases an entry. Moves an entry that belongs to an earlier bucket into the
// gap, then fills the new gap, and so on. A look-up stops at a bucket with a
// free place, so no gap may remain. (D. Knuth, TAOCP 6.4, algorithm R, by
// buckets.)
void RowIndex::Erase(uint32_t tag, uint32_t row) {
  Place gap = PlaceOf(tag, row);
  --size_;
  while (true) {
    const size_t bucket = gap.bucket;
    const bool was_full = buckets_[bucket].full();
    TakeOut(gap);
    if (!was_full || !FindBehind(bucket, &gap)) return;
    const Bucket& from = buckets_[gap.bucket];
    buckets_[bucket].tags[kPlaces - 1] = from.tags[gap.i];
    buckets_[bucket].rows[kPlaces - 1] = from.rows[gap.i];
  }
}

bool RowIndex::Grow() {
  const size_t bytes = bytes_to_grow();
  // Requests huge pages, which waste nothing here: the whole memory is written
  // immediately, and look-ups hit random addresses.
  void* const memory = memory_->Allocate(bytes, /*huge=*/true);
  if (memory == nullptr) return false;
  Bucket* const old = buckets_;
  const size_t old_buckets = buckets();
  buckets_ = static_cast<Bucket*>(memory);
  mask_ = bytes / sizeof(Bucket) - 1;
  size_ = 0;
  std::memset(memory, 0xff, bytes);
  static_assert(kNoRow == 0xffffffff, "all are free");
  for (size_t i = 0; i < old_buckets; ++i) {
    const size_t size = old[i].size();
    for (size_t j = 0; j < size; ++j) Insert(old[i].tags[j], old[i].rows[j]);
  }
  if (old != nullptr) memory_->Free(old, old_buckets * sizeof(Bucket));
  return true;
}

size_t RowIndex::LongestRun() const {
  size_t longest = 0;
  size_t run = 0;
  // Visits all buckets twice, because a run may wrap around the end.
  for (size_t i = 0; i < 2 * buckets(); ++i) {
    const Bucket& bucket = buckets_[i & mask_];
    longest = std::max(longest, run + bucket.size());
    run = bucket.full() ? run + kPlaces : 0;
  }
  return longest;
}

}  // namespace penstock::ps::sparse
