// Tests when lent memory of devices is closed, and when it may be freed.

#include <cstdint>
#include <future>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "tests/transport/fabric/shm/device_attacks.h"
#include "tests/transport/fabric/shm/device_pair.h"
#include "transport/fabric/shm/device_lender.h"
#include "transport/fabric/shm/options.h"
#include "transport/fabric/shm/peer_user.h"
#include "transport/fabric/shm/region_key.h"
#include "transport/memory/bytes.h"
#include "transport/progress/aside.h"

namespace penstock {
namespace fabric {
namespace shm {
namespace {

// Tests that memory is freed only after the peer has closed it. In CUDA, an
// earlier free is undefined.
TEST_F(ShmDevices, IsNotFreedBeforeThePeerHasClosedIt) {
  Connect();
  std::promise<void> may_close;
  progress::RunAside(progress::Aside::kDevice,
                     [&] { may_close.get_future().wait(); });
  memory::Bytes piece = OnDevice(kMiB, 1);
  std::weak_ptr<const void> used = piece.owner;
  Pass(piece);
  piece = memory::Bytes();
  EXPECT_TRUE(IsFreed(used));
  // Expects that the owner's memory still exists. The loan was taken back,
  // because the memory cannot be lent again. But the peer's driver is slow to
  // close the memory.
  absl::SleepFor(absl::Milliseconds(100));
  EXPECT_EQ(theirs_.allocated(), 1);
  EXPECT_EQ(ours_.open_now(), 1);
  may_close.set_value();
  EXPECT_TRUE(WaitUntil([this] { return theirs_.allocated() == 0; }));
  EXPECT_EQ(ours_.open_now(), 0);
}

TEST_F(ShmDevices, WhatIsUsedHereIsNotTakenBack) {
  Connect();
  const memory::Bytes piece = OnDevice(kMiB, 1);
  for (int i = 0; i < 20; ++i) {
    Pass(piece);
    lender()->Poll();
    absl::SleepFor(absl::Milliseconds(5));
  }
  EXPECT_EQ(ours_.opens(), 1);
}

TEST_F(ShmDevices, TheEndOfEitherEndFreesOnlyWhatIsClosed) {
  for (bool of_borrower : {true, false}) {
    Connect();
    std::promise<void> may_close;
    progress::RunAside(progress::Aside::kDevice,
                       [&] { may_close.get_future().wait(); });
    {
      const memory::Bytes piece = OnDevice(kMiB, 1);
      Pass(piece);
    }
    (of_borrower ? pair_->connecting : pair_->listening).endpoint.reset();
    (of_borrower ? pair_->listening : pair_->connecting).endpoint.reset();
    absl::SleepFor(absl::Milliseconds(100));
    EXPECT_EQ(theirs_.allocated(), 1);
    may_close.set_value();
    EXPECT_TRUE(WaitUntil([this] { return theirs_.allocated() == 0; }));
    EXPECT_EQ(ours_.open_now(), 0);
  }
}

TEST_F(ShmDevices, WhatTheApplicationHoldsKeepsNothingElse) {
  Connect();
  memory::Payload held = Load(Expose(memory::Payload(OnDevice(kMiB, 1))));
  Pass(OnDevice(kMiB, 2));
  pair_->connecting.endpoint.reset();
  pair_->listening.endpoint.reset();
  EXPECT_TRUE(WaitUntil([this] { return theirs_.allocated() == 1; }));
  EXPECT_EQ(Read(held), Content(kMiB, 1));
  held = memory::Payload();
  EXPECT_TRUE(WaitUntil([this] { return theirs_.allocated() == 0; }));
}

TEST_F(ShmDevices, WhatIsIdleIsClosed) {
  Connect();
  const memory::Bytes idle = OnDevice(kMiB, 1);
  Pass(idle);
  const memory::Payload held = Load(Expose(memory::Payload(OnDevice(kMiB, 2))));
  EXPECT_EQ(ours_.open_now(), 2);
  // Expects that the memory is closed after some seconds, even without a poll.
  EXPECT_TRUE(WaitUntil([this] { return ours_.open_now() == 1; }));
  EXPECT_EQ(Read(held), Content(kMiB, 2));
}

TEST_F(ShmDeviceAttacks, WhatIsTakenBackIsAnsweredOnceItIsClosed) {
  Lend(kId);
  auto loaded = pair_->end.endpoint->Load({{RegionKey(kId, 1), 0, kMiB}});
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  Say(About(Kind::kTakeBack, kId));
  EXPECT_TRUE(WaitUntil([this] { return !Load(kId).ok(); }));
  absl::SleepFor(absl::Milliseconds(50));
  EXPECT_EQ(CountAnswers(Kind::kClosed), 0);
  loaded = absl::InternalError("");
  EXPECT_TRUE(WaitUntil([this] { return ours_.open_now() == 0; }));
  EXPECT_TRUE(WaitUntil([this] { return CountAnswers(Kind::kClosed) == 1; }));
  // Lends an allocation that is never opened.
  Lend(kId + 1);
  Say(About(Kind::kTakeBack, kId + 1));
  EXPECT_TRUE(WaitUntil([this] { return CountAnswers(Kind::kClosed) == 1; }));
  Say(About(Kind::kTakeBack, kId + 1));
  ExpectRefused("something other");
}

TEST_F(ShmDeviceAttacks, WhatWaitsToBeClosedCounts) {
  std::promise<void> may_close;
  // Blocks the thread that closes allocations which were never opened.
  progress::RunAside(progress::Aside::kMemory,
                     [&] { may_close.get_future().wait(); });
  for (size_t i = 0; i < kMaxPassedDevices; ++i) {
    Lend(kId + i);
    Say(About(Kind::kTakeBack, kId + i));
  }
  Lend(kDeviceBit | 1000);
  const absl::Status refused = Load(kDeviceBit | 1000);
  EXPECT_TRUE(absl::StrContains(refused.message(), "too much")) << refused;
  may_close.set_value();
  // Expects answers although the peer sends nothing more.
  int closed = 0;
  EXPECT_TRUE(WaitUntil([&] {
    closed += CountAnswers(Kind::kClosed);
    return closed == static_cast<int>(kMaxPassedDevices);
  }));
}

// Tests that the peer learns of the end only when all its memory is closed.
// Until then, this side may still read the memory.
TEST_F(ShmDeviceAttacks, TheEndIsToldOnceAllIsClosed) {
  Lend(kId);
  EXPECT_TRUE(Load(kId).ok());
  std::promise<void> may_close;
  progress::RunAside(progress::Aside::kDevice,
                     [&] { may_close.get_future().wait(); });
  pair_->end.endpoint.reset();
  absl::SleepFor(absl::Milliseconds(50));
  EXPECT_FALSE(IsHungUp(pair_->socket));
  EXPECT_EQ(CountAnswers(Kind::kClosed), 0);
  may_close.set_value();
  EXPECT_TRUE(WaitUntil([this] { return CountAnswers(Kind::kClosed) == 1; }));
  EXPECT_TRUE(WaitUntil([this] { return IsHungUp(pair_->socket); }));
}

// Tests a peer that closes nothing that was lent to it. This side keeps the
// memory until the peer hangs up, or for a limited time.
TEST_F(ShmDeviceAttacks, APeerThatClosesNothingKeepsWhatItWasLentForAWhile) {
  for (const bool hangs_up : {true, false}) {
    {
      const memory::Payload payload(ours_.Put(std::string(kMiB, 'y')));
      const auto exposure = pair_->end.endpoint->Expose(payload, 1);
      ASSERT_TRUE(exposure.ok()) << exposure.status();
      EXPECT_TRUE(IsDeviceId(SegmentOfKey(exposure->region[0].key)));
      GiveBack(exposure->region);
    }
    EXPECT_TRUE(WaitUntil([this] { return CountAnswers(Kind::kTakeBack) > 0; }))
        << "though nobody polls";
    pair_->end.endpoint.reset();
    absl::SleepFor(absl::Milliseconds(100));
    EXPECT_EQ(ours_.allocated(), 1);
    if (hangs_up) pair_->socket.Reset();
    EXPECT_TRUE(WaitUntil([this] { return ours_.allocated() == 0; }));
    Connect(kOpensDevices);
  }
}

TEST_F(ShmDeviceAttacks, TheEndTakesBackWhatIsNotLent) {
  const memory::Payload payload(ours_.Put(std::string(kMiB, 'y')));
  const auto exposure = pair_->end.endpoint->Expose(payload, 1);
  ASSERT_TRUE(exposure.ok()) << exposure.status();
  GiveBack(exposure->region);
  pair_->end.endpoint.reset();
  EXPECT_TRUE(WaitUntil([this] { return CountAnswers(Kind::kTakeBack) == 1; }));
  Say(About(Kind::kClosed, SegmentOfKey(exposure->region[0].key)));
  EXPECT_TRUE(WaitUntil([this] { return IsHungUp(pair_->socket); }));
}

TEST_F(ShmDeviceAttacks, PassingAndTakingBackForeverLeavesNothing) {
  constexpr int kTimes = 20000;
  int open = 0;
  for (int i = 0; i < kTimes; ++i) {
    Lend(kId + i);
    Say(About(Kind::kTakeBack, kId + i));
    ++open;
    const bool has_room = WaitUntil([&] {
      open -= CountAnswers(Kind::kClosed);
      return open < static_cast<int>(kMaxPassedDevices);
    });
    ASSERT_TRUE(has_room) << i;
  }
  Lend(kId + kTimes);
  EXPECT_TRUE(Load(kId + kTimes).ok());
  EXPECT_EQ(ours_.open_now(), 1);
}

// Simulates peers that leave more allocations to close than this process
// accepts at once. Afterwards, a new peer must be served.
TEST_F(ShmDeviceAttacks, WhatStrangersLeaveToBeClosedIsNoViolation) {
  Lend(kId);
  EXPECT_TRUE(Load(kId).ok());
  std::promise<void> closed;
  const std::shared_future<void> wait = closed.get_future().share();
  for (size_t i = 0; i <= progress::kManyTasksAside; ++i) {
    progress::RunAside(progress::Aside::kMemory, [wait] { wait.wait(); });
  }
  Say(About(Kind::kTakeBack, kId));
  Lend(kId + 1);
  const absl::Status busy = Load(kId + 1);
  EXPECT_TRUE(absl::IsResourceExhausted(busy)) << busy;
  absl::SleepFor(absl::Milliseconds(50));
  EXPECT_EQ(ours_.open_now(), 1);
  EXPECT_TRUE(pair_->end.endpoint->TakesDeviceMemory());
  closed.set_value();
  // Expects that the memory is closed, although nobody reads the messages that
  // have arrived.
  EXPECT_TRUE(WaitUntil([this] { return ours_.open_now() == 0; }));
  EXPECT_TRUE(pair_->end.endpoint->TakesDeviceMemory());
  EXPECT_TRUE(Load(kId + 1).ok());
}

// Tests a slow driver. The driver's time must not count as work of strangers.
TEST_F(ShmDeviceAttacks, WhatADriverClosesDoesNotCountAsStrangers) {
  std::promise<void> closed;
  progress::RunAside(progress::Aside::kDevice,
                     [&] { closed.get_future().wait(); });
  constexpr uint32_t kMany = 4;
  for (uint32_t i = 0; i < kMany; ++i) {
    Lend(kId + i);
    EXPECT_TRUE(Load(kId + i).ok());
    Say(About(Kind::kTakeBack, kId + i));
  }
  EXPECT_TRUE(WaitUntil([this] { return !Load(kId + kMany - 1).ok(); }));
  EXPECT_TRUE(WaitUntil([] { return progress::TasksAside() == 0; }));
  EXPECT_EQ(ours_.open_now(), 1) << "the same memory, by one name";
  closed.set_value();
  EXPECT_TRUE(WaitUntil([this] { return ours_.open_now() == 0; }));
}

// Tests that memory of a stuck device is not offered. The memory would block
// each connection that depends on the device.
TEST(DeviceSharing, IsNotOfferedWhileADeviceIsStuck) {
  memory::FakeDeviceAccess devices;
  Options options;
  options.devices = &devices;
  std::promise<void> go_on;
  std::shared_future<void> stuck = go_on.get_future().share();
  for (size_t i = 0; i <= progress::kManyTasksAside; ++i) {
    progress::RunAside(progress::Aside::kDevice, [stuck] { stuck.wait(); });
  }
  EXPECT_EQ(Share(options, PeerUser{})->devices, nullptr);
  go_on.set_value();
  EXPECT_TRUE(WaitUntil(
      [&] { return Share(options, PeerUser{})->devices == &devices; }));
}

}  // namespace
}  // namespace shm
}  // namespace fabric
}  // namespace penstock
