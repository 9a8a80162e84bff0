// Destinations that one call after another receives into.

#ifndef PENSTOCK_TENSOR_SERVICE_PREPARED_DESTINATIONS_H_
#define PENSTOCK_TENSOR_SERVICE_PREPARED_DESTINATIONS_H_

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "grpcpp/support/byte_buffer.h"
#include "tensor_service/destination.h"
#include "tensor_service/device_tensors.h"
#include "tensor_service/direct_receive.h"

namespace penstock::tensor {

// Destinations, made known to the transport once: where it can receive into
// them, their memory stays registered for as long as this lives, and a call
// that is given them registers nothing. For calls one after another; only one
// at a time may have them. Holds the tensors.
class PreparedDestinations {
 public:
  // `device_tensors` is for what has no destination.
  explicit PreparedDestinations(
      std::vector<Destination> destinations,
      DeviceTensors device_tensors = DeviceTensors::kToHost);
  PreparedDestinations(const PreparedDestinations&) = delete;
  PreparedDestinations& operator=(const PreparedDestinations&) = delete;

  // In the order given. `used` and `landed` of each are those of the last call;
  // nothing else of them may be changed, but for `into` on a device, which may
  // be the same memory with another ready(): Buffer::After().
  absl::Span<Destination> destinations() {
    return absl::MakeSpan(destinations_);
  }

 private:
  friend class TensorClient;
  friend class RendezvousClient;

  std::vector<Destination> destinations_;
  const DeviceTensors device_tensors_;
  const std::shared_ptr<PostedRanges> posted_;
};

// Posts the destinations that can be used, and whether the answer may lie on a
// device: by kKeep, if this process has DeviceMemory. Returns null if there are
// none and it may not, or if there is no receiver.
std::shared_ptr<PostedRanges> Post(
    absl::Span<const Destination> destinations, bool often,
    DeviceTensors device_tensors = DeviceTensors::kToHost);
// The memory of those that can be used.
std::vector<ReceiveRange> RangesOf(absl::Span<const Destination> destinations);

// Returns the first destination that a transport may not write to yet, as its
// ready() has not come, or null. Does not wait. Returns the errors of
// DeviceMemory.
absl::StatusOr<const Destination*> FindUnready(
    absl::Span<const Destination> destinations);

// Says of all of them that they were not used, and why.
void Refuse(const absl::Status& why, absl::Span<Destination> destinations);

}  // namespace penstock::tensor

#endif  // PENSTOCK_TENSOR_SERVICE_PREPARED_DESTINATIONS_H_
