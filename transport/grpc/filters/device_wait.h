// Waits for device memory without blocking a thread.

#ifndef PENSTOCK_TRANSPORT_GRPC_FILTERS_DEVICE_WAIT_H_
#define PENSTOCK_TRANSPORT_GRPC_FILTERS_DEVICE_WAIT_H_

#include <atomic>
#include <memory>
#include <vector>

#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "src/core/lib/iomgr/closure.h"
#include "src/core/lib/slice/slice_buffer.h"
#include "transport/grpc/internal/grpc_abi.h"

namespace penstock {
namespace core {

// A wait for one message. Thread-safe.
class DeviceWait : public std::enable_shared_from_this<DeviceWait> {
 public:
  // Schedules `then` once, on a thread of gRPC's executor. Passes one of these
  // results:
  //  - OK when all device slices of `message` may be read;
  //  - the device's error if a slice will never be readable
  //    (memory::PollDevice());
  //  - CANCELLED soon after Abandon().
  //
  // Keeps gRPC initialized while the result lives. Returns null and does
  // nothing if no thread can be started to poll.
  static std::shared_ptr<DeviceWait> Start(
      const grpc_core::SliceBuffer& message, grpc_closure* then);

  explicit DeviceWait(grpc_closure* then);
  ~DeviceWait();

  // Ends the wait soon. `then` runs with CANCELLED, unless the wait is over
  // already.
  void Abandon() { is_abandoned_.store(true, std::memory_order_relaxed); }

 private:
  // Polls the devices once. Returns true if the wait is over, after scheduling
  // `then`.
  bool Ask();
  void Finish(const grpc_error_handle& error);

  grpc_closure* const then_;
  std::vector<absl::Span<const uint8_t>> slices_;
  std::atomic<bool> is_abandoned_{false};
};

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_FILTERS_DEVICE_WAIT_H_
