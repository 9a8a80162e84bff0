#include "transport/session/exposures.h"

#include <utility>

namespace penstock {
namespace session {
namespace {

constexpr uint32_t kLifeline = 0;

wire::AnnouncedRegion ToAnnounced(uint32_t path,
                                  const fabric::RemoteRegion& region) {
  wire::AnnouncedRegion announced;
  announced.path = path;
  for (const fabric::RemotePart& part : region) {
    announced.parts.push_back({part.key, part.offset, part.length});
  }
  return announced;
}

}  // namespace

wire::Announce Exposures::Add(uint32_t stream, const memory::Payload& message,
                              fabric::Endpoint* fast_path, uint32_t epoch,
                              bool may_push) {
  wire::Announce announce;
  announce.id = next_id_++;
  announce.length = message.size();
  Exposed exposed;
  exposed.stream = stream;
  exposed.length = message.size();
  memory::Payload stable = message;
  if (fast_path != nullptr) {
    absl::StatusOr<fabric::Exposure> fast =
        fast_path->Expose(message, wire::MaxParts(version_, message.size()));
    if (fast.ok()) {
      exposed.fast_path = fast_path;
      exposed.fast = fast->region;
      stable = std::move(fast->stable);
      announce.regions.push_back(ToAnnounced(epoch, exposed.fast));
    }
  }
  if (exposed.fast.empty() && !stable.on_host()) {
    // Copies the message to the host, because the lifeline cannot send from a
    // device. If the copy fails, exposes nothing; the caller then copies the
    // message itself, and gets the error.
    absl::StatusOr<memory::Payload> staged = memory::ToHost(stable);
    if (!staged.ok()) return announce;
    stable = *std::move(staged);
  }
  const bool pushes = may_push && exposed.fast.empty();
  absl::StatusOr<fabric::Exposure> slow =
      pushes ? lifeline_->ExposeToPush(stable) : lifeline_->Expose(stable, 1);
  if (slow.ok()) {
    exposed.is_pushed = pushes;
    exposed.lifeline = slow->region;
    announce.regions.push_back(ToAnnounced(kLifeline, exposed.lifeline));
  }
  if (announce.regions.empty()) return announce;
  exposed.parts = announce.max_parts();
  budget_->Charge(Budget::Kind::kAnnounced, exposed.parts);
  exposed_[announce.id] = std::move(exposed);
  return announce;
}

absl::optional<Exposures::Exposed> Exposures::Release(uint64_t id) {
  auto it = exposed_.find(id);
  if (it == exposed_.end()) return absl::nullopt;
  Exposed exposed = std::move(it->second);
  exposed_.erase(it);
  budget_->Return(Budget::Kind::kAnnounced, exposed.parts);
  if (exposed.fast_path != nullptr) exposed.fast_path->Withdraw(exposed.fast);
  if (!exposed.lifeline.empty()) lifeline_->Withdraw(exposed.lifeline);
  return exposed;
}

void Exposures::LoseFastPath() {
  for (auto& entry : exposed_) entry.second.fast_path = nullptr;
}

}  // namespace session
}  // namespace penstock
