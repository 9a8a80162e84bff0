#include "ps/replication/replica.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "ps/replication/replica_list.h"

namespace penstock::ps::replication {
Replica::Replica(const Options& options) : options_(options) {}

Replica::Replica(const Options& options, PushHistory history, bool leads)
    : options_(options) {
  holdings_.has_values = true;
  holdings_.complete = leads;
  holdings_.applied_history = std::move(history);
}

const Holdings& Replica::holdings() const {
  if (primary_ != nullptr) return primary_->holdings();
  if (backup_ != nullptr) return backup_->holdings();
  return holdings_;
}

absl::Status Replica::CheckNew(const View& view) const {
  if (absl::Status wrong = CheckView(view); !wrong.ok()) return wrong;
  if (view.run != options_.group.run ||
      view.shards.size() <= options_.group.shard) {
    return absl::FailedPreconditionError(absl::StrCat(
        "view ", view.number, " is of another run or model than this server"));
  }
  if (view.number < view_.number) {
    return absl::FailedPreconditionError(absl::StrCat(
        "view ", view.number, " comes after view ", view_.number,
        "; views never go back. Was the store of the views restored?"));
  }
  if (view.number == view_.number && !(view == view_)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "there are two views ", view.number, "; their store is split"));
  }
  return absl::OkStatus();
}

absl::Status Replica::OnView(const View& view, absl::Time now) {
  if (absl::Status wrong = CheckNew(view); !wrong.ok()) return wrong;
  if (view.number == view_.number) return absl::OkStatus();
  view_ = view;
  const ShardReplicas& shard = view_.shards[options_.group.shard];
  if (primary_ != nullptr && shard.primary == options_.self) {
    primary_->OnView(view_, now);
    return absl::OkStatus();
  }
  TakeBack();
  if (shard.primary == options_.self) return Begin(now);
  const bool is_backup = Has(shard.backups, options_.self);
  if (!is_backup) holdings_.complete = false;
  if (is_backup || Has(shard.joiners, options_.self)) {
    backup_ = std::make_unique<Backup>(options_, view_, std::move(holdings_));
  }
  return absl::OkStatus();
}

void Replica::Applied() {
  if (primary_ != nullptr) return primary_->Applied();
  if (backup_ != nullptr) return backup_->Applied();
  holdings_.Applied();
  holdings_.log.DiscardThrough(holdings_.applied);
}

void Replica::TakeBack() {
  if (primary_ != nullptr) holdings_ = primary_->Release();
  if (backup_ != nullptr) holdings_ = backup_->Release();
  primary_ = nullptr;
  backup_ = nullptr;
  // Discards applied entries, which a primary keeps for joiners. In a backup
  // they would fill the log, because a backup discards entries only when it
  // applies an entry.
  holdings_.log.DiscardThrough(holdings_.applied);
}

absl::Status Replica::Begin(absl::Time now) {
  if (!holdings_.complete) {
    return absl::DataLossError(
        absl::StrCat(TextOf(options_.self), " cannot be the primary of shard ",
                     options_.group.shard, " in view ", view_.number,
                     ": it has not caught up. Drop it from the view"));
  }
  primary_ =
      std::make_unique<Primary>(options_, view_, std::move(holdings_), now);
  return absl::OkStatus();
}

}  // namespace penstock::ps::replication
