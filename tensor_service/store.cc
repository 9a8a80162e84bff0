#include "tensor_service/store.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "tensor_service/device_tensors.h"
#include "tensor_service/text.h"

namespace penstock::tensor {

namespace {

size_t HeldBy(const std::string& name, const Tensor& tensor) {
  return TensorStore::kEntryBytes + name.size() + tensor.held_bytes();
}

size_t BytesOnDevices(const Bundle& bundle) {
  size_t bytes = 0;
  for (const NamedTensor& named : bundle.tensors) {
    if (!named.tensor.device().is_host()) bytes += named.tensor.byte_size();
  }
  return bytes;
}

}  // namespace

absl::StatusOr<size_t> TensorStore::Put(const Bundle& bundle,
                                        Bundle* replaced) {
  // Else what can have no room would take the devices' memory for a while.
  const size_t on_devices = BytesOnDevices(bundle);
  if (on_devices > budget_bytes_) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "put of ", on_devices, " bytes on devices: the store's budget is ",
        budget_bytes_, "; raise it"));
  }
  absl::StatusOr<Bundle> own = OwnOnDevices(bundle);
  if (!own.ok()) return own.status();
  return PutOwn(*own, replaced, /*reserved=*/nullptr);
}

absl::StatusOr<size_t> TensorStore::PutOwn(const Bundle& bundle,
                                           Bundle* replaced,
                                           StoreReservation* reserved) {
  Tensors fresh;
  for (const NamedTensor& named : bundle.tensors) {
    if (named.name.empty()) {
      return absl::InvalidArgumentError("put: a tensor has no name");
    }
    absl::StatusOr<Tensor> kept =
        named.tensor.device().is_host() ? named.tensor.Compact() : named.tensor;
    if (!kept.ok()) return kept.status();
    fresh[named.name] = *std::move(kept);
  }
  absl::MutexLock lock(&mu_);
  size_t bytes = bytes_;
  for (const auto& entry : fresh) {
    auto old = tensors_.find(entry.first);
    if (old != tensors_.end()) bytes -= HeldBy(old->first, old->second);
    bytes += HeldBy(entry.first, entry.second);
  }
  const size_t of_others =
      reserved_ - (reserved == nullptr ? 0 : reserved->bytes_);
  if (bytes + of_others > budget_bytes_) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "put of ", bundle.byte_size(), " bytes: the store would hold ",
        bytes + of_others, ", its budget is ", budget_bytes_,
        "; delete tensors or raise it"));
  }
  reserved_ = of_others;
  if (reserved != nullptr) reserved->bytes_ = 0;
  for (auto& entry : fresh) {
    auto slot = tensors_.find(entry.first);
    if (slot == tensors_.end()) {
      tensors_.insert(std::move(entry));
      continue;
    }
    std::swap(slot->second, entry.second);
    if (replaced != nullptr) {
      replaced->tensors.push_back({entry.first, entry.second});
    }
  }
  bytes_ = bytes;
  return bytes;
}

absl::StatusOr<Bundle> TensorStore::Get(
    absl::Span<const std::string> names) const {
  Bundle bundle;
  absl::MutexLock lock(&mu_);
  for (const std::string& name : names) {
    auto found = tensors_.find(name);
    if (found == tensors_.end()) {
      return absl::NotFoundError(absl::StrCat("get: no tensor ", Quoted(name)));
    }
    bundle.tensors.push_back({name, found->second});
  }
  return bundle;
}

size_t TensorStore::Delete(absl::Span<const std::string> names) {
  size_t deleted = 0;
  absl::MutexLock lock(&mu_);
  for (const std::string& name : names) {
    auto found = tensors_.find(name);
    if (found == tensors_.end()) continue;
    bytes_ -= HeldBy(found->first, found->second);
    tensors_.erase(found);
    ++deleted;
  }
  return deleted;
}

Bundle TensorStore::All() const {
  Bundle bundle;
  absl::MutexLock lock(&mu_);
  for (const auto& entry : tensors_) {
    bundle.tensors.push_back({entry.first, entry.second});
  }
  return bundle;
}

StoreReservation::~StoreReservation() {
  absl::MutexLock lock(&store_->mu_);
  store_->reserved_ -= bytes_;
}

absl::Status StoreReservation::Add(const std::string& name, size_t held_bytes) {
  const size_t bytes = TensorStore::kEntryBytes + name.size() + held_bytes;
  absl::MutexLock lock(&store_->mu_);
  const size_t taken = store_->bytes_ + store_->reserved_;
  if (bytes < held_bytes || bytes > store_->budget_bytes_ - taken) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "put of a tensor of ", held_bytes,
        " bytes: the store holds and awaits ", taken, ", its budget is ",
        store_->budget_bytes_, "; delete tensors or raise it"));
  }
  store_->reserved_ += bytes;
  bytes_ += bytes;
  return absl::OkStatus();
}

}  // namespace penstock::tensor
