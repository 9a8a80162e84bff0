// One CUDA device of this process.

#ifndef PENSTOCK_TRANSPORT_DEVICE_DEVICE_H_
#define PENSTOCK_TRANSPORT_DEVICE_DEVICE_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "transport/base/mutex.h"
#include "transport/device/api.h"
#include "transport/device/relaxed_capture.h"
#include "transport/device/survey.h"

namespace penstock {
namespace device {

// Holds the device's primary context. CUDA's runtime and the frameworks use the
// same context, so that their memory and streams are valid here. Must outlive
// everything that is created on it. Thread-safe.
class Device {
 public:
  // Opens device number `ordinal` of the devices that the process sees. Returns
  // the errors of AskTraits().
  static absl::StatusOr<std::unique_ptr<Device>> Open(Api* api, int ordinal);
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  ~Device();

  Api* api() const { return api_; }
  int ordinal() const { return ordinal_; }
  abi::DeviceId id() const { return id_; }
  const Traits& traits() const { return traits_; }
  abi::Context context() const { return context_; }
  // Returns the name of the device: "cuda:0".
  std::string ToString() const;

  // Makes the device's context current on this thread, while the object lives.
  // Calls of this thread do not disturb graph captures of other threads.
  // Destroy the object on the same thread.
  class Entered {
   public:
    Entered(Device* device, RelaxedCapture capture)
        : capture_(std::move(capture)), device_(device) {}
    Entered(Entered&& other) noexcept
        : capture_(std::move(other.capture_)),
          device_(std::exchange(other.device_, nullptr)) {}
    Entered& operator=(Entered&&) = delete;
    ~Entered();

   private:
    RelaxedCapture capture_;
    Device* device_;
  };
  // Makes the context current on this thread. Returns the device's first sticky
  // error if there was one, because the device is then lost.
  absl::StatusOr<Entered> Enter();

  // Returns FAILED_PRECONDITION if `stream`, which belongs to the program, is
  // being captured into a graph. A captured stream must not be used for
  // synchronisation, because this would invalidate the capture. Requires an
  // Entered object.
  absl::Status CheckNotCaptured(abi::Stream stream);

  // Returns true if the device had a sticky error.
  bool is_lost() const;

  // Returns OK, or the error with the failed operation: "copy to the host on
  // cuda:0: ...". `operation` begins with a verb. Remembers a sticky error.
  absl::Status Check(abi::Result result, absl::string_view operation);

 private:
  Device(Api* api, int ordinal) : api_(api), ordinal_(ordinal) {}

  Api* const api_;
  const int ordinal_;
  abi::DeviceId id_ = 0;
  abi::Context context_ = nullptr;
  Traits traits_;

  mutable base::Mutex mu_;
  absl::Status lost_ ABSL_GUARDED_BY(mu_);
};

}  // namespace device
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_DEVICE_DEVICE_H_
