// Tests messages of a hostile peer about device memory. Each message must harm
// only its sender.

#include "tests/transport/fabric/shm/device_attacks.h"

#include <unistd.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "tests/transport/fabric/shm/shm_test_util.h"
#include "tests/transport/memory/fake_device_access.h"
#include "transport/fabric/shm/control.h"
#include "transport/fabric/shm/device_lender.h"
#include "transport/fabric/shm/fabric.h"
#include "transport/fabric/shm/region_key.h"
#include "transport/fabric/shm/segment.h"
#include "transport/fabric/shm/setup_message.h"
#include "transport/memory/bytes.h"
#include "transport/memory/device_access.h"

namespace penstock {
namespace fabric {
namespace shm {
namespace {

TEST_F(ShmDeviceAttacks, AnHonestOneIsLoaded) {
  Lend(kId);
  EXPECT_TRUE(Load(kId).ok());
  EXPECT_TRUE(Load(kId, kMiB - 65536, 65536).ok());
  EXPECT_EQ(CountAnswers(Kind::kDeclined), 0);
}

TEST_F(ShmDeviceAttacks, PartsThatAreNotOfTheAllocationAreRefused) {
  Lend(kId);
  constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();
  for (const auto& part :
       std::vector<std::pair<uint64_t, uint64_t>>{{1, kMiB},
                                                  {0, kMiB + 1},
                                                  {kMiB, 65536},
                                                  {kMiB + 1, 65536},
                                                  {kMax, 65536},
                                                  {kMax - 65535, 65536},
                                                  {65536, kMax - 65535},
                                                  {0, kMax}}) {
    const absl::Status refused = Load(kId, part.first, part.second);
    EXPECT_TRUE(absl::IsOutOfRange(refused)) << refused;
  }
  EXPECT_FALSE(Load(kId, 0, 65535).ok());
  EXPECT_FALSE(Load(kId, 0, 0).ok());
  EXPECT_EQ(ours_.opens(), 0) << "nothing good was asked for";
  EXPECT_TRUE(Load(kId).ok());
}

TEST_F(ShmDeviceAttacks, AnUnknownAllocationIsRefused) {
  Lend(kId);
  for (uint32_t id : {kId + 1, kId - 1, kDeviceBit, 5u, ~0u}) {
    const absl::Status refused = Load(id);
    EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
    EXPECT_TRUE(absl::StrContains(refused.message(), "does not lend"));
  }
  EXPECT_TRUE(Load(kId).ok());
  Say(About(Kind::kTakeBack, kId));
  EXPECT_TRUE(WaitUntil([this] { return !Load(kId).ok(); }));
  EXPECT_TRUE(WaitUntil([this] { return ours_.open_now() == 0; }));
}

TEST_F(ShmDeviceAttacks, ANumberIsNotUsedTwice) {
  Lend(kId);
  Lend(kId);
  ExpectRefused("twice");
  Lend(kId);
  Say(About(Kind::kTakeBack, kId));
  Lend(kId);
  ExpectRefused("twice");
  Lend(kId);
  Lend(kId - 1);
  ExpectRefused("twice");
}

TEST_F(ShmDeviceAttacks, MoreThanAgreedIsRefused) {
  for (size_t i = 0; i <= kMaxPassedDevices; ++i) Lend(kId + i);
  ExpectRefused("too much");
  Say(About(Kind::kDevice, kId, kMaxPassedDeviceBytes, handle_));
  Lend(kId + 1);
  ExpectRefused("too much");
  for (const uint64_t size :
       {kMaxPassedDeviceBytes + 1, std::numeric_limits<uint64_t>::max(),
        uint64_t{memory::kMinDeviceBytes} - 1, uint64_t{0}}) {
    Say(About(Kind::kDevice, kId, size, handle_));
    ExpectRefused("malformed");
  }
}

TEST_F(ShmDeviceAttacks, OddMessagesAreRefused) {
  Say(About(Kind::kDevice, kId, kMiB, ""));
  ExpectRefused("malformed");
  Say(About(Kind::kDevice, 5, kMiB, handle_));
  ExpectRefused("malformed");
  Say(About(Kind::kDevice, kId, kMiB,
            std::string(memory::kMaxDeviceHandleBytes + 1, 'h')));
  ExpectRefused("malformed");
  const std::string good =
      EncodeSetup(About(Kind::kDevice, kId, kMiB, handle_));
  SayBytes(good + "x");
  ExpectRefused("malformed");
  SayBytes(good.substr(0, good.size() - 1));
  ExpectRefused("malformed");
  SayBytes(good + std::string(100000, 'x'));
  ExpectRefused("too long");
  Say(About(Kind::kTakeBack, kId));
  ExpectRefused("something other");
  Say(About(Kind::kDeclined, 5));
  ExpectRefused("malformed");
  Say(About(Kind::kDeclined, kId));
  ExpectRefused("declines");
  Say(About(Kind::kClosed, kId));
  ExpectRefused("is not open");
  const Segment segment = *Segment::Create("test", 4096);
  Say(About(Kind::kDevice, kId, kMiB, handle_), segment.fd());
  ExpectRefused("descriptor");
  Say(About(Kind::kSegment, kId, 4096), segment.fd());
  ExpectRefused("malformed");
}

TEST_F(ShmDeviceAttacks, WhoNeverSaidThatItOpensDevicesPassesNone) {
  Connect(0);
  EXPECT_FALSE(pair_->end.endpoint->TakesDeviceMemory());
  ExpectRefused("not opened here");
  Connect(kOpensDevices, /*has_devices=*/false);
  EXPECT_FALSE(pair_->end.endpoint->TakesDeviceMemory());
  ExpectRefused("not opened here");
  // Sets feature bits of later releases. The end must ignore them.
  Connect(~kOpensDevices);
  EXPECT_FALSE(pair_->end.endpoint->TakesDeviceMemory());
  Connect(~0u);
  EXPECT_TRUE(pair_->end.endpoint->TakesDeviceMemory());
}

TEST_F(ShmDeviceAttacks, WhatCannotBeOpenedIsDeclinedOnce) {
  const std::vector<SetupMessage> lies = {
      About(Kind::kDevice, kId, kMiB, "no handle"),
      About(Kind::kDevice, kId, 2 * kMiB, handle_),
      About(Kind::kDevice, kId, kMiB / 2, handle_),
      About(Kind::kDevice, kId, kMiB,
            std::string(memory::kMaxDeviceHandleBytes, '\0'))};
  for (const SetupMessage& lie : lies) {
    Say(lie);
    for (int i = 0; i < 10; ++i) EXPECT_FALSE(Load(kId, 0, 65536).ok());
    EXPECT_EQ(CountAnswers(Kind::kDeclined), 1);
    // Expects that other loans still work.
    Lend(kId + 1);
    EXPECT_TRUE(Load(kId + 1).ok());
    Connect(kOpensDevices);
    EXPECT_TRUE(WaitUntil([this] { return ours_.open_now() == 0; }));
  }
}

TEST_F(ShmDeviceAttacks, APeerThatReadsNothingIsLentNoMore) {
  Endpoint* const attacked = pair_->end.endpoint.get();
  std::vector<memory::Bytes> pieces;
  for (size_t i = 0; i < kMaxPassedDevices; ++i) {
    pieces.push_back(ours_.Put(std::string(memory::kMinDeviceBytes, 'y')));
  }
  // Never returns loans, so that their numbers are used up.
  for (uint32_t i = 0; i < 2 * kMaxLoans; ++i) {
    (void)attacked->Expose(memory::Payload(pieces[i % pieces.size()]), 1);
  }
  const auto exposed = attacked->Expose(memory::Payload(pieces[0]), 1);
  EXPECT_TRUE(absl::IsResourceExhausted(exposed.status()));
  std::weak_ptr<const void> freed = pieces[0].owner;
  pieces.clear();
  EXPECT_FALSE(freed.expired());
  pair_->socket.Reset();
  EXPECT_TRUE(WaitUntil([&] { return freed.expired(); }));
}

TEST_F(ShmDeviceAttacks, DecliningEndsLendingOfThatAndNothingElse) {
  Endpoint* const attacked = pair_->end.endpoint.get();
  const memory::Payload payload(ours_.Put(std::string(kMiB, 'y')));
  const auto first = attacked->Expose(payload, 1);
  ASSERT_TRUE(first.ok());
  const uint32_t id = SegmentOfKey(first->region[0].key);
  ASSERT_TRUE(IsDeviceId(id));
  for (int i = 0; i < 100; ++i) Say(About(Kind::kDeclined, id));
  EXPECT_TRUE(WaitUntil([&] {
    const auto second = attacked->Expose(payload, 1);
    return second.ok() && !IsDeviceId(SegmentOfKey(second->region[0].key));
  }));
  EXPECT_TRUE(attacked->TakesDeviceMemory());
  // Expects that lending in the other direction still works.
  Lend(kId);
  EXPECT_TRUE(WaitUntil([this] { return Load(kId).ok(); }));
  EXPECT_TRUE(pair_->end.events.broken.empty());
}

// Tests lending to a peer that has sent an invalid message. This side no longer
// receives the peer's messages, and so would miss a refusal. Therefore it must
// not lend.
TEST_F(ShmDeviceAttacks, AfterNonsenseNothingIsLentEither) {
  Endpoint* const attacked = pair_->end.endpoint.get();
  EXPECT_TRUE(attacked->TakesDeviceMemory());
  SayBytes("nonsense");
  EXPECT_TRUE(WaitUntil([&] { return !attacked->TakesDeviceMemory(); }));
  const auto exposed =
      attacked->Expose(memory::Payload(ours_.Put(std::string(kMiB, 'y'))), 1);
  ASSERT_TRUE(exposed.ok());
  EXPECT_FALSE(IsDeviceId(SegmentOfKey(exposed->region[0].key)));
}

}  // namespace
}  // namespace shm
}  // namespace fabric
}  // namespace penstock
