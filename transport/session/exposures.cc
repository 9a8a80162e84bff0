#include "transport/session/exposures.h"

#include <utility>

namespace penstock {
namespace session {

wire::Announce Exposures::Add(uint32_t stream, const memory::Payload& message,
                              fabric::Endpoint* fast_path, uint32_t epoch,
                              bool push) {
  wire::Announce announce;
  announce.id = next_id_++;
  announce.length = message.size();
  Exposed exposed;
  exposed.stream = stream;
  exposed.length = message.size();
  memory::Payload stable = message;
  if (fast_path != nullptr) {
    absl::StatusOr<fabric::Exposure> fast = fast_path->Expose(message);
    if (fast.ok()) {
      exposed.fast_path = fast_path;
      exposed.fast = fast->region;
      stable = std::move(fast->stable);
      announce.regions.push_back(
          {epoch, exposed.fast.key, exposed.fast.offset});
    }
  }
  absl::StatusOr<fabric::Exposure> slow =
      push ? lifeline_->ExposeToPush(stable) : lifeline_->Expose(stable);
  if (slow.ok()) {
    exposed.lifeline = slow->region;
    announce.regions.push_back({0, slow->region.key, slow->region.offset});
  }
  if (announce.regions.empty()) return announce;
  exposed_[announce.id] = exposed;
  budget_->Charge(Budget::Kind::kAnnounced, 1);
  return announce;
}

absl::optional<Exposures::Exposed> Exposures::Release(uint64_t id) {
  auto it = exposed_.find(id);
  if (it == exposed_.end()) return absl::nullopt;
  const Exposed exposed = it->second;
  exposed_.erase(it);
  budget_->Return(Budget::Kind::kAnnounced, 1);
  if (exposed.fast_path != nullptr) exposed.fast_path->Withdraw(exposed.fast);
  lifeline_->Withdraw(exposed.lifeline);
  return exposed;
}

void Exposures::LoseFastPath() {
  for (auto& entry : exposed_) entry.second.fast_path = nullptr;
}

}  // namespace session
}  // namespace penstock
