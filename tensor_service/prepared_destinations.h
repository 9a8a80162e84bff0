// Destinations for many consecutive calls.

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

// Destinations that are posted to the transport once. If the transport can
// receive into them, their memory stays registered while this object lives, so
// that individual calls need not register it. One call at a time may use this
// object. Holds the tensors.
class PreparedDestinations {
 public:
  // Makes the destinations. `device_tensors` applies to tensors without a
  // destination.
  explicit PreparedDestinations(
      std::vector<Destination> destinations,
      DeviceTensors device_tensors = DeviceTensors::kToHost);
  PreparedDestinations(const PreparedDestinations&) = delete;
  PreparedDestinations& operator=(const PreparedDestinations&) = delete;

  // Returns the destinations in the given order. `used` and `landed` have the
  // results of the last call. Change nothing else, with one exception: `into`
  // on a device may be replaced by the same memory with another ready(), by
  // Buffer::After().
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

// Posts the usable destinations. Lets the answer be on a device with kKeep, if
// this process has DeviceMemory. Returns null if there is no receiver, or if
// nothing needs to be posted.
std::shared_ptr<PostedRanges> Post(
    absl::Span<const Destination> destinations, bool often,
    DeviceTensors device_tensors = DeviceTensors::kToHost);
// Returns the memory of the usable destinations.
std::vector<ReceiveRange> RangesOf(absl::Span<const Destination> destinations);

// Returns the first destination whose ready() event has not completed, or null.
// A transport must not write to such a destination yet. Does not block. Returns
// the errors of DeviceMemory.
absl::StatusOr<const Destination*> FindUnready(
    absl::Span<const Destination> destinations);

// Sets `used` of all destinations to `why`.
void Refuse(const absl::Status& why, absl::Span<Destination> destinations);

}  // namespace penstock::tensor

#endif  // PENSTOCK_TENSOR_SERVICE_PREPARED_DESTINATIONS_H_
