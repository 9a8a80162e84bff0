#include "frameworks/tensorflow/called_reductions.h"

#include <algorithm>

namespace penstock {
namespace tensorflow {

void CalledReductions::Change(int rank, const std::string& key, int change) {
  Counts& counts = calls_[key];
  counts.resize(ranks_);
  counts[rank] += change;
  const bool is_over = std::all_of(counts.begin(), counts.end(),
                                   [](int64_t count) { return count == 0; });
  if (is_over) calls_.erase(key);
}

bool CalledReductions::Take(const std::string& key) {
  const auto call = calls_.find(key);
  if (call == calls_.end()) return false;
  const Counts& counts = call->second;
  if (*std::min_element(counts.begin(), counts.end()) < 1) return false;
  for (int rank = 0; rank < ranks_; ++rank) Change(rank, key, -1);
  return true;
}

void CalledReductions::PutBack(const std::string& key) {
  for (int rank = 0; rank < ranks_; ++rank) Change(rank, key, 1);
}

}  // namespace tensorflow
}  // namespace penstock
