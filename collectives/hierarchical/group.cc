#include "collectives/hierarchical/group.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "collectives/call.h"
#include "collectives/hierarchical/ending.h"
#include "collectives/hierarchical/layout.h"
#include "collectives/host/pool.h"
#include "collectives/schedule/plan.h"
#include "transport/base/mutex.h"

namespace penstock::collectives {
namespace {

// Limits the wait for the cause of an error. After a death, the other ranks
// abort and leave. An inner group may notice that they have left before the
// group of all ranks notices the death, which is the cause.
constexpr absl::Duration kUntilCause = absl::Milliseconds(300);

bool HasPhases(Operation operation, const Layout& layout) {
  switch (operation) {
    case Operation::kAllReduce:
    case Operation::kBroadcast:
    case Operation::kBarrier:
      return true;
    case Operation::kAllGather:
    case Operation::kReduceScatter:
      return !layout.IsSkewed();
    default:
      return false;
  }
}

}  // namespace

HierarchicalGroup::HierarchicalGroup(std::unique_ptr<NetGroup> all,
                                     Layout layout)
    : layout_(std::move(layout)),
      all_(std::move(all)),
      ending_(std::make_shared<Ending>()) {}

HierarchicalGroup::~HierarchicalGroup() {
  if (all_->CheckOwner().ok()) ending_->Forget();
}

std::string HierarchicalGroup::Describe() const {
  std::string text = absl::StrCat("rank ", rank(), " of ", ranks(), " on ",
                                  layout_.hosts(), " hosts:");
  for (const auto& ranks : layout_.ranks_of) {
    absl::StrAppend(&text, " (", absl::StrJoin(ranks, ", "), ")");
  }
  absl::StrAppend(&text, "\nall: ", all_->Describe());
  if (host_ != nullptr) absl::StrAppend(&text, "\nhost: ", host_->Describe());
  if (leaders_ != nullptr) {
    absl::StrAppend(&text, "\nleaders: ", leaders_->Describe());
  }
  return text;
}

std::shared_ptr<Pool> HierarchicalGroup::pool() const {
  if (host_ == nullptr || host_->pool()->bytes() == 0) return nullptr;
  return host_->pool();
}

absl::Status HierarchicalGroup::OfHost(const absl::Status& status) const {
  return {status.code(), RenameRanks(status.message(), neighbours())};
}

absl::Status HierarchicalGroup::OfLeaders(const absl::Status& status) const {
  return {status.code(), RenameRanks(status.message(), layout_.Leaders())};
}

absl::Status HierarchicalGroup::End(const absl::Status& status) {
  absl::Status own = all_->CheckOwner();
  if (!own.ok()) return own;
  if (absl::IsUnavailable(status) || absl::IsCancelled(status)) {
    (void)all_->AwaitEnd(kUntilCause);
  }
  return all_->End(status);
}

absl::Status HierarchicalGroup::Run(const Call& call, const void* in,
                                    void* out) {
  absl::Status own = all_->CheckOwner();
  if (!own.ok()) return own;
  base::MutexLock lock(&mu_);
  absl::Status status;
  if (layout_.hosts() == 1 && host_ != nullptr) {
    status = OfHost(host_->RunPhase(call, in, out));
  } else if (layout_.hosts() == ranks() ||
             !HasPhases(call.operation, layout_)) {
    return all_->RunPhase(call, call, in, out);
  } else {
    status = RunPhases(call, in, out);
  }
  return status.ok() ? status : End(status);
}

absl::Status HierarchicalGroup::SendLetter(const Letter& letter,
                                           const void* data) {
  if (layout_.host_of[letter.peer] != layout_.host_of[rank()]) {
    return all_->Send(letter.dtype, data, letter.count, letter.peer,
                      letter.tag);
  }
  const absl::Status status =
      OfHost(host_->Send(letter.dtype, data, letter.count,
                         layout_.place_of[letter.peer], letter.tag));
  return status.ok() ? status : End(status);
}

absl::Status HierarchicalGroup::ReceiveLetter(const Letter& letter,
                                              void* data) {
  if (layout_.host_of[letter.peer] != layout_.host_of[rank()]) {
    return all_->Receive(letter.dtype, data, letter.count, letter.peer,
                         letter.tag);
  }
  const absl::Status status =
      OfHost(host_->Receive(letter.dtype, data, letter.count,
                            layout_.place_of[letter.peer], letter.tag));
  return status.ok() ? status : End(status);
}

}  // namespace penstock::collectives
