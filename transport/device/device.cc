#include "transport/device/device.h"

#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "transport/device/status.h"

namespace penstock {
namespace device {

absl::StatusOr<std::unique_ptr<Device>> Device::Open(Api* api, int ordinal) {
  auto device = absl::WrapUnique(new Device(api, ordinal));
  const RelaxedCapture capture(api);
  absl::StatusOr<Traits> traits = AskTraits(api, ordinal, &device->id_);
  if (!traits.ok()) return traits.status();
  device->traits_ = *std::move(traits);
  absl::Status opened =
      device->Check(api->DevicePrimaryCtxRetain(&device->context_, device->id_),
                    "make a context");
  if (!opened.ok()) return opened;
  return device;
}

Device::~Device() {
  if (context_ == nullptr) return;
  const RelaxedCapture capture(api_);
  (void)api_->DevicePrimaryCtxRelease(id_);
}

std::string Device::ToString() const { return absl::StrCat("cuda:", ordinal_); }

absl::StatusOr<Device::Entered> Device::Enter() {
  {
    base::MutexLock lock(&mu_);
    if (!lost_.ok()) return lost_;
  }
  RelaxedCapture capture(api_);
  absl::Status entered =
      Check(api_->CtxPushCurrent(context_), "enter a context");
  if (!entered.ok()) return entered;
  return Entered(this, std::move(capture));
}

absl::Status Device::CheckNotCaptured(abi::Stream stream) {
  int status = abi::kCaptureStatusNone;
  const abi::Result asked = api_->StreamIsCapturing(stream, &status);
  return Check(asked == abi::kSuccess && status != abi::kCaptureStatusNone
                   ? abi::kStreamCaptureUnsupported
                   : asked,
               "use a stream");
}

bool Device::is_lost() const {
  base::MutexLock lock(&mu_);
  return !lost_.ok();
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
