#include "tensor_service/destination.h"

#include "absl/strings/str_cat.h"
#include "tensor_service/text.h"

namespace penstock::tensor {

DestinationSet::DestinationSet(absl::Span<Destination> destinations) {
  for (Destination& destination : destinations) {
    const Tensor& into = destination.into;
    if (into.byte_size() > 0 && !into.buffer()->writable()) {
      destination.used = absl::FailedPreconditionError(
          absl::StrCat("destination ", Quoted(destination.name),
                       ": its memory is read-only"));
    } else if (!by_name_.emplace(destination.name, &destination).second) {
      destination.used = absl::FailedPreconditionError(
          absl::StrCat("destination ", Quoted(destination.name),
                       ": there are two of that name"));
    } else {
      destination.used = absl::NotFoundError(
          absl::StrCat("destination ", Quoted(destination.name),
                       ": no tensor of that name came"));
    }
  }
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
