// Two processes hold device memory of each other, and one of them dies.

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "tests/transport/fabric/shm/shm_test_util.h"
#include "tests/transport/memory/fake_device_access.h"
#include "transport/fabric/shm/fabric.h"
#include "transport/fabric/shm/region_key.h"

// ThreadSanitizer calls this function. By default it kills a forked child that
// makes threads.
extern "C" const char* __tsan_default_options() { return "die_after_fork=0"; }

namespace penstock {
namespace fabric {
namespace shm {
namespace {

constexpr size_t kMiB = 1 << 20;

bool SendPart(Endpoint* from, const RemoteRegion& region) {
  const auto* bytes = reinterpret_cast<const char*>(&region[0]);
  return Send(from, absl::string_view(bytes, sizeof region[0]));
}
RemotePart PartIn(const std::string& packet) {
  RemotePart part;
  EXPECT_EQ(packet.size(), sizeof part);
  if (packet.size() == sizeof part) memcpy(&part, packet.data(), sizeof part);
  return part;
}

// The child connects, and answers each region that it receives with a region of
// its own. The child holds both.
[[noreturn]] void RunPeer(const std::string& offer, const std::string& token) {
  memory::FakeDeviceAccess devices;
  Options options;
  options.devices = &devices;
  ShmFabric fabric(options);
  Outcome outcome;
  auto connect = fabric.Connect(offer, token, outcome.callback());
  auto connected = outcome.Take();
  if (!connected.ok()) _exit(2);
  std::unique_ptr<Endpoint> endpoint = *std::move(connected);
  Recorder events;
  endpoint->Start(&events);
  memory::Payload held;
  events.on_packet = [&] {
    auto bytes = endpoint->Load({PartIn(events.packets.back())});
    if (!bytes.ok() || bytes->pieces()[0].device != &devices) _exit(3);
    const std::string content = devices.Get(bytes->pieces()[0].span());
    if (content != std::string(kMiB, 'p')) _exit(4);
    held = *std::move(bytes);
    const memory::Payload payload(devices.Put(std::string(kMiB, 'c')));
    auto exposure = endpoint->Expose(payload, 1);
    if (!exposure.ok()) _exit(5);
    if (!SendPart(endpoint.get(), exposure->region)) _exit(6);
  };
  (void)WaitUntil([&] {
    endpoint->Poll();
    return !events.broken.empty();
  });
  if (events.broken.empty()) _exit(7);
  held = memory::Payload();
  endpoint.reset();
  if (!WaitUntil([&] { return devices.open_now() == 0; })) _exit(8);
  _exit(0);
}

class ShmDeviceDeath : public ::testing::Test {
 protected:
  void SetUp() override {
    Options options;
    options.devices = &devices_;
    fabric_ = absl::make_unique<ShmFabric>(options);
    const std::string offer = fabric_->Offer().value();
    const std::string token = NewTestToken();
    Outcome outcome;
    auto listen = fabric_->Listen(token, outcome.callback());
    child_ = fork();
    ASSERT_GE(child_, 0);
    if (child_ == 0) RunPeer(offer, token);
    auto endpoint = outcome.Take();
    ASSERT_TRUE(endpoint.ok()) << endpoint.status();
    endpoint_ = *std::move(endpoint);
    endpoint_->Start(&events_);
    EXPECT_TRUE(endpoint_->TakesDeviceMemory());
    Exchange();
  }
  void TearDown() override {
    if (child_ > 0) Kill();
  }
  // Afterwards, each side holds 1 MiB of the other's memory.
  void Exchange() {
    memory::Bytes piece = devices_.Put(std::string(kMiB, 'p'));
    lent_ = piece.owner;
    const auto exposure =
        endpoint_->Expose(memory::Payload(std::move(piece)), 1);
    ASSERT_TRUE(exposure.ok()) << exposure.status();
    ASSERT_TRUE(IsDeviceId(SegmentOfKey(exposure->region[0].key)));
    ASSERT_TRUE(SendPart(endpoint_.get(), exposure->region));
    ASSERT_TRUE(WaitUntil([this] {
      endpoint_->Poll();
      return !events_.packets.empty();
    }));
    const RemotePart part = PartIn(events_.packets[0]);
    ASSERT_TRUE(IsDeviceId(SegmentOfKey(part.key)));
    auto bytes = endpoint_->Load({part});
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    held_ = *std::move(bytes);
    ASSERT_EQ(held_.pieces()[0].device, &devices_);
    EXPECT_EQ(devices_.Get(held_.pieces()[0].span()), std::string(kMiB, 'c'));
    EXPECT_EQ(devices_.copies(), 0);
  }
  void Kill() {
    kill(child_, SIGKILL);
    (void)WaitForChild();
  }
  int WaitForChild() {
    int status = -1;
    EXPECT_EQ(waitpid(child_, &status, 0), child_);
    child_ = 0;
    return status;
  }

  memory::FakeDeviceAccess devices_;
  std::unique_ptr<ShmFabric> fabric_;
  pid_t child_ = 0;
  Recorder events_;
  std::unique_ptr<Endpoint> endpoint_;
  std::weak_ptr<const void> lent_;
  memory::Payload held_;
};

TEST_F(ShmDeviceDeath, OfThePeerEndsItsLoansAndClosesWhatItLent) {
  EXPECT_FALSE(lent_.expired());
  Kill();
  ASSERT_TRUE(WaitUntil([this] {
    endpoint_->Poll();
    return !events_.broken.empty();
  }));
  EXPECT_TRUE(WaitUntil([this] { return lent_.expired(); }));
  EXPECT_FALSE(endpoint_->TakesDeviceMemory());
  // Memory that is held stays valid.
  EXPECT_EQ(devices_.Get(held_.pieces()[0].span()), std::string(kMiB, 'c'));
  endpoint_.reset();
  EXPECT_EQ(devices_.open_now(), 1);
  held_ = memory::Payload();
  EXPECT_TRUE(WaitUntil([this] { return devices_.open_now() == 0; }));
}

TEST_F(ShmDeviceDeath, AfterOurEndIsGoneLoansComeBackToo) {
  kill(child_, SIGSTOP);
  held_ = memory::Payload();
  endpoint_.reset();
  EXPECT_TRUE(WaitUntil([this] { return devices_.open_now() == 0; }));
  EXPECT_FALSE(lent_.expired());
  Kill();
  EXPECT_TRUE(WaitUntil([this] { return lent_.expired(); }));
}

TEST_F(ShmDeviceDeath, PeerClosesAllWhenOurEndIsGone) {
  endpoint_.reset();
  EXPECT_EQ(WaitForChild(), 0);
  EXPECT_TRUE(WaitUntil([this] { return lent_.expired(); }));
}

TEST_F(ShmDeviceDeath, ForkedCopyTouchesNothing) {
  const pid_t copy = fork();
  ASSERT_GE(copy, 0);
  if (copy == 0) {
    held_ = memory::Payload();
    endpoint_.reset();
    fabric_.reset();
    _exit(devices_.open_now() == 1 ? 0 : 1);  // the child calls no driver
  }
  int status = 0;
  ASSERT_EQ(waitpid(copy, &status, 0), copy);
  EXPECT_EQ(status, 0);
  endpoint_->Poll();
  EXPECT_TRUE(events_.broken.empty());
  EXPECT_FALSE(lent_.expired());
  events_.packets.clear();
  Exchange();
}

}  // namespace
}  // namespace shm
}  // namespace fabric
}  // namespace penstock
