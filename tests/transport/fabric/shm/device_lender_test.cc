// Tests the messages of a lender of device memory to its peer, one by one.

#include "transport/fabric/shm/device_lender.h"

#include <sys/socket.h>

#include <cstdint>
#include <future>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tests/transport/fabric/shm/shm_test_util.h"
#include "tests/transport/memory/fake_device_access.h"
#include "transport/base/steady_time.h"
#include "transport/base/unique_fd.h"
#include "transport/fabric/shm/arena.h"
#include "transport/fabric/shm/control.h"
#include "transport/fabric/shm/lender.h"
#include "transport/fabric/shm/region_key.h"
#include "transport/fabric/shm/setup_message.h"

namespace penstock {
namespace fabric {
namespace shm {
namespace {

using Kind = SetupMessage::Kind;
constexpr size_t kBytes = memory::kMinDeviceBytes;
constexpr int kPatience = 3;

memory::SharedAllocation Named(uint64_t id, uint64_t size, uint64_t offset,
                               std::string handle) {
  memory::SharedAllocation shared;
  shared.id = id;
  shared.size = size;
  shared.offset = offset;
  shared.handle = std::move(handle);
  return shared;
}

// Devices that describe all of their memory as the test selects.
class LyingDevices : public memory::FakeDeviceAccess {
 public:
  absl::StatusOr<memory::SharedAllocation> Share(
      absl::Span<const uint8_t>) override {
    return shared;
  }
  memory::SharedAllocation shared = Named(1, kBytes, 0, "handle");
};

class DeviceLenderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC,
                         0, ends),
              0);
    socket_.Reset(ends[0]);
    peer_.Reset(ends[1]);
    Use(&devices_);
  }
  void Use(const memory::DeviceAccess* devices) {
    lender_ = std::make_unique<DeviceLender>(socket_.get(), devices);
  }
  // Waits until lent memory may be taken back to make room for other memory.
  static void AwaitKeepTime() { absl::SleepFor(kDeviceKeepTime); }
  memory::Bytes Put() { return devices_.Put(std::string(kBytes, 'x')); }
  absl::optional<SetupMessage> Receive() {
    auto received = ReceiveSetup(peer_.get());
    if (!received.ok()) return absl::nullopt;
    return std::move(received->message);
  }
  void ExpectTakenBack(uint32_t id) {
    const auto message = Receive();
    ASSERT_TRUE(message.has_value());
    EXPECT_EQ(message->kind, Kind::kTakeBack);
    EXPECT_EQ(message->segment_id, id);
  }
  void ExpectNotLent(const memory::Bytes& piece, const std::string& why) {
    EXPECT_FALSE(lender_->Lend(piece).has_value());
    EXPECT_FALSE(Receive().has_value());
    EXPECT_TRUE(absl::StrContains(lender_->Describe(), why))
        << lender_->Describe();
  }

  base::UniqueFd socket_;
  base::UniqueFd peer_;
  memory::FakeDeviceAccess devices_;
  std::unique_ptr<DeviceLender> lender_;
};

TEST_F(DeviceLenderTest, NamesEachAllocationOnce) {
  const memory::Bytes first = Put(), second = Put();
  const auto lent = lender_->Lend(first);
  ASSERT_TRUE(lent.has_value());
  const auto named = Receive();
  ASSERT_TRUE(named.has_value());
  EXPECT_EQ(named->kind, Kind::kDevice);
  EXPECT_EQ(named->segment_id, lent->segment_id);
  EXPECT_EQ(named->size, kBytes);
  EXPECT_EQ(named->handle, devices_.Share(first.span())->handle);
  EXPECT_EQ(lender_->Lend(first)->segment_id, lent->segment_id);
  EXPECT_FALSE(Receive().has_value());
  EXPECT_NE(lender_->Lend(second)->segment_id, lent->segment_id);
  EXPECT_EQ(lender_->count(), 2u);
}

