#include "tensor_service/destination.h"

#include "absl/strings/str_cat.h"
#include "tensor_service/device_memory.h"
#include "tensor_service/text.h"

namespace penstock::tensor {

DestinationSet::DestinationSet(absl::Span<Destination> destinations) {
  for (Destination& destination : destinations) {
    destination.landed = false;
    destination.used = Add(&destination);
  }
}

// Returns the initial `used`: the reason why no tensor has been placed.
absl::Status DestinationSet::Add(Destination* destination) {
  const auto why = [destination](absl::string_view text) {
    return absl::StrCat("destination ", Quoted(destination->name), ": ", text);
  };
  const Tensor& into = destination->into;
  if (into.byte_size() > 0 && !into.buffer()->writable()) {
    return absl::FailedPreconditionError(why("its memory is read-only"));
  }
  if (!into.device().is_host()) {
    absl::Status status = NeedDeviceMemory(why("copy")).status();
    if (!status.ok()) return status;
  }
  const Place place = PlaceOf(into);
  if (const Destination* other = Overlapping(place, into.byte_size())) {
    return absl::FailedPreconditionError(why(absl::StrCat(
        "a part of its memory is that of destination ", Quoted(other->name))));
  }
  if (into.byte_size() > 0) by_place_.emplace(place, destination);
  if (!by_name_.emplace(destination->name, destination).second) {
    return absl::FailedPreconditionError(why("there are two of that name"));
  }
  return absl::NotFoundError(why("no tensor of that name came"));
}

DestinationSet::Place DestinationSet::PlaceOf(const Tensor& tensor) {
  if (tensor.device().is_host()) {
    return {Device(), reinterpret_cast<uintptr_t>(tensor.bytes().data())};
  }
  return {tensor.device(), tensor.buffer()->device_address()};
}

const Destination* DestinationSet::Overlapping(const char* data,
                                               size_t size) const {
  return Overlapping({Device(), reinterpret_cast<uintptr_t>(data)}, size);
}

const Destination* DestinationSet::Overlapping(const Place& place,
                                               size_t size) const {
  if (size == 0) return nullptr;
  // Finds the last destination that begins before the end of the range.
  auto it = by_place_.lower_bound({place.first, place.second + size});
  if (it == by_place_.begin()) return nullptr;
  --it;
  const bool is_before =
      it->first.first != place.first ||
      it->first.second + it->second->into.byte_size() <= place.second;
  return is_before ? nullptr : it->second;
}

Destination* DestinationSet::Find(absl::string_view name, DType dtype,
                                  absl::Span<const int64_t> shape) {
  const auto found = by_name_.find(name);
  if (found == by_name_.end() || found->second->used.ok()) return nullptr;
  Destination* const destination = found->second;
  const Tensor& into = destination->into;
  if (into.dtype() == dtype && into.shape() == shape) return destination;
  destination->used = absl::InvalidArgumentError(absl::StrCat(
      "destination ", Quoted(destination->name), " is ", into.ToString(),
      ", and the tensor that came is ", Describe(dtype, shape)));
  return nullptr;
}

}  // namespace penstock::tensor
