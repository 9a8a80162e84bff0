// Lets this library call the driver while the program captures a graph.

#ifndef PENSTOCK_TRANSPORT_DEVICE_RELAXED_CAPTURE_H_
#define PENSTOCK_TRANSPORT_DEVICE_RELAXED_CAPTURE_H_

#include <utility>

#include "transport/device/api.h"

namespace penstock {
namespace device {

// While the object lives, this thread may call CUDA even if another thread is
// capturing a stream into a graph. During a capture, CUDA refuses to allocate
// memory, and to free or query an event, on any thread; a refused call also
// invalidates the capture. The capture does not need Penstock's calls, which
// use only Penstock's own streams and events.
//
// Destroy the object on the thread that made it. Creation may fail in a forked
// child, because all other calls fail there, too.
class RelaxedCapture {
 public:
  explicit RelaxedCapture(Api* api) : mode_(abi::kCaptureModeRelaxed) {
    if (api->ThreadExchangeStreamCaptureMode(&mode_) == abi::kSuccess) {
      api_ = api;
    }
  }
  RelaxedCapture(RelaxedCapture&& other) noexcept
      : api_(std::exchange(other.api_, nullptr)), mode_(other.mode_) {}
  RelaxedCapture& operator=(RelaxedCapture&&) = delete;
  ~RelaxedCapture() {
    if (api_ != nullptr) (void)api_->ThreadExchangeStreamCaptureMode(&mode_);
  }

 private:
  Api* api_ = nullptr;
  int mode_;  // the thread's own
};

}  // namespace device
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_DEVICE_RELAXED_CAPTURE_H_