TEST_F(DeviceLenderTest, TakesBackWhatIsIdle) {
  const memory::Bytes piece = Put();
  auto lent = lender_->Lend(piece);
  (void)Receive();
  const uint32_t id = lent->segment_id;
  const absl::Time now = base::SteadyNow();
  // Takes nothing back, because the memory is in use.
  lender_->TakeBackIdle(now + 2 * kDeviceIdleTime);
  lent.reset();
  lender_->TakeBackIdle(now + 3 * kDeviceIdleTime - absl::Milliseconds(1));
  EXPECT_FALSE(Receive().has_value());
  lender_->TakeBackIdle(now + 3 * kDeviceIdleTime);
  ExpectTakenBack(id);
  EXPECT_EQ(lender_->count(), 1u);
  EXPECT_TRUE(lender_->OnClosed(id).ok());
  EXPECT_EQ(lender_->count(), 0u);
  EXPECT_FALSE(lender_->OnClosed(id).ok());
  EXPECT_GT(lender_->Lend(piece)->segment_id, id) << "a new number";
}

TEST_F(DeviceLenderTest, TakesBackBeforeItNamesOneTooMany) {
  std::vector<memory::Bytes> pieces;
  for (size_t i = 0; i < kMaxPassedDevices; ++i) {
    pieces.push_back(Put());
    ASSERT_TRUE(lender_->Lend(pieces[i]).has_value());
    EXPECT_EQ(Receive()->kind, Kind::kDevice);
  }
  const uint32_t second = lender_->Lend(pieces[1])->segment_id;
  ASSERT_TRUE(lender_->Lend(pieces[0]).has_value());
  const auto lent = lender_->Lend(pieces[2]);
  for (size_t i = 3; i < kMaxPassedDevices; ++i) {
    ASSERT_TRUE(lender_->Lend(pieces[i]).has_value());
  }
  ExpectNotLent(Put(), "or did just now");
  AwaitKeepTime();
  const memory::Bytes one_more = Put();
  EXPECT_FALSE(lender_->Lend(one_more).has_value());
  ExpectTakenBack(second);
  ExpectNotLent(one_more, "the peer is still to close 1 allocations");
  EXPECT_TRUE(lender_->OnClosed(second).ok());
  EXPECT_TRUE(lender_->Lend(one_more).has_value());
  EXPECT_EQ(Receive()->kind, Kind::kDevice);
  EXPECT_EQ(lender_->count(), kMaxPassedDevices);
}

TEST_F(DeviceLenderTest, BytesAreBoundedToo) {
  LyingDevices devices;
  Use(&devices);
  const memory::Bytes piece = devices.Put(std::string(kBytes, 'x'));
  devices.shared.size = kMaxPassedDeviceBytes + 1;
  ExpectNotLent(piece, "too large");
  devices.shared.size = kMaxPassedDeviceBytes;
  auto lent = lender_->Lend(piece);
  ASSERT_TRUE(lent.has_value());
  (void)Receive();
  devices.shared = Named(2, kBytes, 0, "other");
  ExpectNotLent(piece, "the peer still reads 1 allocations");
  const uint32_t id = lent->segment_id;
  lent.reset();
  AwaitKeepTime();
  EXPECT_FALSE(lender_->Lend(piece).has_value());
  ExpectTakenBack(id);
  EXPECT_TRUE(lender_->OnClosed(id).ok());
  EXPECT_TRUE(lender_->Lend(piece).has_value());
}

TEST_F(DeviceLenderTest, NamesThatMakeNoSenseAreNotPassedOn) {
  LyingDevices devices;
  Use(&devices);
  const memory::Bytes piece = devices.Put(std::string(kBytes, 'x'));
  constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();
  for (const memory::SharedAllocation& lie :
       std::vector<memory::SharedAllocation>{
           Named(1, kBytes, 0, ""),
           Named(1, kBytes, 0,
                 std::string(memory::kMaxDeviceHandleBytes + 1, 'h')),
           Named(1, kBytes - 1, 0, "handle"), Named(1, kBytes, 1, "handle"),
           Named(1, kBytes, kMax, "handle"),
           Named(1, 2 * kBytes, kMax - 1, "handle")}) {
    devices.shared = lie;
    ExpectNotLent(piece, "invalid name");
  }
  devices.shared = Named(1, kBytes, 0, "handle");
  EXPECT_TRUE(lender_->Lend(piece).has_value());
  (void)Receive();
  devices.shared.size = 2 * kBytes;
  ExpectNotLent(piece, "same name");
}

