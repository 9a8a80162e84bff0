#include "tests/ps/replication/ledger.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace penstock::ps::replication {

uint64_t Apply(uint64_t bits, const Entry& entry) {
  if (entry.payload == nullptr) return bits;
  const auto& amount = static_cast<const Amount&>(*entry.payload);
  return (bits ^ amount.amount()) * 0x9e3779b97f4a7c15u + 1;
}

void Ledger::Applied(const Entry& entry, uint64_t bits) {
  const auto [known, is_new] =
      order_.emplace(entry.seq, Done{entry.view, bits});
  if (known->second.view != entry.view || known->second.bits != bits) {
    return world_->Fail(
        absl::StrCat("entry ", entry.seq, " differs between replicas"));
  }
  if (!is_new) return;
  if (entry.joins.has_value()) {
    Note({entry.joins->rank, entry.joins->incarnation, kJoin}, entry.seq);
  }
  for (const WorkerPush& push : entry.pushes) {
    Note({push.worker.rank, push.worker.incarnation, push.clock}, entry.seq);
    uint64_t& clock = clocks_[push.worker.rank];
    if (push.clock < clock) {
      world_->Fail(absl::StrCat("rank ", push.worker.rank, " does step ",
                                push.clock, " again"));
    }
    clock = push.clock + 1;
  }
}

void Ledger::Note(const Key& key, uint64_t seq) {
  std::set<uint64_t>& seqs = applied_[key];
  seqs.insert(seq);
  if (std::get<2>(key) != kJoin && seqs.size() > 1) {
    world_->Fail(absl::StrCat("entry ", seq, " applies a push again"));
  }
}

void Ledger::Restored(uint64_t seq, uint64_t bits) {
  if (seq == 0) return;
  const auto known = order_.find(seq);
  if (known == order_.end() || known->second.bits != bits) {
    world_->Fail(absl::StrCat("a snapshot of entry ", seq, " differs"));
  }
}

void Ledger::Acknowledged(const WorkerPush& push, uint64_t seq) {
  Promise({push.worker.rank, push.worker.incarnation, push.clock}, seq);
}

void Ledger::Joined(const WorkerId& worker, uint64_t seq) {
  Promise({worker.rank, worker.incarnation, kJoin}, seq);
}

void Ledger::Promise(const Key& key, uint64_t seq) {
  std::set<uint64_t>& seqs = acknowledged_[key];
  seqs.insert(seq);
  if (std::get<2>(key) != kJoin && seqs.size() > 1) {
    world_->Fail(absl::StrCat("a push is acknowledged as two entries, ", seq,
                              " and another"));
  }
  floor_ = std::max(floor_, seq);
}

void Ledger::Pulled(uint64_t floor, uint64_t applied, uint64_t bits) {
  if (applied < floor) {
    world_->Fail(absl::StrCat("a pull sees ", applied,
                              " entries, and not the acknowledged ", floor));
  }
  Restored(applied, bits);
  floor_ = std::max(floor_, applied);
}

uint64_t Ledger::ViewOf(uint64_t seq) const {
  const auto known = order_.find(seq);
  return known == order_.end() ? 0 : known->second.view;
}

void Ledger::CheckEnd() {
  for (const auto& [key, seqs] : acknowledged_) {
    for (uint64_t seq : seqs) {
      if (applied_[key].count(seq) > 0) continue;
      world_->Fail(absl::StrCat("the acknowledged entry ", seq, " is lost"));
    }
  }
}

}  // namespace penstock::ps::replication
