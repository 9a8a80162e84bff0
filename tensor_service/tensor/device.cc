#include "tensor_service/device.h"

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace penstock::tensor {

std::string Device::ToString() const {
  return is_host() ? "cpu" : absl::StrCat("cuda:", index);
}

absl::StatusOr<Device> ParseDevice(absl::string_view text) {
  if (text == "cpu") return Device();
  if (text == "cuda") return Device{Device::Kind::kCuda, 0};
  absl::string_view number = text;
  Device device{Device::Kind::kCuda, 0};
  // Compares with ToString() to refuse signs and spaces in the number.
  if (absl::ConsumePrefix(&number, "cuda:") &&
      absl::SimpleAtoi(number, &device.index) && device.ToString() == text &&
      device.index >= 0) {
    return device;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "device \"", text, "\": give \"cpu\", or \"cuda:0\" and so on"));
}

}  // namespace penstock::tensor