TEST_F(DeviceLenderTest, AFullSocketMakesItCopyAndForgetsNothing) {
  std::vector<memory::Bytes> pieces;
  std::vector<uint32_t> ids;
  for (size_t i = 0; i < kMaxPassedDevices; ++i) {
    pieces.push_back(Put());
    ids.push_back(lender_->Lend(pieces[i])->segment_id);
    (void)Receive();
  }
  SetupMessage other;
  other.kind = Kind::kDeclined;
  other.segment_id = kDeviceBit;
  while (SendSetup(socket_.get(), other, -1).ok()) {
  }
  const memory::Bytes one_more = Put();
  AwaitKeepTime();
  EXPECT_FALSE(lender_->Lend(one_more).has_value());
  // The memory of one loan was taken back, and the peer does not know of this
  // yet.
  EXPECT_TRUE(absl::StrContains(lender_->Describe(), "still to close 1"));
  EXPECT_EQ(lender_->count(), kMaxPassedDevices);
  while (Receive().has_value()) {
  }
  EXPECT_FALSE(lender_->Lend(one_more).has_value());
  ExpectTakenBack(ids[0]);
  EXPECT_TRUE(lender_->OnClosed(ids[0]).ok());
  EXPECT_TRUE(lender_->Lend(one_more).has_value());
  EXPECT_EQ(Receive()->kind, Kind::kDevice);
}

TEST_F(DeviceLenderTest, LendsNothingOfWhatWasDeclinedUntilItIsTakenBack) {
  const memory::Bytes piece = Put();
  const uint32_t id = lender_->Lend(piece)->segment_id;
  (void)Receive();
  EXPECT_FALSE(lender_->Decline(id + 1).ok());
  for (int i = 0; i < 2 * kMaxDeclinedDevices; ++i) {
    EXPECT_TRUE(lender_->Decline(id).ok());
  }
  ExpectNotLent(piece, "the peer could not open it");
  // Expects that other allocations are still lent. Another allocation may be on
  // another device, which the peer can open.
  EXPECT_TRUE(lender_->Lend(Put()).has_value());
  (void)Receive();
  EXPECT_EQ(lender_->Describe(), "devices' memory in place");
  const memory::Bytes last = Put();
  EXPECT_TRUE(lender_->Lend(last).has_value());
  (void)Receive();
  // Expects that the memory is kept, because it is still in use.
  absl::SleepFor(absl::Milliseconds(2));
  const absl::Time now = base::SteadyNow();
  ExpectNotLent(piece, "the peer could not open it");
  lender_->TakeBackIdle(now + kDeviceIdleTime);
  while (const auto message = Receive()) EXPECT_NE(message->segment_id, id);
  lender_->TakeBackIdle(now + 2 * kDeviceIdleTime);
  ExpectTakenBack(id);
  EXPECT_TRUE(lender_->Lend(piece).has_value());
}

TEST_F(DeviceLenderTest, LendsNothingAfterManyRefusals) {
  std::vector<memory::Bytes> pieces;
  for (int i = 0; i < kMaxDeclinedDevices; ++i) {
    pieces.push_back(Put());
    const auto lent = lender_->Lend(pieces.back());
    ASSERT_TRUE(lent.has_value()) << i;
    (void)Receive();
    EXPECT_TRUE(lender_->Decline(lent->segment_id).ok());
  }
  EXPECT_FALSE(lender_->lends());
  ExpectNotLent(Put(), "the peer could not open it");
  lender_->StopUnheard();
  ExpectNotLent(Put(), "the peer could not open it");
  // Lets the peer close the memory later, as usual.
  lender_->TakeBackIdle(base::SteadyNow() + kDeviceIdleTime);
  int taken_back = 0;
  while (const auto message = Receive()) {
    taken_back += message->kind == Kind::kTakeBack;
  }
  EXPECT_EQ(taken_back, kMaxDeclinedDevices);
}

TEST_F(DeviceLenderTest, KeepsMemoryUntilThePeerHasClosedIt) {
  memory::Bytes piece = Put();
  auto lent = lender_->Lend(piece);
  (void)Receive();
  const uint32_t id = lent->segment_id;
  const absl::Time now = base::SteadyNow();
  piece = memory::Bytes();
  lender_->TakeBackIdle(now);
  EXPECT_FALSE(Receive().has_value()) << "it is lent";
  lent.reset();
  lender_->TakeBackIdle(now);
  ExpectTakenBack(id);
  EXPECT_EQ(devices_.allocated(), 1);
  EXPECT_TRUE(lender_->OnClosed(id).ok());
  EXPECT_TRUE(WaitUntil([this] { return devices_.allocated() == 0; }));
}

