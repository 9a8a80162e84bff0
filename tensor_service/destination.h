// Memory of the caller for tensors that a call receives.

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

// The memory for one received tensor, and the result of receiving.
//
// The memory belongs to `into`. The caller has another handle of `into`, or has
// wrapped the memory (Buffer::Wrap()). A call writes to the memory regardless
// of other handles, all of which show the received tensor. Nobody may use the
// memory until the call has returned. Afterwards, the contents are undefined
// unless the call succeeded and `used` is OK.
//
// The memory may be on a device. Then the tensor is copied there with all other
// tensors of the message, before the call returns. The copy begins after the
// buffer's ready(), so that device work which still uses the old contents ends
// first (device_stream.h). If the copy fails, the call fails with the device's
// status.
//
// A transport may receive directly into the memory (direct_receive.h). A call
// that fails waits up to ten seconds until the transport has released the
// memory, and keeps the memory alive until then. A transport does not wait for
// device events. Therefore such a call starts only after the ready() events of
// all its destinations; its timeout and interruption cover this wait.
struct Destination {
  Destination(std::string name_of, Tensor memory)
      : name(std::move(name_of)), into(std::move(memory)) {}

  std::string name;
  // The memory. Must be writable, and have the expected type and shape.
  Tensor into;
  // OK if the received tensor is in `into`. Otherwise the received tensor, if
  // any, is elsewhere, and `used` is
  //
  // - NOT_FOUND if no tensor with the name arrived;
  // - INVALID_ARGUMENT if the tensor has another type or shape;
  // - FAILED_PRECONDITION if `into` is read-only, if `into` is on a device and
  //   the process has no DeviceMemory, or if another destination has the same
  //   name or overlapping memory;
  // - UNAVAILABLE if an earlier attempt at the call may still write to `into`.
  absl::Status used = absl::NotFoundError("no tensor was received yet");
  // True if the transport received the tensor in `into` without a copy. If
  // false and `used` is OK, the tensor was copied to `into` once; twice only if
  // tensors of one size arrived in another order than their destinations.
  bool landed = false;
};

// The destinations of a message that is being read. Not thread-safe.
class DestinationSet {
 public:
  // Makes a set, and sets the `used` of each destination. The destinations must
  // outlive this object.
  explicit DestinationSet(absl::Span<Destination> destinations);

  bool empty() const { return by_name_.empty(); }

  // Returns the destination of a tensor with this name, type and shape, or
  // null. Sets the destination's `used` to the reason if the type or shape does
  // not match. Returns null once a tensor with the name has been placed: a name
  // may come twice.
  Destination* Find(absl::string_view name, DType dtype,
                    absl::Span<const int64_t> shape);

  // Returns a destination on the host that overlaps [data, data + size), or
  // null. Considers every destination into which a transport may receive,
  // because a transport does not know the names of tensors.
  const Destination* Overlapping(const char* data, size_t size) const;

  // Returns true if some of the tensor's memory, on the host or on a device,
  // belongs to a destination.
  bool IsOverlapped(const Tensor& tensor) const {
    return Overlapping(PlaceOf(tensor), tensor.byte_size()) != nullptr;
  }

 private:
  // The beginning of a memory range: an address on the host or on a device.
  using Place = std::pair<Device, uintptr_t>;

  absl::Status Add(Destination* destination);
  const Destination* Overlapping(const Place& place, size_t size) const;
  static Place PlaceOf(const Tensor& tensor);

  absl::flat_hash_map<absl::string_view, Destination*> by_name_;
  // The destinations that are not empty, by the beginning of their memory. They
  // do not overlap.
  std::map<Place, const Destination*> by_place_;
};

}  // namespace penstock::tensor

#endif  // PENSTOCK_TENSOR_SERVICE_DESTINATION_H_
