#include "ps/sparse/shard_rows.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace penstock::ps::sparse {

ShardRows::ShardRows(const Options* options, const HashKey* hash)
    : hash_(*hash),
      keeps_order_(options->KeepsOrder()),
      index_(options->memory),
      store_(options->dim * (1 + options->slots()), options->memory),
      recency_(&store_) {}

void ShardRows::Prefetch(const uint64_t* hashes, size_t count) const {
  count = std::min(count, kMaxPrefetch);
  for (size_t i = 0; i < count; ++i) {
    index_.Prefetch(static_cast<uint32_t>(hashes[i]));
  }
  uint32_t numbers[kMaxPrefetch];
  for (size_t i = 0; i < count; ++i) {
    // Compare only tags: the tag nearly always identifies the row.
    numbers[i] = index_.Find(static_cast<uint32_t>(hashes[i]),
                             [](uint32_t row) { return true; });
    if (numbers[i] != kNoRow) store_.Prefetch(numbers[i]);
  }
  if (!keeps_order_) return;
  for (size_t i = 0; i < count; ++i) {
    if (numbers[i] != kNoRow) recency_.Prefetch(numbers[i]);
  }
}

bool ShardRows::GrowFor(size_t rows, size_t byte_limit) {
  while (index_.limit() - index_.size() < rows) {
    // Check for room: the old and the new index exist at the same time.
    if (bytes() + index_.bytes_to_grow() > byte_limit) return false;
    // Computes the number of rows that fit with the index. More rows may be
    // reserved than fit in memory, and an index never shrinks.
    const size_t left = byte_limit - index_.bytes_to_grow();
    if (store_.RowsIn(left) <= index_.limit() || !index_.Grow()) return false;
  }
  while (store_.available() < rows) {
    if (store_.AddRoom(byte_limit - std::min(index_.bytes(), byte_limit))) {
      continue;
    }
    if (!store_.draining()) return false;
    store_.StopDraining();
  }
  return true;
}

size_t ShardRows::RowsWithin(size_t byte_limit) const {
  return std::min(
      index_.limit(),
      store_.RowsIn(byte_limit - std::min(index_.bytes(), byte_limit)));
}

uint32_t ShardRows::Take(uint64_t id, uint32_t tag) {
  const uint32_t number = store_.Take();
  store_.At(number)->id = id;
  index_.Insert(tag, number);
  if (keeps_order_) recency_.Add(number);
  return number;
}

void ShardRows::Release(uint32_t number) {
  index_.Erase(TagOf(number), number);
  if (keeps_order_) recency_.Remove(number);
  store_.Release(number);
}

void ShardRows::SortByLastUse() {
  if (!keeps_order_) return;
  std::vector<uint32_t> numbers;
  numbers.reserve(size());
  for (uint32_t i = recency_.oldest(); i != kNoRow; i = At(i)->newer) {
    numbers.push_back(i);
  }
  std::stable_sort(numbers.begin(), numbers.end(), [&](uint32_t a, uint32_t b) {
    return At(a)->last_use < At(b)->last_use;
  });
  recency_.Clear();
  for (const uint32_t number : numbers) recency_.Add(number);
}

bool ShardRows::Compact(size_t limit) {
  for (; limit > 0; --limit) {
    if (!store_.draining()) {
      if (!store_.Drain()) return false;
      drain_from_ = 0;
    }
    const uint32_t number = store_.NextToMove(&drain_from_);
    if (number == kNoRow || store_.available() <= store_.reserved()) {
      store_.StopDraining();
      return false;
    }
    Move(number);
  }
  return true;
}

void ShardRows::Move(uint32_t number) {
  const uint32_t to = store_.Take();
  Row* const row = At(number);
  std::memcpy(static_cast<void*>(At(to)), row, store_.stride());
  index_.Replace(TagOf(number), number, to);
  if (keeps_order_) recency_.Moved(number, to);
  store_.Release(number);
}

}  // namespace penstock::ps::sparse
