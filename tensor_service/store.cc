#include "tensor_service/store.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace penstock::tensor {

namespace {

size_t HeldBy(const std::string& name, const Tensor& tensor) {
  return TensorStore::kEntryBytes + name.size() + tensor.held_bytes();
}

}  // namespace

absl::StatusOr<size_t> TensorStore::Put(const Bundle& bundle,
                                        Bundle* replaced) {
  Tensors fresh;
  for (const NamedTensor& named : bundle.tensors) {
    if (named.name.empty()) {
      return absl::InvalidArgumentError("put: a tensor has no name");
    }
    absl::StatusOr<Tensor> kept = named.tensor.Compact();
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
  if (bytes > budget_bytes_) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "put of ", bundle.byte_size(), " bytes: the store would hold ", bytes,
        ", its budget is ", budget_bytes_, "; delete tensors or raise it"));
  }
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
      return absl::NotFoundError(absl::StrCat("get: no tensor ", name));
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

}  // namespace penstock::tensor
