#include "ps/sparse/row_store.h"

#include <algorithm>
#include <new>

namespace penstock::ps::sparse {
namespace {

constexpr size_t kSlabBytes = size_t{2} << 20;
constexpr size_t kPage = 4096;
// The number of slabs in a shard with small pages. With four, the unused part
// of the shard's last huge page is at most a fourth of its memory.
constexpr size_t kSmallSlabs = 4;

size_t RoundUp(size_t bytes, size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

}  // namespace

size_t RowStore::StrideOf(size_t elements) {
  return RoundUp(sizeof(Row) + elements * sizeof(float), 16);
}

RowStore::RowStore(size_t elements, Memory* memory)
    : memory_(memory),
      stride_(StrideOf(elements)),
      rows_per_slab_(std::max<size_t>(kSlabBytes / stride_, 16)),
      slab_bytes_(std::max(kSlabBytes, rows_per_slab_ * stride_)),
      rows_per_commit_(std::max<size_t>(kPage / stride_, 1)) {
  static_assert(kSlabBytes / sizeof(Row) <= kOffsetMask + 1, "numbers fit");
}

RowStore::~RowStore() {
  for (const Slab& slab : slabs_) {
    if (slab.base != nullptr) memory_->Free(slab.base, slab_bytes_);
  }
}

size_t RowStore::BytesOf(const Slab& slab) const {
  return slab.whole ? slab_bytes_ : slab.committed * stride_;
}

void RowStore::Open(uint32_t index) {
  if (slabs_[index].open || index == draining_) return;
  slabs_[index].open = true;
  open_.push_back(index);
}

void RowStore::Close(uint32_t index) {
  if (!slabs_[index].open) return;
  slabs_[index].open = false;
  open_.erase(std::find(open_.begin(), open_.end(), index));
}

uint32_t RowStore::NewSlab(size_t limit) {
  const bool whole =
      slabs_held_ >= kSmallSlabs && bytes_ + slab_bytes_ <= limit;
  uint32_t index = 0;
  while (index < slabs_.size() && slabs_[index].base != nullptr) ++index;
  if (index == kMaxSlabs) return kNoSlab;
  void* const memory = memory_->Allocate(slab_bytes_, whole);
  if (memory == nullptr) return kNoSlab;
  if (index == slabs_.size()) slabs_.emplace_back();
  Slab& slab = slabs_[index];
  slab = Slab();
  slab.base = static_cast<char*>(memory);
  slab.whole = whole;
  bytes_ += BytesOf(slab);
  ++slabs_held_;
  return index;
}

bool RowStore::AddRoom(size_t limit) {
  if (bytes_ + rows_per_commit_ * stride_ > limit) return false;
  if (growing_ == kNoSlab) {
    growing_ = NewSlab(limit);
    if (growing_ == kNoSlab) return false;
  }
  Slab& slab = slabs_[growing_];
  bytes_ -= BytesOf(slab);
  const uint32_t rows =
      slab.whole ? rows_per_slab_
                 : std::min(rows_per_commit_, rows_per_slab_ - slab.committed);
  slab.committed += rows;
  available_ += rows;
  bytes_ += BytesOf(slab);
  Open(growing_);
  if (slab.committed == rows_per_slab_) growing_ = kNoSlab;
  return true;
}

uint32_t RowStore::Take() {
  const uint32_t index = open_.back();
  Slab& slab = slabs_[index];
  uint32_t offset = slab.free;
  if (offset != kNoRow) {
    slab.free = At(index << kOffsetBits | offset)->older;
  } else {
    offset = slab.fresh++;
  }
  if (++slab.used == slab.committed) {
    slab.open = false;
    open_.pop_back();
  }
  --available_;
  ++size_;
  const uint32_t row = index << kOffsetBits | offset;
  new (At(row)) Row();
  At(row)->used = 1;
  return row;
}

void RowStore::Release(uint32_t row) {
  const uint32_t index = row >> kOffsetBits;
  Slab& slab = slabs_[index];
  At(row)->used = 0;
  At(row)->older = slab.free;
  slab.free = row & kOffsetMask;
  --slab.used;
  --size_;
  if (index == draining_) {
    if (slab.used == 0) GiveBack(index);
    return;
  }
  ++available_;
  Open(index);
  if (slab.used == 0 && available_ >= slab.committed + RowsToKeep()) {
    GiveBack(index);
  }
}

// Returns the number of rows whose memory is kept: the reserved rows and a
// margin, which avoids repeated mapping and unmapping.
size_t RowStore::RowsToKeep() const {
  return std::max<size_t>(reserved_, rows_per_slab_ / 4);
}

void RowStore::GiveBack(uint32_t index) {
  Slab& slab = slabs_[index];
  Close(index);
  if (index == draining_) {
    draining_ = kNoSlab;
  } else {
    available_ -= slab.committed;
  }
  if (index == growing_) growing_ = kNoSlab;
  bytes_ -= BytesOf(slab);
  memory_->Free(slab.base, slab_bytes_);
  slab = Slab();
  --slabs_held_;
}

uint32_t RowStore::EmptiestSlab() const {
  uint32_t emptiest = kNoSlab;
  for (uint32_t i = 0; i < slabs_.size(); ++i) {
    if (slabs_[i].base == nullptr || i == growing_) continue;
    if (emptiest == kNoSlab || slabs_[i].used < slabs_[emptiest].used) {
      emptiest = i;
    }
  }
  return emptiest;
}

bool RowStore::Drain() {
  while (draining_ == kNoSlab) {
    if (slabs_held_ < 2 || available_ <= size_) return false;
    const uint32_t emptiest = EmptiestSlab();
    if (emptiest == kNoSlab) return false;
    const Slab& slab = slabs_[emptiest];
    const size_t free_elsewhere = available_ - (slab.committed - slab.used);
    if (free_elsewhere < slab.used + RowsToKeep()) return false;
    if (slab.used == 0) {
      GiveBack(emptiest);
      continue;
    }
    Close(emptiest);
    draining_ = emptiest;
    available_ = free_elsewhere;
  }
  return true;
}

uint32_t RowStore::NextToMove(uint32_t* from) const {
  const Slab& slab = slabs_[draining_];
  for (; *from < slab.fresh; ++*from) {
    const uint32_t row = draining_ << kOffsetBits | *from;
    if (At(row)->used != 0) return row;
  }
  return kNoRow;
}

void RowStore::StopDraining() {
  if (draining_ == kNoSlab) return;
  const uint32_t index = draining_;
  draining_ = kNoSlab;
  const Slab& slab = slabs_[index];
  available_ += slab.committed - slab.used;
  if (slab.used < slab.committed) Open(index);
}

uint32_t RowStore::NextUsed(uint32_t from, size_t* looks,
                            uint32_t* next) const {
  uint32_t index = from >> kOffsetBits;
  uint32_t offset = from & kOffsetMask;
  for (; index < slabs_.size(); ++index, offset = 0) {
    const Slab& slab = slabs_[index];
    for (; slab.base != nullptr && offset < slab.fresh; ++offset) {
      const uint32_t row = index << kOffsetBits | offset;
      if (*looks == 0) {
        *next = row;
        return kNoRow;
      }
      --*looks;
      if (At(row)->used != 0) {
        *next = row + 1;
        return row;
      }
    }
  }
  *next = kNoRow;
  return kNoRow;
}

}  // namespace penstock::ps::sparse
