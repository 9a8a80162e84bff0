#include "ps/sparse/deduplicate.h"

#include <algorithm>
#include <utility>

namespace penstock::ps::sparse {
namespace {

constexpr uint32_t kFree = 0xffffffff;

}  // namespace

Unique FindUnique(absl::Span<const uint64_t> ids, const HashKey& hash) {
  size_t places = 16;
  while (places < ids.size() * 2) places *= 2;
  std::vector<uint32_t> table(places, kFree);
  Unique unique;
  unique.row_of.reserve(ids.size());
  for (const uint64_t id : ids) {
    size_t i = hash(id) & (places - 1);
    while (table[i] != kFree && unique.ids[table[i]] != id) {
      i = (i + 1) & (places - 1);
    }
    if (table[i] == kFree) {
      table[i] = static_cast<uint32_t>(unique.ids.size());
      unique.ids.push_back(id);
    }
    unique.row_of.push_back(table[i]);
  }
  return unique;
}

void SumRows(const Unique& unique, absl::Span<const float> rows, size_t dim,
             absl::Span<float> sums) {
  size_t seen = 0;
  for (size_t i = 0; i < unique.row_of.size(); ++i) {
    const float* const row = rows.data() + i * dim;
    float* const sum = sums.data() + unique.row_of[i] * dim;
    if (unique.row_of[i] == seen) {
      std::copy_n(row, dim, sum);
      ++seen;
    } else {
      for (size_t k = 0; k < dim; ++k) sum[k] += row[k];
    }
  }
}

void SpreadRows(const Unique& unique, absl::Span<const float> rows, size_t dim,
                absl::Span<float> out) {
  for (size_t i = 0; i < unique.row_of.size(); ++i) {
    std::copy_n(rows.data() + unique.row_of[i] * dim, dim,
                out.data() + i * dim);
  }
}

Gradients Deduplicate(absl::Span<const uint64_t> ids,
                      absl::Span<const float> gradients, size_t dim,
                      const HashKey& hash) {
  Unique unique = FindUnique(ids, hash);
  Gradients sums;
  sums.gradients.resize(unique.ids.size() * dim);
  SumRows(unique, gradients, dim, absl::MakeSpan(sums.gradients));
  sums.ids = std::move(unique.ids);
  return sums;
}

}  // namespace penstock::ps::sparse
