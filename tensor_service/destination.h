// Memory of the caller's for tensors that are yet to be received.

#ifndef PENSTOCK_TENSOR_SERVICE_DESTINATION_H_
#define PENSTOCK_TENSOR_SERVICE_DESTINATION_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "tensor_service/device.h"
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
//
// It may lie on a device. Then the tensor is copied there, from the host or
// from where it lies on a device of the peer's, with all others of the message,
// before the call returns, and after ready() of its buffer, if that has one:
// after the work that still uses what was there before, see device_stream.h. If
// that copy fails, so does the call, with the device's status.
//
// A transport may receive into that memory (direct_receive.h). A call that
// fails waits until it has let go, for ten seconds at most; the memory is held
// for as long as that takes. As a transport knows no events, such a call begins
// only when those of all its destinations have come, and its timeout and
// interruption hold for that wait as well.
struct Destination {
  Destination(std::string name_of, Tensor memory)
      : name(std::move(name_of)), into(std::move(memory)) {}

  std::string name;
  // Writable, and of the type and shape that is expected.
  Tensor into;
  // OK if the tensor lies there now. Else says why it does not, and the tensor
  // that was received lies elsewhere: NOT_FOUND if none of that name came;
  // INVALID_ARGUMENT if it is of another type or shape; FAILED_PRECONDITION if
  // `into` is read-only, or on a device while this process has named nothing
  // that copies there, or another destination has the same name or a part of
  // its memory; UNAVAILABLE if an earlier attempt at the call may yet write
  // there.
  absl::Status used = absl::NotFoundError("no tensor was received yet");
  // Whether the transport has received the tensor there, with no copy. Else, if
  // `used` is OK, it was copied there once, or by chance twice, where tensors
  // of one size came in another order than their destinations.
  bool landed = false;
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

  // Returns a destination on the host of which some memory is in [data, data +
  // size), or null. Of all that a transport may receive into, for it knows no
  // names.
  const Destination* Overlapping(const char* data, size_t size) const;

  // Returns whether some of the tensor's memory, on the host or a device, is
  // that of a destination.
  bool IsOverlapped(const Tensor& tensor) const {
    return Overlapping(PlaceOf(tensor), tensor.byte_size()) != nullptr;
  }

 private:
  // Where something begins: on the host its address, and else a device's.
  using Place = std::pair<Device, uintptr_t>;

  absl::Status Add(Destination* destination);
  const Destination* Overlapping(const Place& place, size_t size) const;
  static Place PlaceOf(const Tensor& tensor);

  absl::flat_hash_map<absl::string_view, Destination*> by_name_;
  // Of those that are not empty, by where they begin. They do not overlap.
  std::map<Place, const Destination*> by_place_;
};

}  // namespace penstock::tensor

#endif  // PENSTOCK_TENSOR_SERVICE_DESTINATION_H_
