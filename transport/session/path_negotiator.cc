#include "transport/session/path_negotiator.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "transport/base/printable.h"

namespace penstock {
namespace session {
namespace {

// Limits the peer's text, in bytes. Penstock's own reasons have up to about 300
// bytes, including the remedy.
constexpr size_t kMaxReasonBytes = 512;
constexpr size_t kMaxReasonsBytes = 1536;

}  // namespace

void PathNegotiator::OnPeerOffers(std::vector<wire::FabricOffer> peer) {
  peer_ = std::move(peer);
  JudgeOffers();
}

void PathNegotiator::Restart() {
  next_ = 0;
  current_.clear();
  failed_waits_.clear();
  reason_.clear();
  cause_ = metrics::Reason::kNone;
  JudgeOffers();
}

void PathNegotiator::JudgeOffers() {
  for (const wire::FabricOffer& mine : mine_) {
    const wire::FabricOffer* theirs = PeerOffer(mine.fabric);
    if (!mine.usable) {
      AddReason(metrics::Reason::kUnusableHere, mine.fabric, mine.data);
    } else if (theirs == nullptr) {
      AddReason(metrics::Reason::kNotOffered, mine.fabric,
                "the peer does not offer it");
    } else if (!theirs->usable) {
      AddReason(metrics::Reason::kUnusableAtPeer, mine.fabric,
                absl::StrCat("at the peer: ", theirs->data));
    }
  }
  if (mine_.empty()) {
    reason_ = "no other fabric is enabled here";
    cause_ = metrics::Reason::kNotEnabled;
  }
}

const wire::FabricOffer* PathNegotiator::PeerOffer(
    const std::string& fabric) const {
  for (const wire::FabricOffer& offer : peer_) {
    if (offer.fabric == fabric) return &offer;
  }
  return nullptr;
}

absl::optional<wire::FabricOffer> PathNegotiator::Next() {
  while (next_ < mine_.size()) {
    const wire::FabricOffer& mine = mine_[next_++];
    if (!IsCommon(mine)) continue;
    current_ = mine.fabric;
    return *PeerOffer(mine.fabric);
  }
  return absl::nullopt;
}

void PathNegotiator::OnFailure(metrics::Reason cause,
                               const std::string& reason) {
  AddReason(cause, current_, reason);
}

void PathNegotiator::OnWaitFailed(const std::string& fabric,
                                  const std::string& reason) {
  if (!failed_waits_.insert(fabric).second) return;
  AddReason(metrics::Reason::kSetupFailed, fabric, reason);
}

bool PathNegotiator::IsCommon(const wire::FabricOffer& mine) const {
  const wire::FabricOffer* const theirs = PeerOffer(mine.fabric);
  return mine.usable && theirs != nullptr && theirs->usable;
}

bool PathNegotiator::HasCommonFabric() const {
  return std::any_of(
      mine_.begin(), mine_.end(),
      [this](const wire::FabricOffer& mine) { return IsCommon(mine); });
}

bool PathNegotiator::MayStillCome() const {
  return std::any_of(
      mine_.begin(), mine_.end(), [this](const wire::FabricOffer& mine) {
        return IsCommon(mine) && failed_waits_.count(mine.fabric) == 0;
      });
}

std::string PathNegotiator::Reason() const { return reason_; }

void PathNegotiator::AddReason(metrics::Reason cause, const std::string& fabric,
                               const std::string& text) {
  // Leaves the cause kLost unchanged. After a loss the peer reports the loss,
  // too, and its report must not replace the cause.
  if (cause_ != metrics::Reason::kLost) cause_ = cause;
  absl::StrAppend(&reason_, reason_.empty() ? "" : "; ",
                  fabric.empty() ? "" : absl::StrCat(fabric, ": "),
                  base::Printable(text, kMaxReasonBytes));
  if (reason_.size() > kMaxReasonsBytes) {
    reason_ = base::Printable(reason_, kMaxReasonsBytes);
  }
}

}  // namespace session
}  // namespace penstock
