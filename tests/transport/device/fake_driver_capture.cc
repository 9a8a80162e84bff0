// The simulated driver's captures of a program's streams into graphs.

#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/transport/device/fake_driver.h"

namespace penstock {
namespace device {
namespace {

int& ModeOfThread() {
  thread_local int mode = 0;  // CUDA's global mode
  return mode;
}

// Returns true if another thread may make this call during a capture. CUDA does
// not say which other calls are safe. Allocating, freeing, querying an event,
// and every wait are not safe.
bool IsSafe(const std::string& name) {
  static const auto* const safe = new std::set<std::string>{
      "DriverGetVersion",   "DeviceGetCount",
      "DeviceGet",          "DeviceGetName",
      "DeviceGetUuid",      "DeviceGetAttribute",
      "StreamIsCapturing",  "CtxPushCurrent",
      "CtxPopCurrent",      "ThreadExchangeStreamCaptureMode",
      "PointerGetAttribute"};
  return safe->count(name) > 0;
}

}  // namespace

void FakeDriver::BeginCapture(abi::Stream stream) {
  std::lock_guard<std::recursive_mutex> lock(mu_);
  captured_.insert(stream);
}

void FakeDriver::EndCapture(abi::Stream stream) {
  std::lock_guard<std::recursive_mutex> lock(mu_);
  captured_.erase(stream);
}

abi::Result FakeDriver::CheckCaptures(const char* name) {
  if (captured_.empty() || ModeOfThread() == abi::kCaptureModeRelaxed ||
      IsSafe(name)) {
    return abi::kSuccess;
  }
  violations_.push_back(absl::StrCat(name, " while a graph is captured"));
  return abi::kStreamCaptureUnsupported;
}

void FakeDriver::CheckNotCaptured(const char* name, abi::Stream stream) {
  if (captured_.count(stream) == 0) return;
  violations_.push_back(absl::StrCat(name, " in a stream that is captured"));
}

abi::Result FakeDriver::StreamIsCapturing(abi::Stream stream, int* status) {
  std::lock_guard<std::recursive_mutex> lock(mu_);
  const abi::Result begun = Begin("StreamIsCapturing");
  if (begun != abi::kSuccess) return begun;
  *status = static_cast<int>(captured_.count(stream));
  return abi::kSuccess;
}

abi::Result FakeDriver::ThreadExchangeStreamCaptureMode(int* mode) {
  std::lock_guard<std::recursive_mutex> lock(mu_);
  (void)Begin("ThreadExchangeStreamCaptureMode", true);
  std::swap(ModeOfThread(), *mode);
  return abi::kSuccess;
}

}  // namespace device
}  // namespace penstock
