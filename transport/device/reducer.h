// Starts the kernels of transport/device/kernels on a device.

#ifndef PENSTOCK_TRANSPORT_DEVICE_REDUCER_H_
#define PENSTOCK_TRANSPORT_DEVICE_REDUCER_H_

#include <map>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "transport/base/mutex.h"
#include "transport/device/device.h"
#include "transport/device/handles.h"
#include "transport/device/kernels/reduction.h"

namespace penstock {
namespace device {

// Holds the loaded kernels of one device. Thread-safe.
class Reducer {
 public:
  // Makes a reducer; `device` must outlive it. Returns UNIMPLEMENTED if the
  // library was built without CUDA's compiler, or for other devices. The caller
  // then reduces on the host (kernels/reduce_on_host.h).
  static absl::StatusOr<std::unique_ptr<Reducer>> Create(Device* device);
  Reducer(const Reducer&) = delete;
  Reducer& operator=(const Reducer&) = delete;

  // Queues the reduction in `stream`, and does not wait. The arrays are on the
  // device, and must stay valid until the reduction has run. Returns
  // INVALID_ARGUMENT as kernels::Check() does.
  absl::Status Queue(const kernels::Reduction& reduction, abi::Stream stream);

 private:
  Reducer(Device* device, Module module)
      : device_(device), module_(std::move(module)) {}
  absl::StatusOr<abi::Function> FunctionOf(const char* name);

  Device* const device_;
  const Module module_;
  base::Mutex mu_;
  std::map<std::string, abi::Function> functions_ ABSL_GUARDED_BY(mu_);
};

}  // namespace device
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_DEVICE_REDUCER_H_
