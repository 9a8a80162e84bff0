#include "tensor_service/codec/landed.h"

namespace penstock::tensor {

absl::Status Landed::Start() {
  if (destinations_->empty()) return absl::OkStatus();
  for (size_t i = 0; i < in_->slices(); ++i) {
    if (!in_->device(i).is_host()) continue;  // DeviceCopies handles devices
    const absl::string_view slice = in_->slice(i);
    const Destination* const found =
        destinations_->Overlapping(slice.data(), slice.size());
    if (found == nullptr) continue;
    const bool has_the_place = slice.data() == found->into.bytes().data() &&
                               slice.size() == found->into.byte_size();
    if (has_the_place && slices_.emplace(found, i).second) continue;
    absl::Status status = in_->MoveAway(i);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status Landed::MoveAway(const Destination& destination) {
  const auto found = slices_.find(&destination);
  if (found == slices_.end()) return absl::OkStatus();
  return in_->MoveAway(found->second);
}

}  // namespace penstock::tensor