// Tests that memory is freed on another thread. Freeing may take long, and the
// thread that notices the peer's end serves all timers and set-ups, too.
TEST_F(DeviceLenderTest, WhatIsLentToAPeerThatEndsIsFreedAside) {
  LyingDevices devices;
  Use(&devices);
  const memory::Bytes allocated = devices.Put(std::string(kBytes, 'x'));
  const ControlPage page = {};
  Lender loans(Arena::Create(1 << 20), socket_.get(), &page, lender_.get());
  std::promise<std::thread::id> freed_by;
  memory::Bytes piece = allocated;
  piece.owner = std::shared_ptr<const void>(&piece, [&](const void*) {
    freed_by.set_value(std::this_thread::get_id());
  });
  devices.shared.memory = piece.owner;
  ASSERT_TRUE(loans.Expose(memory::Payload(piece), 1).ok());
  devices.shared.memory.reset();
  piece.owner.reset();
  EXPECT_EQ(loans.count(), 1u);
  loans.EndAll();
  EXPECT_NE(freed_by.get_future().get(), std::this_thread::get_id());
}

TEST_F(DeviceLenderTest, APeerMayCloseUnasked) {
  const memory::Bytes piece = Put();
  const uint32_t id = lender_->Lend(piece)->segment_id;
  (void)Receive();
  EXPECT_TRUE(lender_->OnClosed(id).ok());
  EXPECT_EQ(lender_->count(), 0u);
  EXPECT_FALSE(lender_->OnClosed(id).ok());
  EXPECT_FALSE(Receive().has_value()) << "there is nothing to be closed";
  EXPECT_NE(lender_->Lend(piece)->segment_id, id);
}

TEST_F(DeviceLenderTest, TakesBackAllThatIsNotLentAtTheEnd) {
  const memory::Bytes first = Put(), second = Put();
  auto lent = lender_->Lend(first);
  const uint32_t other = lender_->Lend(second)->segment_id;
  while (Receive().has_value()) {
  }
  lender_->TakeBackUnused(kPatience);
  ExpectTakenBack(other);
  ExpectNotLent(second, "the connection ends");
  const uint32_t id = lent->segment_id;
  lent.reset();
  lender_->TakeBackUnused(kPatience);
  ExpectTakenBack(id);
  EXPECT_EQ(lender_->count(), 2u);
}

TEST_F(DeviceLenderTest, GivesUpOnWhatAPeerDoesNotCloseWhateverElseIsLent) {
  const auto lent = lender_->Lend(Put());
  (void)lender_->Lend(Put());
  for (int i = 0; i < kPatience; ++i) {
    lender_->TakeBackUnused(kPatience);
    ASSERT_EQ(lender_->count(), 2u) << i;
  }
  lender_->TakeBackUnused(kPatience);
  EXPECT_EQ(lender_->count(), 1u) << "a loan of it is out";
}

// Tests that the thread that looks for returned loans never holds the last
// reference to the memory.
TEST_F(DeviceLenderTest, KeepsWhatIsClosedUntilItsLoanIsBack) {
  auto lent = lender_->Lend(Put());
  const uint32_t id = lent->segment_id;
  EXPECT_TRUE(lender_->OnClosed(id).ok());
  EXPECT_FALSE(lender_->OnClosed(id).ok()) << "once for each";
  lender_->TakeBackIdle(base::SteadyNow());
  EXPECT_EQ(lender_->count(), 1u);
  lent.reset();
  lender_->TakeBackIdle(base::SteadyNow());
  EXPECT_EQ(lender_->count(), 0u);
}

TEST_F(DeviceLenderTest, LendsNothingToAPeerThatOpensNone) {
  Use(nullptr);
  EXPECT_FALSE(lender_->lends());
  ExpectNotLent(Put(), "the peer opens no devices' memory");
  EXPECT_FALSE(lender_->Decline(kDeviceBit).ok());
}

TEST_F(DeviceLenderTest, EndForgetsAll) {
  memory::Bytes piece = Put();
  const auto lent = lender_->Lend(piece);
  (void)lender_->Lend(Put());
  lender_->TakeBackIdle(base::SteadyNow());
  EXPECT_EQ(devices_.allocated(), 2);
  while (Receive().has_value()) {
  }
  lender_->End();
  EXPECT_EQ(lender_->count(), 0u);
  ExpectNotLent(piece, "the peer hung up");
  piece = memory::Bytes();
  EXPECT_TRUE(WaitUntil([this] { return devices_.allocated() == 0; }));
}

}  // namespace
}  // namespace shm
}  // namespace fabric
}  // namespace penstock
