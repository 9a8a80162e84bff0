// A simulated process with devices. A test may have several.

#ifndef PENSTOCK_TESTS_TRANSPORT_DEVICE_FAKE_PROCESS_H_
#define PENSTOCK_TESTS_TRANSPORT_DEVICE_FAKE_PROCESS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/transport/device/fake_driver.h"
#include "transport/device/devices.h"
#include "transport/device/handles.h"
#include "transport/device/process_devices.h"

namespace penstock {
namespace device {

// Fails the test if resources remain at destruction, or if the driver was
// misused.
class FakeProcess {
 public:
  explicit FakeProcess(size_t max_open = ProcessDevices::kMaxOpen)
      : devices_(std::make_unique<Devices>(&driver_, uint64_t{1} << 26)),
        access_(std::make_unique<ProcessDevices>(devices_.get(), max_open)) {}
  FakeProcess(const FakeProcess&) = delete;
  FakeProcess& operator=(const FakeProcess&) = delete;
  ~FakeProcess() {
    access_.reset();
    blocks_.clear();
    devices_.reset();
    EXPECT_EQ(driver_.Remains(), "");
    EXPECT_THAT(driver_.violations(), testing::IsEmpty());
  }

  FakeDriver* driver() { return &driver_; }
  Devices* devices() { return devices_.get(); }
  ProcessDevices* access() { return access_.get(); }

  // Copies the bytes to device memory, and returns their address. Free() or the
  // destructor frees the memory.
  absl::Span<const uint8_t> OnDevice(const std::string& bytes, int device = 0) {
    const auto open = devices_->At(device);
    EXPECT_TRUE(open.ok()) << open.status();
    auto block = AllocateOnDevice((*open)->device.get(), bytes.size());
    EXPECT_TRUE(block.ok()) << block.status();
    blocks_.push_back(*std::move(block));
    driver_.Write(blocks_.back().get(), bytes);
    // NOLINTNEXTLINE(performance-no-int-to-ptr): it is one
    return {reinterpret_cast<const uint8_t*>(blocks_.back().get()),
            bytes.size()};
  }
  // Frees the last allocation.
  void Free() { blocks_.pop_back(); }

  std::string Read(const uint8_t* data, size_t size) const {
    return driver_.Read(reinterpret_cast<abi::Address>(data), size);
  }

  // Runs `use` repeatedly. Each run makes another driver call fail with
  // `result`, until each call has failed once. Calls `check` for each error of
  // `use`. Returns the number of failed calls, and of errors of `use`.
  struct Failures {
    int calls = 0;
    int errors = 0;
  };
  template <typename Use, typename Check>
  Failures FailEach(abi::Result result, Use use, Check check) {
    Failures failures;
    for (int n = 0;; ++n) {
      const int before = driver_.calls();
      driver_.FailAfter(n, result);
      const absl::Status status = use();
      const bool failed = driver_.calls() > before + n;
      driver_.FailNoMore();
      if (!failed) {
        EXPECT_TRUE(status.ok()) << status;
        return failures;
      }
      ++failures.calls;
      if (status.ok()) continue;
      ++failures.errors;
      check(status);
    }
  }

 private:
  FakeDriver driver_;
  std::unique_ptr<Devices> devices_;
  std::unique_ptr<ProcessDevices> access_;
  std::vector<DeviceBlock> blocks_;
};

}  // namespace device
}  // namespace penstock

#endif  // PENSTOCK_TESTS_TRANSPORT_DEVICE_FAKE_PROCESS_H_
