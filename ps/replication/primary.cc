#include "ps/replication/primary.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace penstock::ps::replication {

Primary::Primary(const Options& options, const View& view, Holdings holdings,
                 absl::Time now)
    : options_(options),
      view_(view.number),
      holdings_(std::move(holdings)),
      accepted_(holdings_.applied_history),
      inherited_(holdings_.log.last()),
      lease_(options.lease) {
  for (uint64_t seq = holdings_.applied + 1; seq <= inherited_; ++seq) {
    accepted_.Record(*holdings_.log.At(seq));
  }
  SetPeers(view, now);
}

void Primary::OnView(const View& view, absl::Time now) {
  view_ = view.number;
  SetPeers(view, now);
}

// Assumes that replicas have only the committed entries, because primaries of
// the views in between may have changed later entries.
void Primary::SetPeers(const View& view, absl::Time now) {
  std::map<ReplicaId, Peer> before;
  before.swap(peers_);
  counting_.clear();
  const ShardReplicas& replicas = view.shards[options_.group.shard];
  for (const ReplicaId& id : replicas.backups) AddPeer(id, true, now);
  for (const ReplicaId& id : replicas.joiners) {
    AddPeer(id, false, now);
    const auto was = before.find(id);
    if (was != before.end()) KeepPlace(was->second, &peers_[id]);
  }
  Commit(now);
}

// A snapshot has committed entries only.
void Primary::KeepPlace(const Peer& before, Peer* peer) const {
  peer->state = before.state;
  peer->kept = before.kept;
  if (before.state != Peer::kFollows) return;
  peer->held = std::min(before.held, holdings_.committed);
  peer->sent = peer->kept = peer->held;
}

void Primary::AddPeer(const ReplicaId& id, bool is_backup, absl::Time now) {
  Peer peer;
  peer.is_backup = peer.counts = is_backup;
  if (is_backup) {
    peer.state = Peer::kFollows;
    peer.held = peer.sent = holdings_.committed;
    counting_.push_back(id);
  }
  peer.heard = peer.advanced = now;
  peers_.emplace(id, peer);
}

absl::StatusOr<uint64_t> Primary::Accept(std::vector<WorkerPush> pushes,
                                         std::shared_ptr<const Payload> payload,
                                         absl::Time now) {
  Entry entry;
  entry.pushes = std::move(pushes);
  entry.payload = std::move(payload);
  return AcceptEntry(std::move(entry), now);
}

absl::StatusOr<uint64_t> Primary::Join(const WorkerId& worker, absl::Time now) {
  Entry entry;
  entry.joins = worker;
  return AcceptEntry(std::move(entry), now);
}

absl::StatusOr<uint64_t> Primary::AcceptEntry(Entry entry, absl::Time now) {
  if (absl::Status full = MakeRoom(entry.bytes(), now); !full.ok()) return full;
  entry.seq = holdings_.log.last() + 1;
  entry.view = view_;
  for (auto& [id, peer] : peers_) {
    if (peer.held == holdings_.log.last()) peer.advanced = now;
  }
  accepted_.Record(entry);
  holdings_.log.Append(std::make_shared<const Entry>(std::move(entry)));
  const uint64_t seq = holdings_.log.last();
  Commit(now);
  return seq;
}

absl::Status Primary::MakeRoom(size_t bytes, absl::Time now) {
  if (bytes > options_.max_log_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("a push of ", bytes, " bytes can never fit into the ",
                     options_.max_log_bytes, " bytes of the log"));
  }
  const Log& log = holdings_.log;
  while (log.bytes() + bytes > options_.max_log_bytes) {
    if (DropOnePlace()) continue;
    full_since_ = std::min(full_since_, now);
    const auto* slowest = Slowest();
    const std::string awaited =
        slowest != nullptr && slowest->second.held < log.last()
            ? absl::StrCat(TextOf(slowest->first), " holds ",
                           slowest->second.held, " of ", log.last())
            : absl::StrCat(holdings_.applied, " of ", log.last(),
                           " are applied");
    return absl::ResourceExhaustedError(
        absl::StrCat("the log is full of entries: ", awaited));
  }
  return absl::OkStatus();
}

// Drops the progress of the joiner that is furthest behind. Returns false if no
// joiner makes the log longer.
bool Primary::DropOnePlace() {
  Peer* last = nullptr;
  for (auto& [id, peer] : peers_) {
    const bool has_place =
        peer.state == Peer::kFollows || peer.state == Peer::kGetsSnapshot;
    if (!has_place || peer.counts || peer.kept >= holdings_.applied) continue;
    if (last == nullptr || peer.kept < last->kept) last = &peer;
  }
  if (last == nullptr) return false;
  last->state = Peer::kWantsSnapshot;
  Forget();
  return true;
}

bool Primary::MayAnswer(absl::Time now) {
  Commit(now);
  return has_begun_ && lease_.Covers(counting_, now);
}

void Primary::Applied() {
  holdings_.Applied();
  Forget();
}

// Commits the entries that all counting replicas have. A primary that has not
// begun commits nothing, because its predecessor may still answer: this replica
// has promised so.
void Primary::Commit(absl::Time now) {
  if (!has_begun_) has_begun_ = holdings_.promises.AreOver(now);
  if (!has_begun_) return;
  const auto* slowest = Slowest();
  const uint64_t held =
      slowest == nullptr ? holdings_.log.last() : slowest->second.held;
  holdings_.committed = std::max(holdings_.committed, held);
  Forget();
}

void Primary::Forget() {
  uint64_t through = holdings_.applied;
  for (const auto& [id, peer] : peers_) {
    const bool has_place =
        peer.state == Peer::kFollows || peer.state == Peer::kGetsSnapshot;
    if (has_place && !peer.is_backup) through = std::min(through, peer.kept);
  }
  holdings_.log.DiscardThrough(through);
  if (holdings_.log.bytes() <= options_.max_log_bytes / 2) {
    full_since_ = absl::InfiniteFuture();
  }
}

const std::pair<const ReplicaId, Primary::Peer>* Primary::Slowest() const {
  const std::pair<const ReplicaId, Peer>* slowest = nullptr;
  for (const auto& entry : peers_) {
    if (!entry.second.counts) continue;
    if (slowest == nullptr || entry.second.held < slowest->second.held) {
      slowest = &entry;
    }
  }
  return slowest;
}

}  // namespace penstock::ps::replication
