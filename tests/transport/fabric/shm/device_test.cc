// Tests device memory that is lent without a copy between two ends in one
// process, and all reasons for copying it instead.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "tests/transport/fabric/shm/device_pair.h"
#include "transport/fabric/shm/device_lender.h"

namespace penstock {
namespace fabric {
namespace shm {
namespace {

TEST_F(ShmDevices, PiecesAreUsedWhereTheyLie) {
  Connect();
  EXPECT_TRUE(lender()->TakesDeviceMemory());
  EXPECT_TRUE(borrower()->TakesDeviceMemory());
  memory::Payload payload(OnHost(100, 1));
  memory::Bytes whole = OnDevice(kMiB, 2);
  payload.Append(whole.Part(4097, 300 * kKiB));
  payload.Append(OnHost(5000, 3));
  const auto exposure = lender()->Expose(payload, kMany);
  ASSERT_TRUE(exposure.ok()) << exposure.status();
  ASSERT_EQ(exposure->region.size(), 3u);
  EXPECT_EQ(exposure->region[1].offset, 4097u);
  EXPECT_EQ(exposure->stable.pieces()[1].data, whole.data + 4097);

  const memory::Payload loaded = Load(exposure->region);
  ASSERT_EQ(loaded.pieces().size(), 3u);
  EXPECT_EQ(loaded.pieces()[0].device, nullptr);
  EXPECT_EQ(loaded.pieces()[1].device, &ours_);
  EXPECT_EQ(loaded.pieces()[2].device, nullptr);
  EXPECT_NE(loaded.pieces()[1].data, whole.data + 4097);
  EXPECT_EQ(theirs_.copies() + ours_.copies(), 0);
  EXPECT_EQ(Read(loaded), Content(100, 1) +
                              Content(kMiB, 2).substr(4097, 300 * kKiB) +
                              Content(5000, 3));
  // Changes the owner's memory. The borrower sees the change, because both
  // processes have mapped the same memory.
  const std::string changed = Content(300 * kKiB, 9);
  ASSERT_TRUE(theirs_
                  .CopyFromHost(AsBytes(changed),
                                const_cast<uint8_t*>(whole.data) + 4097)
                  .ok());
  EXPECT_EQ(ours_.Get(loaded.pieces()[1].span()), changed);
  ExpectDescribes(lender(), "devices' memory in place");
}

TEST_F(ShmDevices, BothSidesLend) {
  Connect();
  const std::string content = Content(kMiB, 5);
  const memory::Payload payload(ours_.Put(content));
  const auto exposure = borrower()->Expose(payload, 1);
  ASSERT_TRUE(exposure.ok()) << exposure.status();
  const auto loaded = lender()->Load(exposure->region);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->pieces()[0].device, &theirs_);
  EXPECT_EQ(Read(*loaded), content);
}

TEST_F(ShmDevices, AnAllocationIsOpenedOnce) {
  Connect();
  const memory::Bytes whole = OnDevice(kMiB, 1);
  for (size_t i = 0; i < 8; ++i) {
    memory::Payload payload(whole.Part(i * 65536, 65536));
    payload.Append(whole.Part(500 * kKiB, 70 * kKiB));
    const memory::Payload loaded = Load(Expose(payload));
    EXPECT_EQ(loaded.pieces()[1].data - loaded.pieces()[0].data,
              static_cast<ptrdiff_t>(500 * kKiB - i * 65536));
  }
  EXPECT_EQ(ours_.opens(), 1);
  EXPECT_EQ(ours_.open_now(), 1);
}

TEST_F(ShmDevices, MemoryIsKeptUntilTheLastPieceIsDropped) {
  Connect();
  memory::Bytes whole = OnDevice(kMiB, 1);
  const std::weak_ptr<const void> freed = whole.owner;
  RemoteRegion region;
  {
    memory::Payload payload(whole.Part(0, 100 * kKiB));
    payload.Append(whole.Part(kMiB - 100 * kKiB, 100 * kKiB));
    region = Expose(payload);
    whole = memory::Bytes();
  }
  memory::Payload loaded = Load(region);
  memory::Bytes last = loaded.pieces()[1];
  loaded = memory::Payload();
  lender()->Poll();
  EXPECT_FALSE(freed.expired());
  EXPECT_EQ(ours_.Get(last.span()), Content(kMiB, 1).substr(kMiB - 100 * kKiB));
  last = memory::Bytes();
  EXPECT_TRUE(IsFreed(freed));
}

TEST_F(ShmDevices, ReadsCopyToTheHost) {
  Connect();
  const RemoteRegion region = Expose(memory::Payload(OnDevice(kMiB, 1)));
  std::vector<uint8_t> into(1000);
  borrower()->Read(region[0], 50000, absl::MakeSpan(into), 1);
  EXPECT_TRUE(pair_->connecting.events.reads[1].ok());
  EXPECT_EQ(std::string(into.begin(), into.end()),
            Content(kMiB, 1).substr(50000, 1000));
  ours_.FailCopies(absl::InternalError("the device fell off"));
  borrower()->Read(region[0], 0, absl::MakeSpan(into), 2);
  EXPECT_TRUE(absl::IsInternal(pair_->connecting.events.reads[2]));
  borrower()->Read(region[0], kMiB - 999, absl::MakeSpan(into), 3);
  EXPECT_TRUE(absl::IsOutOfRange(pair_->connecting.events.reads[3]));
}

TEST_F(ShmDevices, AreCopiedUnlessBothSidesNameThem) {
  for (int which = 0; which < 3; ++which) {
    Connect(With(which == 1 ? &theirs_ : nullptr, nullptr),
            With(which == 2 ? &ours_ : nullptr, nullptr));
    EXPECT_FALSE(lender()->TakesDeviceMemory());
    EXPECT_FALSE(borrower()->TakesDeviceMemory());
    ExpectCopied(OnDevice(kMiB, 1));
    EXPECT_EQ(absl::StrContains(lender()->Describe(),
                                "the peer opens no devices' memory"),
              which == 1)
        << lender()->Describe();
  }
  EXPECT_EQ(ours_.opens(), 0);
}

TEST_F(ShmDevices, AreCopiedIfOneSideCopiesAll) {
  for (int which = 0; which < 2; ++which) {
    Options lending = With(&theirs_, nullptr),
            borrowing = With(&ours_, nullptr);
    (which == 0 ? lending : borrowing).always_copy = true;
    Connect(lending, borrowing);
    EXPECT_FALSE(lender()->TakesDeviceMemory());
    EXPECT_FALSE(borrower()->TakesDeviceMemory());
    const RemoteRegion region = Expose(memory::Payload(OnDevice(kMiB, 1)));
    std::vector<uint8_t> into(kMiB);
    borrower()->Read(region[0], 0, absl::MakeSpan(into), 1);
    EXPECT_TRUE(pair_->connecting.events.reads[1].ok());
    EXPECT_TRUE(HasPattern(into, 1));
  }
  EXPECT_EQ(ours_.opens(), 0);
}

TEST_F(ShmDevices, ShortPiecesAndThoseOfOtherDevicesAreCopied) {
  Connect();
  ExpectCopied(OnDevice(memory::kMinDeviceBytes - 1, 1));
  EXPECT_TRUE(IsLentInPlace(OnDevice(memory::kMinDeviceBytes, 1)));
  memory::FakeDeviceAccess others;
  const std::string content = Content(kMiB, 7);
  const RemoteRegion region = Expose(memory::Payload(others.Put(content)));
  EXPECT_FALSE(IsDeviceId(SegmentOfKey(region[0].key)));
  EXPECT_EQ(Read(Load(region)), content);
  ExpectDescribes(lender(), "the memory is of other devices");
}

TEST_F(ShmDevices, WhatThePeerCannotOpenIsCopiedFromThenOn) {
  Connect();
  const memory::Bytes piece = OnDevice(kMiB, 1);
  ours_.FailOpens(absl::NotFoundError("no such device here"));
  const RemoteRegion region = Expose(memory::Payload(piece));
  for (int i = 0; i < 3; ++i) {
    const absl::Status refused = borrower()->Load(region).status();
    EXPECT_TRUE(absl::IsNotFound(refused)) << refused;
  }
  std::vector<uint8_t> into(1);
  borrower()->Read(region[0], 0, absl::MakeSpan(into), 1);
  EXPECT_FALSE(pair_->connecting.events.reads[1].ok());
  borrower()->GiveBack(region);
  EXPECT_EQ(ours_.opens(), 1);
  EXPECT_TRUE(WaitUntil([&] {
    const RemoteRegion next = Expose(memory::Payload(piece));
    borrower()->GiveBack(next);
    return !IsDeviceId(SegmentOfKey(next[0].key));
  }));
  ExpectCopied(piece);
  ExpectDescribes(lender(), "devices' memory copied: the peer could not open");
  ExpectDescribes(borrower(), "the peer's copied: no such device here");
  // Expects that another allocation is lent, because it may be on another
  // device.
  ours_.FailOpens(absl::OkStatus());
  EXPECT_TRUE(IsLentInPlace(OnDevice(kMiB, 2)));
  EXPECT_TRUE(lender()->TakesDeviceMemory());
  EXPECT_TRUE(pair_->listening.events.broken.empty());
}

TEST_F(ShmDevices, APeerThatCannotOpenManyIsLentNoMore) {
  Connect();
  ours_.FailOpens(absl::NotFoundError("no such device here"));
  std::vector<memory::Bytes> pieces;
  for (int i = 0; i < kMaxDeclinedDevices; ++i) {
    pieces.push_back(OnDevice(kMiB, 1));
    const RemoteRegion region = Expose(memory::Payload(pieces.back()));
    EXPECT_FALSE(borrower()->Load(region).ok());
    borrower()->GiveBack(region);
  }
  EXPECT_TRUE(WaitUntil([this] { return !lender()->TakesDeviceMemory(); }));
  EXPECT_EQ(ours_.opens(), kMaxDeclinedDevices);
  ExpectCopied(OnDevice(kMiB, 2));
  // Expects that the other direction still works.
  EXPECT_TRUE(borrower()->TakesDeviceMemory());
  EXPECT_TRUE(pair_->listening.events.broken.empty());
}

TEST_F(ShmDevices, WhatCannotBeSharedIsCopied) {
  Connect();
  theirs_.FailShares(absl::FailedPreconditionError("managed memory"));
  ExpectCopied(OnDevice(kMiB, 1));
  ExpectDescribes(lender(), "devices' memory copied: managed memory");
  theirs_.FailShares(absl::OkStatus());
  EXPECT_TRUE(IsLentInPlace(OnDevice(kMiB, 1)));
  ExpectDescribes(lender(), "devices' memory in place");
}

TEST_F(ShmDevices, WhatCannotBeCopiedEitherIsNotLent) {
  Connect();
  theirs_.FailShares(absl::FailedPreconditionError("managed memory"));
  theirs_.FailCopies(absl::InternalError("the device fell off"));
  memory::Bytes piece = OnDevice(kMiB, 1);
  const std::weak_ptr<const void> freed = piece.owner;
  const absl::Status refused =
      lender()->Expose(memory::Payload(std::move(piece)), kMany).status();
  // Expects RESOURCE_EXHAUSTED: the connection still works. A session would
  // send the message over another fabric.
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_TRUE(absl::StrContains(refused.message(), "the device fell off"));
  EXPECT_TRUE(freed.expired());
  EXPECT_EQ(arena_->used(), 0u);
  EXPECT_FALSE(lender()->HasFailed());
}

TEST_F(ShmDevices, TheLeastRecentlyUsedIsClosedForAnotherOne) {
  Connect();
  std::vector<memory::Bytes> pieces;
  for (size_t i = 0; i < kMaxPassedDevices; ++i) {
    pieces.push_back(OnDevice(memory::kMinDeviceBytes, i));
    Pass(pieces.back());
  }
  lender()->Poll();
  Pass(pieces[0]);
  lender()->Poll();
  const int opens = ours_.opens();
  EXPECT_EQ(opens, static_cast<int>(kMaxPassedDevices));
  ExpectCopied(OnDevice(memory::kMinDeviceBytes, 100));
  absl::SleepFor(kDeviceKeepTime);
  Pass(pieces[0]);
  // Expects that the new allocation is lent once the peer has closed another
  // one.
  pieces.push_back(OnDevice(memory::kMinDeviceBytes, 100));
  EXPECT_TRUE(WaitUntil([&] { return IsLentInPlace(pieces.back()); }));
  EXPECT_EQ(ours_.open_now(), static_cast<int>(kMaxPassedDevices));
  Pass(pieces[0]);
  EXPECT_EQ(ours_.opens(), opens + 1) << "it was used";
  EXPECT_TRUE(WaitUntil([&] { return IsLentInPlace(pieces[1]); }));
  EXPECT_EQ(ours_.opens(), opens + 2) << "it was not, for longest";
  EXPECT_TRUE(pair_->connecting.events.broken.empty());
}

// Sends several tensors in each step, each in its own allocation. There is one
// tensor more than may be open at once. Copying some of the tensors is cheaper
// than opening all of them in each step.
TEST_F(ShmDevices, ManyInTurnAreNotEachOpenedEachTime) {
  Connect();
  std::vector<memory::Bytes> pieces;
  for (size_t i = 0; i <= kMaxPassedDevices; ++i) {
    pieces.push_back(OnDevice(memory::kMinDeviceBytes, i));
  }
  constexpr int kRounds = 4;
  for (int round = 0; round < kRounds; ++round) {
    for (const memory::Bytes& piece : pieces) {
      const memory::Payload loaded = Load(Expose(memory::Payload(piece)));
      EXPECT_EQ(Read(loaded), theirs_.Get(piece.span()));
      lender()->Poll();
    }
  }
  EXPECT_LT(ours_.opens(), 2 * static_cast<int>(pieces.size()));
}

TEST_F(ShmDevices, MoreThanMayBeLentAtATimeAreCopied) {
  Connect();
  std::vector<memory::Payload> held;
  for (size_t i = 0; i < kMaxPassedDevices; ++i) {
    held.push_back(
        Load(Expose(memory::Payload(OnDevice(memory::kMinDeviceBytes, i)))));
  }
  ExpectCopied(OnDevice(kMiB, 1));
  ExpectDescribes(lender(), "the peer still reads 64 allocations");
  EXPECT_EQ(ours_.open_now(), static_cast<int>(kMaxPassedDevices));
  EXPECT_EQ(Read(held[17]), Content(memory::kMinDeviceBytes, 17));
  held[17] = memory::Payload();
  lender()->Poll();
  absl::SleepFor(kDeviceKeepTime);
  const memory::Bytes piece = OnDevice(kMiB, 1);
  EXPECT_TRUE(WaitUntil([&] { return IsLentInPlace(piece); }));
}

TEST_F(ShmDevices, TheEndOfEitherEndClosesAll) {
  for (bool of_borrower : {true, false}) {
    Connect();
    const std::string content = Content(kMiB, 1);
    memory::Bytes piece = theirs_.Put(content);
    const std::weak_ptr<const void> freed = piece.owner;
    memory::Payload held = Load(Expose(memory::Payload(piece)));
    const memory::Bytes other = OnDevice(kMiB, 2);
    Pass(other);
    piece = memory::Bytes();
    EXPECT_EQ(ours_.open_now(), 2);
    if (of_borrower) {
      pair_->connecting.endpoint.reset();
    } else {
      pair_->listening.endpoint.reset();
      EXPECT_TRUE(WaitUntil([this] {
        borrower()->Poll();
        return !pair_->connecting.events.broken.empty();
      }));
      pair_->connecting.endpoint.reset();
    }
    EXPECT_TRUE(WaitUntil([this] { return ours_.open_now() == 1; }));
    EXPECT_FALSE(freed.expired());
    EXPECT_EQ(Read(held), content);
    held = memory::Payload();
    EXPECT_TRUE(WaitUntil([this] { return ours_.open_now() == 0; }));
    EXPECT_TRUE(WaitUntil([&] { return freed.expired(); }));
  }
}

}  // namespace
}  // namespace shm
}  // namespace fabric
}  // namespace penstock
