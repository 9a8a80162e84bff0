#include "collectives/net/patience.h"

#include <algorithm>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "collectives/fault.h"
#include "collectives/interruption.h"
#include "collectives/net/message.h"
#include "transport/base/steady_time.h"

namespace penstock::collectives {
namespace {

// Limits the sleep between two checks of the clock.
constexpr absl::Duration kNap = absl::Milliseconds(20);
// The time after which a waiting rank tells the peer which operation it has
// called. Longer than the usual wait for a peer that is a little slower.
constexpr absl::Duration kUntilNotice = absl::Milliseconds(50);

}  // namespace

absl::Status Patience::Await(int peer, uint32_t seen) {
  const bool has_left =
      ledger_->HasLeft(peer, number_ > 0 ? number_ : Ledger::kAnyOperation);
  return AwaitUnless(has_left, peer, seen, "call the operation");
}

absl::Status Patience::AwaitAnswers(int peer, uint32_t seen) {
  return AwaitUnless(ledger_->IsGone(peer), peer, seen,
                     "receive what was sent");
}

absl::Status Patience::AwaitEndOfPart(int peer, uint32_t seen) {
  return AwaitUnless(/*is_absent=*/false, peer, seen, "finish a part");
}

absl::Status Patience::AwaitUnless(bool is_absent, int peer, uint32_t seen,
                                   absl::string_view missing) {
  // Returns OK if there was an event: it may be the event that the caller waits
  // for, even if the peer has left since.
  absl::Status status = ledger_->status();
  if (!status.ok() || ledger_->signal().count() != seen) return status;
  if (is_absent) return ledger_->End(Fault::kLeft, peer, "");
  if (IsWaitInterrupted()) {
    return ledger_->End(Fault::kAborted, ledger_->rank(), "");
  }
  const absl::Time now = base::SteadyNow();
  if (peer != peer_ || missing != missing_) Restart();
  peer_ = peer;
  missing_ = missing;
  if (begun_ == absl::InfiniteFuture()) {
    begun_ = now;
    has_noticed_ = false;
  }
  const absl::Duration waited = now - begun_;
  if (waited >= timeout_) {
    return ledger_->End(
        Fault::kLate, peer,
        absl::StrCat("rank ", peer, " did not ", missing, " within ",
                     absl::FormatDuration(timeout_)));
  }
  if (number_ > 0 && waited >= kUntilNotice && !has_noticed_) {
    has_noticed_ = true;
    Message notice;
    notice.kind = Message::Kind::kNotice;
    notice.from = static_cast<uint32_t>(ledger_->rank());
    notice.key.number = number_;
    notice.words = words_;
    tell_(peer, notice);
  }
  ledger_->signal().Await(seen, std::min(kNap, timeout_ - waited));
  return absl::OkStatus();
}

}  // namespace penstock::collectives
