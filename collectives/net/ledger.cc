#include "collectives/net/ledger.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "collectives/call.h"
#include "collectives/fault.h"
#include "collectives/net/message.h"
#include "collectives/net/window.h"
#include "transport/base/mutex.h"

namespace penstock::collectives {
namespace {

// Replaces characters of a peer's text that are not ASCII or could forge lines
// of a log. This library's own texts have no such characters.
std::string Printable(std::string text) {
  for (char& c : text) {
    if (!absl::ascii_isprint(static_cast<unsigned char>(c))) c = '?';
  }
  return text;
}

}  // namespace

Ledger::Ledger(int rank, int ranks, progress::PollingMode polling)
    : rank_(rank), signal_(polling), peers_(ranks) {}

void Ledger::OnHello(int from) {
  {
    base::MutexLock lock(&mu_);
    peers_[from].has_come = true;
  }
  signal_.Notify();
}

void Ledger::OnPart(int from, const Key& key, Part part) {
  std::function<void()> acknowledge;
  std::map<Key, Part> dropped;  // after the lock
  {
    base::MutexLock lock(&mu_);
    if (key.channel == 0) CompareLocked(from, key.number, part.words);
    Peer& peer = peers_[from];
    const int64_t cost = CostOfPart(part.payload.size());
    if (peer.untaken + cost > kMostUntaken) {
      (void)EndLocked(
          Fault::kFailed, from,
          absl::StrCat("rank ", from, " sends more than ", kMostUntaken,
                       " bytes that rank ", rank_, " has not received"));
      dropped.swap(peer.parts);
      peer.untaken = 0;
    }
    if (peer.untaken + cost <= kMaxUntaken || peer.has_left || !status_.ok()) {
      acknowledge = std::exchange(part.acknowledge, nullptr);
    }
    // Drops a part that arrives twice, or after the end of the group.
    if (status_.ok() && peer.parts.try_emplace(key, std::move(part)).second) {
      peer.untaken += cost;
    }
  }
  Notify();
  if (acknowledge != nullptr) acknowledge();
}

void Ledger::OnNotice(int from, uint64_t number, const CallWords& words) {
  {
    base::MutexLock lock(&mu_);
    peers_[from].noticed = number;
    peers_[from].notice = words;
    CompareLocked(from, number, words);
  }
  Notify();
}

void Ledger::OnFailure(int from, const Message& failure) {
  {
    base::MutexLock lock(&mu_);
    const auto culprit = static_cast<int>(failure.culprit);
    const std::string text =
        failure.text.empty()
            ? absl::StrCat("rank ", culprit, " ", Text(failure.fault))
            : failure.text;
    if (!status_.ok()) return;
    // Reports the fault to all other ranks, because `from` may have reported it
    // only to this rank.
    (void)EndLocked(failure.fault, culprit,
                    absl::StrCat(text, ", as rank ", from, " reports"));
  }
  Notify();
}

void Ledger::OnLeave(int from, uint64_t last_number) {
  std::vector<std::function<void()>> acknowledge;
  {
    base::MutexLock lock(&mu_);
    Peer& peer = peers_[from];
    peer.has_left = true;
    peer.last_number = last_number;
    for (auto& [key, part] : peer.parts) {
      if (part.acknowledge == nullptr) continue;
      acknowledge.push_back(std::exchange(part.acknowledge, nullptr));
    }
  }
  Notify();
  for (const auto& each : acknowledge) each();
}

void Ledger::OnGone(int peer, Fault fault) {
  {
    base::MutexLock lock(&mu_);
    peers_[peer].is_gone = true;
    if (!peers_[peer].has_left) (void)EndLocked(fault, peer, "");
  }
  Notify();
}

absl::Status Ledger::Begin(uint64_t number, const CallWords& words) {
  absl::Status status;
  {
    base::MutexLock lock(&mu_);
    status = BeginLocked(number, words);
  }
  if (!status.ok()) Notify();
  return status;
}

absl::Status Ledger::BeginLocked(uint64_t number, const CallWords& words) {
  current_ = number;
  calls_[number % kRemembered] = words;
  for (int from = 0; from < ranks(); ++from) {
    const Peer& peer = peers_[from];
    if (peer.has_left && peer.last_number < number) {
      return EndLocked(Fault::kLeft, from, "");
    }
    if (peer.noticed == number) CompareLocked(from, number, peer.notice);
    const auto part = peer.parts.lower_bound(Key{0, number, 0});
    if (part == peer.parts.end() || part->first.channel != 0 ||
        part->first.number != number) {
      continue;
    }
    CompareLocked(from, number, part->second.words);
  }
  return status_;
}

void Ledger::CompareLocked(int from, uint64_t number, const CallWords& words) {
  if (number == 0) {
    (void)EndLocked(Fault::kFailed, from,
                    absl::StrCat("rank ", from,
                                 " calls operation 0, and the "
                                 "first operation is 1"));
    return;
  }
  if (number > current_ || number + kRemembered <= current_) return;
  const CallWords& own = calls_[number % kRemembered];
  if (words == own) return;
  (void)EndLocked(Fault::kMismatch, from,
                  absl::StrCat("rank ", from, " calls ", Describe(words),
                               ", rank ", rank_, " calls ", Describe(own)));
}

absl::optional<Part> Ledger::Take(int from, const Key& key) {
  absl::optional<Part> part;
  {
    base::MutexLock lock(&mu_);
    Peer& peer = peers_[from];
    const auto found = peer.parts.find(key);
    if (found == peer.parts.end()) return absl::nullopt;
    part = std::move(found->second);
    peer.parts.erase(found);
    peer.untaken -= CostOfPart(part->payload.size());
  }
  if (part->acknowledge != nullptr) {
    std::exchange(part->acknowledge, nullptr)();
  }
  return part;
}

void Ledger::Drop(uint64_t number) {
  std::vector<Part> dropped;  // destroyed without the lock
  {
    base::MutexLock lock(&mu_);
    for (Peer& peer : peers_) {
      auto part = peer.parts.lower_bound(Key{0, number, 0});
      while (part != peer.parts.end() && part->first.channel == 0 &&
             part->first.number == number) {
        peer.untaken -= CostOfPart(part->second.payload.size());
        dropped.push_back(std::move(part->second));
        part = peer.parts.erase(part);
      }
    }
  }
  for (const Part& part : dropped) {
    if (part.acknowledge != nullptr) part.acknowledge();
  }
}

bool Ledger::HasLeft(int peer, uint64_t number) const {
  base::MutexLock lock(&mu_);
  return peers_[peer].has_left && peers_[peer].last_number < number;
}

bool Ledger::IsGone(int peer) const {
  base::MutexLock lock(&mu_);
  return peers_[peer].is_gone;
}

bool Ledger::HasCome(int peer) const {
  base::MutexLock lock(&mu_);
  return peers_[peer].has_come;
}

absl::Status Ledger::status() const {
  base::MutexLock lock(&mu_);
  return status_;
}

absl::Status Ledger::End(Fault fault, int culprit, const std::string& detail) {
  absl::Status status;
  {
    base::MutexLock lock(&mu_);
    status = EndLocked(fault, culprit, detail);
  }
  Notify();
  return status;
}

void Ledger::OnEnd(std::function<void()> ended) {
  {
    base::MutexLock lock(&mu_);
    on_end_ = std::move(ended);
  }
  Notify();
}

void Ledger::Notify() {
  signal_.Notify();
  if (!has_ended_.load(std::memory_order_acquire)) return;
  std::function<void()> ended;
  {
    base::MutexLock lock(&mu_);
    ended = std::exchange(on_end_, nullptr);
  }
  if (ended != nullptr) ended();
}

absl::Status Ledger::EndLocked(Fault fault, int culprit,
                               const std::string& detail) {
  if (!status_.ok()) return status_;
  status_ = StatusOf(fault, culprit, Printable(detail));
  report_.kind = Message::Kind::kFailure;
  report_.from = static_cast<uint32_t>(rank_);
  report_.fault = fault;
  report_.culprit = static_cast<uint32_t>(culprit);
  report_.text = detail;
  has_report_ = true;
  has_ended_.store(true, std::memory_order_release);
  return status_;
}

absl::optional<Message> Ledger::TakeReport() {
  base::MutexLock lock(&mu_);
  if (!std::exchange(has_report_, false)) return absl::nullopt;
  return report_;
}

}  // namespace penstock::collectives
