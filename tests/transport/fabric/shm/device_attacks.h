// Claims about device memory that a hostile peer may send.

#ifndef PENSTOCK_TESTS_TRANSPORT_FABRIC_SHM_DEVICE_ATTACKS_H_
#define PENSTOCK_TESTS_TRANSPORT_FABRIC_SHM_DEVICE_ATTACKS_H_

#include <sys/socket.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "tests/transport/fabric/shm/device_pair.h"
#include "tests/transport/fabric/shm/shm_test_util.h"
#include "tests/transport/memory/fake_device_access.h"
#include "transport/fabric/shm/control.h"
#include "transport/fabric/shm/fabric.h"
#include "transport/fabric/shm/region_key.h"
#include "transport/fabric/shm/setup_message.h"
#include "transport/memory/bytes.h"

namespace penstock {
namespace fabric {
namespace shm {

using Kind = SetupMessage::Kind;
constexpr uint32_t kId = kDeviceBit | 5;

inline SetupMessage About(Kind kind, uint32_t id, uint64_t size = 0,
                          std::string handle = "") {
  SetupMessage message;
  message.kind = kind;
  message.segment_id = id;
  message.size = size;
  message.handle = std::move(handle);
  return message;
}

// A fixture in which the test is the peer that attacks `ours_`.
class ShmDeviceAttacks : public ::testing::Test {
 protected:
  void SetUp() override {
    memory_ = theirs_.Put(std::string(kMiB, 'x'));
    const auto shared = theirs_.Share(memory_.span());
    ASSERT_TRUE(shared.ok()) << shared.status();
    handle_ = shared->handle;
    Connect(kOpensDevices);
    fds_ = CountFds();
  }
  void Connect(uint32_t features, bool has_devices = true) {
    pair_.reset();
    Options options;
    if (has_devices) options.devices = &ours_;
    fabric_ = absl::make_unique<ShmFabric>(options);
    pair_ = MakeRawPair(fabric_.get(), features);
    ASSERT_NE(pair_, nullptr);
  }
  void Say(const SetupMessage& message, int fd = -1) {
    const absl::Status sent = SendSetup(pair_->socket.get(), message, fd);
    EXPECT_TRUE(sent.ok()) << sent;
  }
  void SayBytes(const std::string& bytes) {
    EXPECT_EQ(send(pair_->socket.get(), bytes.data(), bytes.size(), 0),
              static_cast<ssize_t>(bytes.size()));
  }
  void Lend(uint32_t id) { Say(About(Kind::kDevice, id, kMiB, handle_)); }
  absl::Status Load(uint32_t id, uint64_t offset = 0, uint64_t length = kMiB) {
    return pair_->end.endpoint->Load({{RegionKey(id, 1), offset, length}})
        .status();
  }
  // Lends memory after the invalid claim, and expects a refusal with the reason
  // `why`. Expects that the end of the connection closes everything. Connects
  // again.
  void ExpectRefused(const std::string& why) {
    Lend(kDeviceBit | 1000);
    const absl::Status refused = Load(kDeviceBit | 1000);
    EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
    EXPECT_TRUE(absl::StrContains(refused.message(), why)) << refused;
    EXPECT_LE(ours_.open_now(), 1);
    pair_.reset();
    EXPECT_TRUE(WaitUntil([this] { return ours_.open_now() == 0; }));
    EXPECT_TRUE(WaitUntil([this] { return CountFds() < fds_; }));
    Connect(kOpensDevices);
  }
  // Ends the first loan of memory to the test.
  void GiveBack(const RemoteRegion& region) {
    ControlPage* const page = PageOf(*pair_->control);
    page->releases[0] = LoanOfKey(region[0].key);
    page->release_head = 1;
  }
  // Returns the number of received messages of this kind.
  int CountAnswers(Kind kind) {
    int count = 0;
    for (;;) {
      const auto received = ReceiveSetup(pair_->socket.get());
      if (!received.ok()) return count;
      count += received->message.kind == kind;
    }
  }

  size_t fds_ = 0;
  memory::FakeDeviceAccess theirs_;
  memory::FakeDeviceAccess ours_;
  memory::Bytes memory_;
  std::string handle_;
  std::unique_ptr<ShmFabric> fabric_;
  std::unique_ptr<RawPair> pair_;
};

}  // namespace shm
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TESTS_TRANSPORT_FABRIC_SHM_DEVICE_ATTACKS_H_
