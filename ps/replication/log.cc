#include "ps/replication/log.h"

#include <utility>

namespace penstock::ps::replication {

absl::optional<uint64_t> Log::ViewAt(uint64_t seq) const {
  if (seq == before_) return view_before_;
  if (!Has(seq)) return absl::nullopt;
  return At(seq)->view;
}

void Log::Append(EntryPtr entry) {
  bytes_ += entry->bytes();
  entries_.push_back(std::move(entry));
}

void Log::TruncateAfter(uint64_t seq) {
  while (last() > seq && !entries_.empty()) {
    bytes_ -= entries_.back()->bytes();
    entries_.pop_back();
  }
}

void Log::DiscardThrough(uint64_t seq) {
  while (!entries_.empty() && first() <= seq) {
    bytes_ -= entries_.front()->bytes();
    view_before_ = entries_.front()->view;
    ++before_;
    entries_.pop_front();
  }
}

}  // namespace penstock::ps::replication
