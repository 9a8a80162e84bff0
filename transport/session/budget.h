// Limits the memory that a peer makes this process hold. Does no I/O.

#ifndef PENSTOCK_TRANSPORT_SESSION_BUDGET_H_
#define PENSTOCK_TRANSPORT_SESSION_BUDGET_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"

namespace penstock {
namespace session {

// Limits what one session holds for its peer. docs/security.md lists these
// limits and those enforced elsewhere.
struct BudgetLimits {
  // Limits that an honest peer may reach. Above these limits, the session waits
  // until the peer has taken data.
  //
  // Caps the exposed messages and the unsent data of ended streams. Above the
  // cap, new streams wait. Equals the default Config::read_budget of the peer.
  uint64_t replies_bytes = 64 * 1024 * 1024;
  // Caps the unsent frames that answer the peer's frames. Above the cap, the
  // session stops reading from the lifeline. The cap holds about 25,000 frames.
  uint64_t answers_bytes = 1024 * 1024;
  // Caps unsent frames of any kind. Above the cap, senders wait. Large enough
  // for the fastest path.
  uint64_t outbox_bytes = 4 * 1024 * 1024;
  // Caps announced messages that are still exposed, each counted once per part.
  // Above the cap, senders wait. Both sides have this limit, which therefore
  // also caps the peer's announcements.
  uint64_t announcements = 64 * 1024;

  // Limits that no honest peer reaches. Above these limits, the session ends.
  //
  // Caps a server's unread messages and metadata. An honest client stops
  // sending eagerly above 16 MiB, and announces messages instead.
  uint64_t unread_bytes = 32 * 1024 * 1024;
  // Caps unsent answers on a fast path. The session cannot stop reading from a
  // fast path, because its input includes the acknowledgements that make room.
  uint64_t unsent_answers_bytes = 16 * 1024 * 1024;
};

// Counts the bytes that a session holds for its peer. Code charges bytes to the
// budget when it begins to hold them, and refunds the charge when it releases
// them. Not thread-safe.
class Budget {
 public:
  enum class Kind { kReplies, kAnswers, kOutbox, kAnnounced, kUnread };

  explicit Budget(const BudgetLimits& limits) : limits_(limits) {}

  void Charge(Kind kind, uint64_t amount) { *Used(kind) += amount; }
  void Return(Kind kind, uint64_t amount) { *Used(kind) -= amount; }
  uint64_t used(Kind kind) const { return used_[static_cast<size_t>(kind)]; }

  // Returns true if new streams may be given to the application.
  bool accepts_streams() const {
    return used(Kind::kReplies) <= limits_.replies_bytes;
  }
  // Returns true if more may be read from the lifeline.
  bool reads() const { return used(Kind::kAnswers) <= limits_.answers_bytes; }
  // Returns true if more may be sent.
  bool sends() const {
    return used(Kind::kOutbox) <= limits_.outbox_bytes &&
           used(Kind::kAnnounced) < limits_.announcements;
  }
  // Returns true if the peer may announce another message. `pending` is the
  // number of announced parts that are neither read nor released.
  bool takes_announcement(size_t pending) const {
    return pending < limits_.announcements;
  }
  // Returns RESOURCE_EXHAUSTED above a limit that no honest peer reaches.
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
