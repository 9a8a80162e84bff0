#include "tensor_service/destination.h"

#include "absl/strings/str_cat.h"
#include "tensor_service/text.h"

namespace penstock::tensor {

DestinationSet::DestinationSet(absl::Span<Destination> destinations) {
  for (Destination& destination : destinations) {
    destination.landed = false;
    destination.used = Add(&destination);
  }
}

// Returns why it is not used, as things stand.
absl::Status DestinationSet::Add(Destination* destination) {
  const auto why = [destination](absl::string_view text) {
    return absl::StrCat("destination ", Quoted(destination->name), ": ", text);
  };
  const Tensor& into = destination->into;
  const char* const data = into.bytes().data();
  if (into.byte_size() > 0 && !into.buffer()->writable()) {
    return absl::FailedPreconditionError(why("its memory is read-only"));
  }
  if (const Destination* other = Overlapping(data, into.byte_size())) {
    return absl::FailedPreconditionError(why(absl::StrCat(
        "a part of its memory is that of destination ", Quoted(other->name))));
  }
  if (into.byte_size() > 0) by_place_.emplace(data, destination);
  if (!by_name_.emplace(destination->name, destination).second) {
    return absl::FailedPreconditionError(why("there are two of that name"));
  }
  return absl::NotFoundError(why("no tensor of that name came"));
}

const Destination* DestinationSet::Overlapping(const char* data,
                                               size_t size) const {
  if (size == 0) return nullptr;
  // The last one that begins before the end.
  auto it = by_place_.lower_bound(data + size);
  if (it == by_place_.begin()) return nullptr;
  --it;
  const std::less_equal<const char*> at_most;
  return at_most(it->first + it->second->into.byte_size(), data) ? nullptr
                                                                 : it->second;
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
