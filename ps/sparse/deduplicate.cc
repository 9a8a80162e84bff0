#include "ps/sparse/deduplicate.h"

#include <algorithm>
#include <new>
#include <utility>

namespace penstock::ps::sparse {
namespace {

constexpr uint32_t kFree = 0xffffffff;

size_t PlacesFor(size_t ids) {
  size_t places = 16;
  while (places < ids * 2) places *= 2;
  return places;
}

// Finds the position of an id among earlier ids. Uses a hash table of
// positions.
class Finder {
 public:
  // Makes a finder. `table` has `places` entries, all kFree.
  Finder(const HashKey& hash, uint32_t* table, size_t places)
      : hash_(hash), table_(table), mask_(places - 1) {}

  // Returns the position of `id` among the first `count` ids. Returns `count`
  // for a new id, which the caller then appends.
  uint32_t Find(uint64_t id, const uint64_t* ids, size_t count) {
    size_t i = hash_(id) & mask_;
    while (table_[i] != kFree && ids[table_[i]] != id) i = (i + 1) & mask_;
    if (table_[i] == kFree) table_[i] = static_cast<uint32_t>(count);
    return table_[i];
  }

 private:
  const HashKey& hash_;
  uint32_t* const table_;
  const size_t mask_;
};

// Allocates `count` elements, at least one: clang-tidy does not see that an
// empty array is never written.
template <typename T>
std::unique_ptr<T[]> NewArray(size_t count) {
  return std::unique_ptr<T[]>(new (std::nothrow) T[std::max<size_t>(count, 1)]);
}

}  // namespace

Unique FindUnique(absl::Span<const uint64_t> ids, const HashKey& hash) {
  std::vector<uint32_t> table(PlacesFor(ids.size()), kFree);
  Finder finder(hash, table.data(), table.size());
  Unique unique;
  unique.row_of.reserve(ids.size());
  for (const uint64_t id : ids) {
    const uint32_t row = finder.Find(id, unique.ids.data(), unique.ids.size());
    if (row == unique.ids.size()) unique.ids.push_back(id);
    unique.row_of.push_back(row);
  }
  return unique;
}

absl::optional<UniqueOfLists> FindUniqueOfLists(
    absl::Span<const absl::Span<const uint64_t>> lists, const HashKey& hash) {
  size_t all = 0;
  for (const auto& list : lists) all += list.size();
  const size_t places = PlacesFor(all);
  const auto table = NewArray<uint32_t>(places);
  UniqueOfLists unique;
  unique.ids = NewArray<uint64_t>(all);
  unique.row_of = NewArray<uint32_t>(all);
  if (table == nullptr || unique.ids == nullptr || unique.row_of == nullptr) {
    return absl::nullopt;
  }
  std::fill_n(table.get(), places, kFree);
  Finder finder(hash, table.get(), places);
  uint32_t* row_of = unique.row_of.get();
  for (const auto& list : lists) {
    for (const uint64_t id : list) {
      *row_of = finder.Find(id, unique.ids.get(), unique.count);
      if (*row_of == unique.count) unique.ids[unique.count++] = id;
      ++row_of;
    }
  }
  return unique;
}

size_t AddRows(absl::Span<const uint32_t> row_of, absl::Span<const float> rows,
               size_t dim, size_t seen, absl::Span<float> sums) {
  for (size_t i = 0; i < row_of.size(); ++i) {
    const float* const row = rows.data() + i * dim;
    float* const sum = sums.data() + row_of[i] * dim;
    if (row_of[i] == seen) {
      std::copy_n(row, dim, sum);
      ++seen;
    } else {
      for (size_t k = 0; k < dim; ++k) sum[k] += row[k];
    }
  }
  return seen;
}

void SumRows(const Unique& unique, absl::Span<const float> rows, size_t dim,
             absl::Span<float> sums) {
  AddRows(unique.row_of, rows, dim, /*seen=*/0, sums);
}

}  // namespace penstock::ps::sparse
