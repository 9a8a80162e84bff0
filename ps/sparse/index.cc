#include "ps/sparse/index.h"

#include <algorithm>

namespace penstock::ps::sparse {

RowIndex::~RowIndex() {
  if (entries_ != nullptr) memory_->Free(entries_, bytes());
}

void RowIndex::Insert(uint32_t tag, uint32_t row) {
  size_t i = tag & mask_;
  while (entries_[i].row != kNoRow) i = (i + 1) & mask_;
  entries_[i] = {tag, row};
  ++size_;
}

size_t RowIndex::PlaceOf(uint32_t tag, uint32_t row) const {
  size_t i = tag & mask_;
  while (entries_[i].row != row) i = (i + 1) & mask_;
  return i;
}

void RowIndex::Replace(uint32_t tag, uint32_t row, uint32_t by) {
  entries_[PlaceOf(tag, row)].row = by;
}

// Closes the gap: of the run behind it, each entry that may lie as far ahead
// moves into it and leaves the next one (D. Knuth, TAOCP 6.4, algorithm R).
void RowIndex::Erase(uint32_t tag, uint32_t row) {
  size_t gap = PlaceOf(tag, row);
  for (size_t i = (gap + 1) & mask_; entries_[i].row != kNoRow;
       i = (i + 1) & mask_) {
    const size_t from_home = (i - entries_[i].tag) & mask_;
    if (from_home >= ((i - gap) & mask_)) {
      entries_[gap] = entries_[i];
      gap = i;
    }
  }
  entries_[gap].row = kNoRow;
  --size_;
}

bool RowIndex::Grow() {
  const size_t places = bytes_to_grow() / sizeof(Entry);
  // All of it is written at once, so huge pages waste nothing, and each look-up
  // is somewhere else.
  void* const memory = memory_->Allocate(places * sizeof(Entry), /*huge=*/true);
  if (memory == nullptr) return false;
  Entry* const old = entries_;
  const size_t old_places = this->places();
  entries_ = static_cast<Entry*>(memory);
  mask_ = places - 1;
  size_ = 0;
  std::fill_n(entries_, places, Entry{0, kNoRow});
  for (size_t i = 0; i < old_places; ++i) {
    if (old[i].row != kNoRow) Insert(old[i].tag, old[i].row);
  }
  if (old != nullptr) memory_->Free(old, old_places * sizeof(Entry));
  return true;
}

size_t RowIndex::LongestRun() const {
  size_t longest = 0;
  size_t run = 0;
  // Twice around, for the run that goes over the end.
  for (size_t i = 0; i < 2 * places(); ++i) {
    run = entries_[i & mask_].row == kNoRow ? 0 : run + 1;
    longest = std::max(longest, run);
  }
  return longest;
}

}  // namespace penstock::ps::sparse
