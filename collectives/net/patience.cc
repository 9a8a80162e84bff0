#include "collectives/net/patience.h"

#include <algorithm>
#include <cstdint>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "collectives/fault.h"
#include "collectives/net/message.h"
#include "transport/base/steady_time.h"

namespace penstock::collectives {
namespace {

// The longest sleep between two looks at the clock.
constexpr absl::Duration kNap = absl::Milliseconds(20);
// A wait for a peer that is merely slower is shorter.
constexpr absl::Duration kUntilNotice = absl::Milliseconds(50);
// A rank that has left sends no more letters, whatever its last operation was.
constexpr uint64_t kAnyNumber = std::numeric_limits<uint64_t>::max();

}  // namespace

absl::Status Patience::Await(int peer, uint32_t seen) {
  // An event after the first `seen` ones may be what the caller waits for.
  if (ledger_->signal().count() != seen) return ledger_->status();
  const absl::Status present =
      ledger_->CheckPresent(peer, number_ > 0 ? number_ : kAnyNumber);
  if (!present.ok()) return present;
  const absl::Time now = base::SteadyNow();
  if (begun_ == absl::InfiniteFuture()) {
    begun_ = now;
    has_noticed_ = false;
  }
  const absl::Duration waited = now - begun_;
  if (waited >= timeout_) {
    return ledger_->End(
        Fault::kLate, peer,
        absl::StrCat("rank ", peer, " did not call the operation within ",
                     absl::FormatDuration(timeout_)));
  }
  if (number_ > 0 && waited >= kUntilNotice && !has_noticed_) {
    has_noticed_ = true;
    Message notice;
    notice.kind = Message::Kind::kNotice;
    notice.from = static_cast<uint32_t>(ledger_->rank());
    notice.key.number = number_;
    notice.words = words_;
    links_->Send(peer, notice);
  }
  ledger_->signal().Await(seen, std::min(kNap, timeout_ - waited));
  return absl::OkStatus();
}

}  // namespace penstock::collectives
