// Memory of the caller's for tensors that are yet to be received.

#ifndef PENSTOCK_TENSOR_SERVICE_DESTINATION_H_
#define PENSTOCK_TENSOR_SERVICE_DESTINATION_H_

#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "tensor_service/dtype.h"
#include "tensor_service/tensor.h"

namespace penstock::tensor {

// Where one received tensor is to go, and whether it went there.
//
// The memory is that of `into`, of which the caller keeps a handle, or which he
// has wrapped (Buffer::Wrap). It is written to without regard to other handles:
// all of them see what was received. So nobody may use it until the call that
// was given the destination has returned. Its contents are undefined then,
// unless that call succeeded and `used` is OK.
struct Destination {
  Destination(std::string name_of, Tensor memory)
      : name(std::move(name_of)), into(std::move(memory)) {}

  std::string name;
  // Writable, and of the type and shape that is expected.
  Tensor into;
  // OK if the tensor lies there now. Else says why it does not, and the tensor
  // that was received lies elsewhere: NOT_FOUND if none of that name came;
  // INVALID_ARGUMENT if it is of another type or shape; FAILED_PRECONDITION if
  // `into` is read-only, or another destination has the same name.
  absl::Status used = absl::NotFoundError("no tensor was received yet");
};

// The destinations of a message that is being read. Not thread-safe.
class DestinationSet {
 public:
  // The destinations must outlive this. Sets each one's `used`.
  explicit DestinationSet(absl::Span<Destination> destinations);

  bool empty() const { return by_name_.empty(); }

  // Returns the destination that a tensor so described has, or null, and says
  // there why. It is null, too, once a tensor of that name has been placed: a
  // name may come twice.
  Destination* Find(absl::string_view name, DType dtype,
                    absl::Span<const int64_t> shape);

 private:
  absl::flat_hash_map<absl::string_view, Destination*> by_name_;
};

}  // namespace penstock::tensor

#endif  // PENSTOCK_TENSOR_SERVICE_DESTINATION_H_
