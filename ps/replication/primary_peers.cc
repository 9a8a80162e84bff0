// The messages of a primary to the other replicas, and their answers.

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ps/replication/primary.h"

namespace penstock::ps::replication {
namespace {

// The number of unanswered heartbeats from which a replica can be overdue. A
// jump of the clock alone thus makes no replica overdue.
constexpr int kMinMessages = 3;
// The number of missing entries up to which a joiner counts as nearly caught
// up, however large the entries are. While workers push, a few entries are
// always in flight.
constexpr uint64_t kFewEntries = 4;

}  // namespace

Envelope Primary::MakeEnvelope() const {
  return {options_.group, options_.self, view_};
}

absl::optional<Append> Primary::Next(const ReplicaId& to, absl::Time now) {
  const auto found = peers_.find(to);
  if (found == peers_.end()) return absl::nullopt;
  Peer& peer = found->second;
  if (peer.state != Peer::kFollows) return absl::nullopt;
  const bool has_news =
      peer.sent < holdings_.log.last() || peer.told < holdings_.committed;
  if (!has_news) return absl::nullopt;
  return MakeAppend(&peer, now);
}

absl::optional<Append> Primary::Heartbeat(const ReplicaId& to, absl::Time now) {
  const auto found = peers_.find(to);
  if (found == peers_.end()) return absl::nullopt;
  ++found->second.unanswered;
  return MakeAppend(&found->second, now);
}

Append Primary::MakeAppend(Peer* peer, absl::Time now) {
  const Log& log = holdings_.log;
  Append message;
  message.envelope = MakeEnvelope();
  const bool follows = peer->state == Peer::kFollows;
  message.prev_seq = follows ? peer->sent : log.last();
  message.prev_view = log.ViewAt(message.prev_seq).value_or(0);
  size_t bytes = 0;
  while (follows && peer->sent < log.last()) {
    const EntryPtr& entry = log.At(peer->sent + 1);
    bytes += entry->bytes();
    const bool fits = bytes <= options_.max_message_bytes;
    if (!fits && !message.entries.empty()) break;
    message.entries.push_back(entry);
    ++peer->sent;
  }
  message.committed = peer->told = holdings_.committed;
  message.complete = peer->counts && peer->held >= holdings_.committed;
  message.stamp = lease_.Ask(now);
  message.lease = options_.lease.duration;
  return message;
}

void Primary::Resend(const ReplicaId& to) {
  const auto found = peers_.find(to);
  if (found == peers_.end()) return;
  Peer& peer = found->second;
  peer.sent = peer.held;
}

void Primary::LoseSnapshot(const ReplicaId& to) {
  const auto found = peers_.find(to);
  if (found == peers_.end()) return;
  Peer& peer = found->second;
  if (peer.state == Peer::kGetsSnapshot) peer.state = Peer::kUnknown;
}

std::vector<ReplicaId> Primary::WantSnapshot() const {
  std::vector<ReplicaId> wanting;
  for (const auto& [id, peer] : peers_) {
    if (peer.state == Peer::kWantsSnapshot) wanting.push_back(id);
  }
  return wanting;
}

absl::optional<Snapshot> Primary::MakeSnapshot(
    const ReplicaId& to, std::shared_ptr<const Payload> values,
    absl::Time now) {
  const auto found = peers_.find(to);
  if (found == peers_.end()) return absl::nullopt;
  Peer& peer = found->second;
  if (peer.state != Peer::kWantsSnapshot) return absl::nullopt;
  peer.state = Peer::kGetsSnapshot;
  peer.kept = holdings_.applied;
  Snapshot message;
  message.envelope = MakeEnvelope();
  message.seq = holdings_.applied;
  message.seq_view = holdings_.log.ViewAt(message.seq).value_or(0);
  message.history = holdings_.applied_history;
  message.values = std::move(values);
  message.stamp = lease_.Ask(now);
  message.lease = options_.lease.duration;
  return message;
}

absl::optional<Snapshot> Primary::RenewSnapshot(const ReplicaId& to,
                                                Snapshot message,
                                                absl::Time now) {
  const auto found = peers_.find(to);
  const bool waits = found != peers_.end() &&
                     found->second.state == Peer::kGetsSnapshot &&
                     found->second.kept == message.seq;
  if (!waits) return absl::nullopt;
  message.envelope = MakeEnvelope();
  message.stamp = lease_.Ask(now);
  message.lease = options_.lease.duration;
  return message;
}

void Primary::OnAnswer(const Answer& answer, absl::Time now) {
  const Envelope& envelope = answer.envelope;
  const auto found = peers_.find(envelope.from);
  if (found == peers_.end() || envelope.view != view_) return;
  if (!CheckSameGroup(options_.group, envelope.group).ok()) return;
  Peer& peer = found->second;
  peer.heard = now;
  peer.unanswered = 0;
  // Ends the promise. A replica in this view is not the primary of an earlier
  // view any more.
  holdings_.promises.Release(envelope.from);
  lease_.Grant(envelope.from, answer.stamp, now);
  if (answer.held > holdings_.log.last()) return;
  TakeHeld(answer, &peer, now);
  Place(answer, &peer);
  if (!peer.counts && IsNearlyThere(peer)) {
    peer.counts = true;
    counting_.push_back(envelope.from);
  }
  peer.confirmed = peer.confirmed || (peer.counts && answer.complete);
  Commit(now);
}

void Primary::TakeHeld(const Answer& answer, Peer* peer, absl::Time now) {
  const bool has_all = answer.held == holdings_.log.last();
  if (!answer.is_empty && answer.held > peer->held) {
    peer->held = answer.held;
    peer->advanced = now;
    peer->idle_answers = 0;
  } else if (has_all) {
    peer->advanced = now;
    peer->idle_answers = 0;
  } else {
    ++peer->idle_answers;
  }
}

// Decides how the replica gets the entries that it lacks.
void Primary::Place(const Answer& answer, Peer* peer) {
  const bool lacks_entries =
      answer.status.code() == absl::StatusCode::kOutOfRange;
  const bool can_follow =
      !answer.is_empty && holdings_.log.ViewAt(peer->held).has_value();
  switch (peer->state) {
    case Peer::kWantsSnapshot:
      return;
    case Peer::kGetsSnapshot:
      // Ignores answers to messages before the snapshot.
      if (answer.is_empty || peer->held < peer->kept) return;
      break;
    case Peer::kUnknown:
      break;
    case Peer::kFollows:
      if (lacks_entries) break;
      if (!answer.status.ok()) peer->sent = peer->held;
      peer->sent = std::max(peer->sent, peer->held);
      peer->kept = peer->held;
      return;
  }
  if (!can_follow) {
    peer->state = Peer::kWantsSnapshot;
    return;
  }
  peer->state = Peer::kFollows;
  peer->sent = peer->kept = peer->held;
}

bool Primary::IsNearlyThere(const Peer& peer) const {
  if (!has_begun_ || peer.state != Peer::kFollows) return false;
  const Log& log = holdings_.log;
  size_t lacking = 0;
  for (uint64_t seq = peer.held + 1; seq <= log.last(); ++seq) {
    lacking += log.At(seq)->bytes();
    const bool are_few = seq <= peer.held + kFewEntries;
    if (lacking > options_.max_lag_bytes && !are_few) return false;
  }
  return true;
}

std::vector<ReplicaId> Primary::Peers() const {
  std::vector<ReplicaId> ids;
  for (const auto& entry : peers_) ids.push_back(entry.first);
  return ids;
}

std::vector<ReplicaId> Primary::Complete() const {
  std::vector<ReplicaId> complete;
  for (const auto& [id, peer] : peers_) {
    if (!peer.is_backup && peer.confirmed) complete.push_back(id);
  }
  return complete;
}

std::vector<Primary::Complaint> Primary::Overdue(absl::Time now) const {
  std::vector<Complaint> complaints;
  const auto* slowest = Slowest();
  const uint64_t last = holdings_.log.last();
  const std::string patience = absl::FormatDuration(options_.patience);
  for (const auto& entry : peers_) {
    const Peer& peer = entry.second;
    if (!peer.counts) continue;
    const bool is_silent =
        peer.unanswered >= kMinMessages && now - peer.heard > options_.patience;
    const bool is_stuck = peer.held < last &&
                          peer.idle_answers >= kMinMessages &&
                          now - peer.advanced > options_.patience;
    const bool is_slow = &entry == slowest && peer.held < last &&
                         now - full_since_ > options_.patience;
    const std::string holds =
        absl::StrCat("holds ", peer.held, " of ", last, " entries");
    if (is_silent) {
      complaints.push_back(
          {entry.first, absl::StrCat("no answer for ", patience)});
    } else if (is_stuck) {
      complaints.push_back(
          {entry.first, absl::StrCat(holds, ", no more for ", patience)});
    } else if (is_slow) {
      complaints.push_back(
          {entry.first,
           absl::StrCat(holds, "; pushes are refused for ", patience)});
    }
  }
  return complaints;
}

}  // namespace penstock::ps::replication
