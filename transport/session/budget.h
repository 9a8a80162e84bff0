// Limits how much memory a peer makes this process hold. Pure.

#ifndef PENSTOCK_TRANSPORT_SESSION_BUDGET_H_
#define PENSTOCK_TRANSPORT_SESSION_BUDGET_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"

namespace penstock {
namespace session {

// Limits of one session's memory for its peer. docs/security.md has a table of
// all limits.
struct BudgetLimits {
  // Above these, a peer has to take waiting data before it gets more. An honest
  // peer can get there.
  //
  // Messages that ended streams have left exposed, and what of such streams
  // waits to be sent: then new streams wait. As much as a reader reads ahead.
  uint64_t replies_bytes = 64 * 1024 * 1024;
  // Frames that answer the peer's, and wait to be sent: then nothing more is
  // read from the lifeline. 25,000 of them.
  uint64_t answers_bytes = 1024 * 1024;
  // Frames of any kind that wait to be sent: then senders wait. Enough for the
  // fastest path.
  uint64_t outbox_bytes = 4 * 1024 * 1024;
  // Limits the messages that were announced to the peer and are still exposed.
  // Each counts as often as it has parts. Above the limit, senders wait. The
  // peer has the same limit.
  uint64_t announcements = 64 * 1024;

  // Above these, the session ends: no honest peer gets there.
  //
  // Messages and metadata of streams that nobody has taken, at a server. An
  // honest client announces from 16 MiB on.
  uint64_t unread_bytes = 32 * 1024 * 1024;
  // Answers, where reading could not be stopped: on a fast path, as it brings
  // the acknowledgements that make room.
  uint64_t unsent_answers_bytes = 16 * 1024 * 1024;
};

// Counts what is held. A part that takes memory for the peer charges the
// budget, and returns the same amount later. Not thread-safe.
class Budget {
 public:
  enum class Kind { kReplies, kAnswers, kOutbox, kAnnounced, kUnread };

  explicit Budget(const BudgetLimits& limits) : limits_(limits) {}

  void Charge(Kind kind, uint64_t amount) { *Used(kind) += amount; }
  void Return(Kind kind, uint64_t amount) { *Used(kind) -= amount; }
  uint64_t used(Kind kind) const { return used_[static_cast<size_t>(kind)]; }

  // New streams may be given to the application.
  bool accepts_streams() const {
    return used(Kind::kReplies) <= limits_.replies_bytes;
  }
  // More may be read from the lifeline.
  bool reads() const { return used(Kind::kAnswers) <= limits_.answers_bytes; }
  // More may be sent.
  bool sends() const {
    return used(Kind::kOutbox) <= limits_.outbox_bytes &&
           used(Kind::kAnnounced) < limits_.announcements;
  }
  // Of the peer's announcements, those that have been neither read nor released
  // have `pending` parts.
  bool takes_announcement(size_t pending) const {
    return pending < limits_.announcements;
  }
  // RESOURCE_EXHAUSTED where only a peer that breaks the rules can get.
  absl::Status Check() const {
    return used(Kind::kUnread) <= limits_.unread_bytes &&
                   used(Kind::kAnswers) <= limits_.unsent_answers_bytes
               ? absl::OkStatus()
               : Exceeded();
  }

 private:
  static constexpr size_t kKinds = 5;

  uint64_t* Used(Kind kind) { return &used_[static_cast<size_t>(kind)]; }
  absl::Status Exceeded() const;

  const BudgetLimits limits_;
  uint64_t used_[kKinds] = {};
};

}  // namespace session
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_SESSION_BUDGET_H_
