// Waits for the bytes of devices without a thread that is blocked.

#ifndef PENSTOCK_TRANSPORT_GRPC_DEVICE_WAIT_H_
#define PENSTOCK_TRANSPORT_GRPC_DEVICE_WAIT_H_

#include <atomic>
#include <memory>
#include <vector>

#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "src/core/lib/iomgr/closure.h"
#include "src/core/lib/slice/slice_buffer.h"
#include "transport/grpc/grpc_abi.h"

namespace penstock {
namespace core {

// One message's wait. Thread-safe.
class DeviceWait : public std::enable_shared_from_this<DeviceWait> {
 public:
  // Runs `then` once, on a thread of gRPC's executor, when all slices of
  // `message` may be read, or one never may be (memory::PollDevice()), of which
  // it gets the error, or soon after Abandon(). gRPC stays initialized until
  // it has returned. Returns null, and does nothing, if there is no thread
  // that could ask.
  static std::shared_ptr<DeviceWait> Start(
      const grpc_core::SliceBuffer& message, grpc_closure* then);

  explicit DeviceWait(grpc_closure* then);
  ~DeviceWait();

  // Nobody cares any more.
  void Abandon() { is_abandoned_.store(true, std::memory_order_relaxed); }

 private:
  // Returns true when it has.
  bool Ask();
  void Finish(const grpc_error_handle& error);

  grpc_closure* const then_;
  std::vector<absl::Span<const uint8_t>> slices_;
  std::atomic<bool> is_abandoned_{false};
};

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_DEVICE_WAIT_H_
