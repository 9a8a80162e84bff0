#include "ps/replication/backup.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace penstock::ps::replication {
namespace {

// Checks that the entries are consecutive, and that their views do not exceed
// that of the message.
absl::Status CheckEntries(const Append& message) {
  uint64_t seq = message.prev_seq;
  uint64_t view = message.prev_view;
  for (const EntryPtr& entry : message.entries) {
    const bool follows = entry != nullptr && entry->seq == seq + 1 &&
                         entry->view >= view &&
                         entry->view <= message.envelope.view;
    if (!follows) {
      return absl::InvalidArgumentError(
          absl::StrCat("the entry after ", seq, " is not the next one"));
    }
    seq = entry->seq;
    view = entry->view;
  }
  return absl::OkStatus();
}

// Stores a snapshot, except for its values. Keeps later entries if they belong
// to the same log, because the primary may rely on entries that this replica
// has reported. Drops them and returns false if they belong to another log.
bool TakeSnapshot(const Snapshot& message, Holdings* holdings) {
  const bool keeps_log = holdings->has_values &&
                         holdings->log.ViewAt(message.seq) == message.seq_view;
  if (keeps_log) {
    holdings->log.DiscardThrough(message.seq);
  } else {
    holdings->log = Log(message.seq, message.seq_view);
  }
  holdings->has_values = true;
  holdings->committed = holdings->applied = message.seq;
  holdings->applied_history = message.history;
  return keeps_log;
}

}  // namespace

Backup::Backup(const Options& options, const View& view, Holdings holdings)
    : options_(options),
      view_(view.number),
      primary_(view.shards[options.group.shard].primary),
      holdings_(std::move(holdings)),
      matched_(holdings_.committed) {}

absl::Status Backup::CheckSender(const Envelope& envelope,
                                 absl::Duration lease) const {
  absl::Status same = CheckSameGroup(options_.group, envelope.group);
  if (!same.ok()) return same;
  if (envelope.view < view_) {
    return absl::FailedPreconditionError(
        absl::StrCat("view ", envelope.view, " is over; ", TextOf(primary_),
                     " is the primary in view ", view_));
  }
  if (envelope.view > view_) {
    return absl::UnavailableError(
        absl::StrCat("view ", envelope.view, " has not arrived at ",
                     TextOf(options_.self), ", which is in view ", view_));
  }
  if (envelope.from != primary_) {
    return absl::PermissionDeniedError(
        absl::StrCat(TextOf(envelope.from), " is not the primary in view ",
                     view_, ", but ", TextOf(primary_)));
  }
  if (lease < absl::ZeroDuration() || lease > kMaxLease) {
    return absl::InvalidArgumentError(
        absl::StrCat("a lease of ", absl::FormatDuration(lease), "; at most ",
                     absl::FormatDuration(kMaxLease)));
  }
  return absl::OkStatus();
}

Answer Backup::MakeAnswer(absl::Status status, const LeaseStamp& stamp) const {
  Answer answer;
  answer.envelope = {options_.group, options_.self, view_};
  answer.status = std::move(status);
  answer.held = matched_;
  answer.is_empty = !holdings_.has_values;
  answer.complete = holdings_.complete;
  answer.stamp = stamp;
  return answer;
}

Answer Backup::OnAppend(const Append& message, absl::Time now) {
  absl::Status refused = CheckSender(message.envelope, message.lease);
  if (refused.ok()) refused = CheckEntries(message);
  if (!refused.ok()) return MakeAnswer(std::move(refused), {});
  holdings_.promises.Give(primary_, message.lease, now);
  return MakeAnswer(Take(message), message.stamp);
}

absl::Status Backup::Take(const Append& message) {
  if (!holdings_.has_values) {
    return absl::OutOfRangeError("a snapshot has to come first");
  }
  const Log& log = holdings_.log;
  // Checks if this log continues the primary's. Committed entries are the same
  // at all replicas.
  const bool meets = message.prev_seq < holdings_.committed ||
                     log.ViewAt(message.prev_seq) == message.prev_view;
  if (!meets) {
    return absl::OutOfRangeError(absl::StrCat("the entries after ", matched_,
                                              " and up to ", message.prev_seq,
                                              " are missing"));
  }
  uint64_t matched = message.prev_seq;
  absl::Status full;
  for (const EntryPtr& entry : message.entries) {
    full = TakeEntry(entry);
    if (!full.ok()) break;
    matched = entry->seq;
  }
  matched_ = std::max(matched_, matched);
  holdings_.committed =
      std::max(holdings_.committed, std::min(message.committed, matched_));
  if (message.complete && matched_ >= message.committed) {
    holdings_.complete = true;
  }
  return full;
}

absl::Status Backup::TakeEntry(const EntryPtr& entry) {
  Log& log = holdings_.log;
  if (entry->seq <= matched_) return absl::OkStatus();
  if (log.ViewAt(entry->seq) == entry->view) return absl::OkStatus();
  // Removes entries of a former primary, which the present primary lacks, to
  // make room.
  log.TruncateAfter(entry->seq - 1);
  if (log.bytes() + entry->bytes() > options_.max_log_bytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("entries that are not applied take ", log.bytes(),
                     " bytes; entry ", entry->seq, " must be sent again"));
  }
  log.Append(entry);
  return absl::OkStatus();
}

Answer Backup::OnSnapshot(const Snapshot& message, absl::Time now,
                          bool* replaces_values) {
  *replaces_values = false;
  absl::Status refused = CheckSender(message.envelope, message.lease);
  if (refused.ok() && message.seq_view > message.envelope.view) {
    refused = absl::InvalidArgumentError("a snapshot of a later view");
  }
  if (!refused.ok()) return MakeAnswer(std::move(refused), {});
  holdings_.promises.Give(primary_, message.lease, now);
  if (!holdings_.has_values || message.seq > holdings_.committed) {
    const bool keeps_log = TakeSnapshot(message, &holdings_);
    matched_ = keeps_log ? std::max(matched_, message.seq) : message.seq;
    *replaces_values = true;
  }
  return MakeAnswer(absl::OkStatus(), message.stamp);
}

void Backup::Applied() {
  holdings_.Applied();
  holdings_.log.DiscardThrough(holdings_.applied);
}

}  // namespace penstock::ps::replication
