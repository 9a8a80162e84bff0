#include "transport/device/device.h"

#include "absl/memory/memory.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "transport/device/status.h"

namespace penstock {
namespace device {
namespace {

// As nvidia-smi -L writes it.
std::string UuidText(const abi::Uuid& uuid) {
  const std::string hex =
      absl::BytesToHexString({uuid.bytes, sizeof uuid.bytes});
  return absl::StrCat("GPU-", hex.substr(0, 8), "-", hex.substr(8, 4), "-",
                      hex.substr(12, 4), "-", hex.substr(16, 4), "-",
                      hex.substr(20));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Device>> Device::Open(Api* api, int ordinal) {
  auto device = absl::WrapUnique(new Device(api, ordinal));
  absl::Status opened =
      device->Check(api->DeviceGet(&device->id_, ordinal), "find the device");
  if (opened.ok()) opened = device->Look();
  if (opened.ok()) {
    opened = device->Check(
        api->DevicePrimaryCtxRetain(&device->context_, device->id_),
        "make a context");
  }
  if (!opened.ok()) return opened;
  return device;
}

Device::~Device() {
  if (context_ != nullptr) (void)api_->DevicePrimaryCtxRelease(id_);
}

absl::Status Device::Look() {
  char name[128] = "";
  abi::Uuid uuid = {};
  absl::Status looked = Check(api_->DeviceGetName(name, sizeof name - 1, id_),
                              "ask for the name");
  if (looked.ok()) {
    looked = Check(api_->DeviceGetUuid(&uuid, id_), "ask for the UUID");
  }
  if (!looked.ok()) return looked;
  int is_unified = 0;
  looked =
      Check(api_->DeviceGetAttribute(&is_unified, abi::kUnifiedAddressing, id_),
            "ask for unified addressing");
  if (!looked.ok()) return looked;
  if (is_unified == 0) {
    return absl::FailedPreconditionError(
        absl::StrCat(ToString(), " has no unified addressing"));
  }
  // An attribute that an older driver does not know is one that is not there.
  const auto attribute = [this](int number) {
    int value = 0;
    const abi::Result asked = api_->DeviceGetAttribute(&value, number, id_);
    return asked == abi::kSuccess ? value : 0;
  };
  traits_.name = name;
  traits_.uuid = UuidText(uuid);
  traits_.pci_address =
      absl::StrFormat("%04x:%02x:%02x.0", attribute(abi::kPciDomainId),
                      attribute(abi::kPciBusId), attribute(abi::kPciDeviceId));
  traits_.copy_engines = attribute(abi::kAsyncEngineCount);
  traits_.has_dma_buf = attribute(abi::kDmaBufSupported) != 0;
  traits_.has_gpu_direct = attribute(abi::kGpuDirectRdmaSupported) != 0;
  return absl::OkStatus();
}

std::string Device::ToString() const { return absl::StrCat("cuda:", ordinal_); }

absl::StatusOr<Device::Entered> Device::Enter() {
  {
    base::MutexLock lock(&mu_);
    if (!lost_.ok()) return lost_;
  }
  absl::Status entered =
      Check(api_->CtxPushCurrent(context_), "enter a context");
  if (!entered.ok()) return entered;
  return Entered(this);
}

Device::Entered::~Entered() {
  if (device_ == nullptr) return;
  abi::Context left = nullptr;
  (void)device_->api_->CtxPopCurrent(&left);
}

absl::Status Device::Check(abi::Result result, absl::string_view operation) {
  if (result == abi::kSuccess) return absl::OkStatus();
  absl::Status failed =
      CallFailed(api_, result, absl::StrCat(operation, " on ", ToString()));
  if (IsSticky(result)) {
    base::MutexLock lock(&mu_);
    if (lost_.ok()) lost_ = failed;
  }
  return failed;
}

}  // namespace device
}  // namespace penstock
