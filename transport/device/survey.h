// Lists the GPUs of this machine without opening any.

#ifndef PENSTOCK_TRANSPORT_DEVICE_SURVEY_H_
#define PENSTOCK_TRANSPORT_DEVICE_SURVEY_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "transport/device/api.h"

namespace penstock {
namespace device {

// The properties of a device.
struct Traits {
  std::string name;         // "NVIDIA H100 80GB HBM3"
  std::string uuid;         // "GPU-1b8fc7f7-...", as nvidia-smi -L has it
  std::string pci_address;  // "0000:0f:00.0"
  int copy_engines = 0;
  int multiprocessors = 0;
  // True if RDMA devices can read the device's memory: by dma-bufs, or by the
  // module nvidia_peermem.
  bool has_dma_buf = false;
  bool has_gpu_direct = false;
  // True if the device's own work sees RDMA writes, at least after a call of
  // the driver.
  bool sees_remote_writes = false;
  bool flushes_remote_writes = false;
};

// Returns "GPU-1b8fc7f7-...".
std::string UuidText(const abi::Uuid& uuid);

// Queries the device with this number among the devices that the process sees.
// Creates no context. Returns NOT_FOUND if there is no such device. Returns
// FAILED_PRECONDITION for a device without unified addressing, which all
// current devices have. Sets `id`.
absl::StatusOr<Traits> AskTraits(Api* api, int ordinal, abi::DeviceId* id);

struct Survey {
  int version = 0;  // of the driver's interface: 12040 is 12.4
  std::vector<Traits> devices;
};

// Queries all devices. Returns errors as OpenLibrary() and AskTraits() do.
absl::StatusOr<Survey> LookAtDevices();
absl::StatusOr<Survey> LookAtDevices(Api* api);

}  // namespace device
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_DEVICE_SURVEY_H_
