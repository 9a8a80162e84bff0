#include "tensor_service/rendezvous_key.h"

#include <tuple>

#include "absl/strings/str_cat.h"
#include "tensor_service/codec.h"

namespace penstock::tensor {
namespace {

auto Parts(const RendezvousKey& key) {
  return std::tie(key.step, key.name, key.source, key.destination);
}

}  // namespace

absl::Status RendezvousKey::Check() const {
  if (name_bytes() > kMaxNameBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "key of step ", step, ": its names have ", name_bytes(),
        " bytes together, at most ", kMaxNameBytes, " are allowed"));
  }
  if (name.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("key of step ", step, ": the tensor's name is empty"));
  }
  if (!IsUtf8(name) || !IsUtf8(source) || !IsUtf8(destination)) {
    return absl::InvalidArgumentError(
        absl::StrCat("key of step ", step, ": a name is not UTF-8"));
  }
  return absl::OkStatus();
}

size_t RendezvousKey::name_bytes() const {
  return name.size() + source.size() + destination.size();
}

std::string RendezvousKey::ToString() const {
  return absl::StrCat("step ", step, " tensor ", name,
                      source.empty() ? "" : " from ", source,
                      destination.empty() ? "" : " to ", destination);
}

bool operator<(const RendezvousKey& a, const RendezvousKey& b) {
  return Parts(a) < Parts(b);
}

bool operator==(const RendezvousKey& a, const RendezvousKey& b) {
  return Parts(a) == Parts(b);
}

}  // namespace penstock::tensor
