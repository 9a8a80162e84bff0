#include "tests/ps/replication/ledger.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace penstock::ps::replication {
namespace {

// Limits the time for one history to some 50 ms.
constexpr size_t kMaxStates = 20000;

}  // namespace

void Apply(const Entry& entry, Values* values) {
  if (entry.payload == nullptr) return;
  const uint64_t amount = static_cast<const Amount&>(*entry.payload).amount();
  values->bits = (values->bits ^ amount) * 0x9e3779b97f4a7c15u + 1;
  values->sum += amount;
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

size_t Ledger::BeginPull() {
  history_.push_back({Operation::kPull, world_->now()});
  return history_.size() - 1;
}

size_t Ledger::BeginPush(const WorkerPush& push, uint64_t amount) {
  const size_t call = BeginPull();
  history_[call].kind = Operation::kPush;
  history_[call].value = amount;
  pushes_[call] = {push.worker.rank, push.worker.incarnation, push.clock};
  return call;
}

void Ledger::EndCall(size_t call, uint64_t value) {
  history_[call].answered = world_->now();
  if (history_[call].kind == Operation::kPull) history_[call].value = value;
}

void Ledger::CheckEnd() {
  for (const auto& [key, seqs] : acknowledged_) {
    for (uint64_t seq : seqs) {
      if (applied_[key].count(seq) > 0) continue;
      world_->Fail(absl::StrCat("the acknowledged entry ", seq, " is lost"));
    }
  }
  if (!world_->has_wild_clocks()) CheckHistory();
}

void Ledger::CheckHistory() {
  for (const auto& [call, key] : pushes_) {
    const std::set<uint64_t>& seqs = applied_[key];
    history_[call].guess = seqs.empty() ? ~uint64_t{0} : *seqs.begin();
  }
  switch (JudgeHistory(history_, kMaxStates)) {
    case Judgement::kLinearizable:
      return world_->Count("history judged");
    case Judgement::kTooLarge:
      return world_->Count("history too large to judge");
    case Judgement::kNot:
      return world_->Fail("no order of the calls explains their answers");
  }
}

}  // namespace penstock::ps::replication
