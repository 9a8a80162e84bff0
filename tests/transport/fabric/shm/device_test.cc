// Memory of devices that is lent where it lies, between two ends of one
// process, and all reasons for which it is copied instead.

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/transport/fabric/shm/shm_test_util.h"
#include "tests/transport/memory/fake_device_access.h"
#include "transport/fabric/shm/device_lender.h"
#include "transport/fabric/shm/fabric.h"
#include "transport/fabric/shm/region_key.h"
#include "transport/memory/bytes.h"
#include "transport/memory/device_access.h"

namespace penstock {
namespace fabric {
namespace shm {
namespace {

constexpr size_t kKiB = 1024;
constexpr size_t kMiB = 1024 * kKiB;
constexpr size_t kMany = 100;

std::string Content(size_t size, uint8_t seed) {
  std::string content(size, '\0');
  PatternPayload(size, seed).CopyTo(reinterpret_cast<uint8_t*>(&content[0]));
  return content;
}

// What is there, wherever that is.
std::string Read(const memory::Payload& payload) {
  std::string content(payload.size(), '\0');
  const absl::Status copied =
      payload.CopyFromAnywhereTo(reinterpret_cast<uint8_t*>(&content[0]));
  EXPECT_TRUE(copied.ok()) << copied;
  return content;
}

// The lender's devices are `theirs_`, the borrower's `ours_`.
class ShmDevices : public ::testing::Test {
 protected:
  static Options With(memory::DeviceAccess* devices,
                      std::shared_ptr<Arena> arena) {
    Options options;
    options.devices = devices;
    options.arena = std::move(arena);
    return options;
  }
  void Connect(const Options& lender, const Options& borrower) {
    lending_fabric_ = absl::make_unique<ShmFabric>(lender);
    borrowing_fabric_ = absl::make_unique<ShmFabric>(borrower);
    pair_ = MakePair(lending_fabric_.get(), borrowing_fabric_.get());
    ASSERT_NE(pair_, nullptr);
  }
  void Connect() { Connect(With(&theirs_, arena_), With(&ours_, nullptr)); }

  Endpoint* lender() { return pair_->listening.endpoint.get(); }
  Endpoint* borrower() { return pair_->connecting.endpoint.get(); }

  memory::Bytes OnDevice(size_t size, uint8_t seed) {
    return theirs_.Put(Content(size, seed));
  }
  static memory::Bytes OnHost(size_t size, uint8_t seed) {
    return PatternPayload(size, seed).pieces()[0];
  }

  RemoteRegion Expose(const memory::Payload& payload,
                      size_t max_parts = kMany) {
    absl::StatusOr<Exposure> exposure = lender()->Expose(payload, max_parts);
    EXPECT_TRUE(exposure.ok()) << exposure.status();
    return exposure.ok() ? exposure->region : RemoteRegion();
  }
  memory::Payload Load(const RemoteRegion& region) {
    absl::StatusOr<memory::Payload> loaded = borrower()->Load(region);
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    return loaded.ok() ? *std::move(loaded) : memory::Payload();
  }
  // Sends the piece in place, uses it, and gives it back.
  void Pass(const memory::Bytes& piece) {
    const memory::Payload loaded = Load(Expose(memory::Payload(piece)));
    EXPECT_FALSE(loaded.on_host());
  }
  bool IsLentInPlace(const memory::Bytes& piece) {
    const RemoteRegion region = Expose(memory::Payload(piece));
    (void)Load(region);
    lender()->Poll();
    return IsDeviceId(SegmentOfKey(region[0].key));
  }
  void ExpectCopied(const memory::Bytes& piece) {
    const RemoteRegion region = Expose(memory::Payload(piece));
    EXPECT_FALSE(IsDeviceId(SegmentOfKey(region[0].key)));
    const memory::Payload loaded = Load(region);
    EXPECT_TRUE(loaded.on_host());
    EXPECT_EQ(Read(loaded), theirs_.Get(piece.span()));
  }
  void ExpectDescribes(Endpoint* endpoint, const std::string& text) {
    EXPECT_TRUE(absl::StrContains(endpoint->Describe(), text))
        << endpoint->Describe();
  }
  // Until the memory of what nobody uses any more is free.
  bool IsFreed(const std::weak_ptr<const void>& owner) {
    return WaitUntil([&] {
      lender()->Poll();
      return owner.expired();
    });
  }

  memory::FakeDeviceAccess theirs_;
  memory::FakeDeviceAccess ours_;
  std::shared_ptr<Arena> arena_ = Arena::Create(64 * kMiB);
  std::unique_ptr<ShmFabric> lending_fabric_;
  std::unique_ptr<ShmFabric> borrowing_fabric_;
  std::unique_ptr<Pair> pair_;
};

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
  // The same memory, opened twice.
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
    EXPECT_EQ(absl::StrContains(lender()->Describe(), "the peer opens none"),
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
  ExpectDescribes(lender(), "it is of other devices");
}

TEST_F(ShmDevices, WhatThePeerCannotOpenIsCopiedFromThenOn) {
  Connect();
  ours_.FailOpens(absl::NotFoundError("no such device here"));
  const RemoteRegion region = Expose(memory::Payload(OnDevice(kMiB, 1)));
  for (int i = 0; i < 3; ++i) {
    const absl::Status refused = borrower()->Load(region).status();
    EXPECT_TRUE(absl::IsNotFound(refused)) << refused;
  }
  std::vector<uint8_t> into(1);
  borrower()->Read(region[0], 0, absl::MakeSpan(into), 1);
  EXPECT_FALSE(pair_->connecting.events.reads[1].ok());
  borrower()->GiveBack(region);
  EXPECT_EQ(ours_.opens(), 1);
  EXPECT_TRUE(WaitUntil([this] { return !lender()->TakesDeviceMemory(); }));
  ExpectCopied(OnDevice(kMiB, 2));
  ExpectDescribes(lender(), "devices' memory copied: the peer could not open");
  ExpectDescribes(borrower(), "the peer's copied: no such device here");
  EXPECT_TRUE(pair_->listening.events.broken.empty());
  // Nothing is wrong with the other direction.
  EXPECT_TRUE(borrower()->TakesDeviceMemory());
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
  // The path is good: the message goes another way, and fails there.
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
  Pass(OnDevice(memory::kMinDeviceBytes, 100));
  lender()->Poll();
  EXPECT_TRUE(WaitUntil([this] {
    return ours_.open_now() == static_cast<int>(kMaxPassedDevices);
  }));
  Pass(pieces[0]);
  EXPECT_EQ(ours_.opens(), opens + 1) << "it was used";
  Pass(pieces[1]);
  EXPECT_EQ(ours_.opens(), opens + 2) << "it was not, for longest";
  EXPECT_TRUE(pair_->connecting.events.broken.empty());
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
  EXPECT_TRUE(IsLentInPlace(OnDevice(kMiB, 1)));
}

TEST_F(ShmDevices, TheEndOfEitherEndClosesAll) {
  for (bool of_borrower : {true, false}) {
    Connect();
    const std::string content = Content(kMiB, 1);
    memory::Bytes piece = theirs_.Put(content);
    const std::weak_ptr<const void> freed = piece.owner;
    memory::Payload held = Load(Expose(memory::Payload(piece)));
    Pass(OnDevice(kMiB, 2));
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

TEST_F(ShmDevices, WhatIsIdleIsClosed) {
  Connect();
  Pass(OnDevice(kMiB, 1));
  const memory::Payload held = Load(Expose(memory::Payload(OnDevice(kMiB, 2))));
  EXPECT_EQ(ours_.open_now(), 2);
  // After some seconds, and though nobody polls.
  EXPECT_TRUE(WaitUntil([this] { return ours_.open_now() == 1; }));
  EXPECT_EQ(Read(held), Content(kMiB, 2));
}

// Messages of random pieces, some of which are held for long, and all that can
// fail does at times. A message that cannot be lent, or not be loaded, would go
// by the lifeline. What comes is right, and nothing is left over.
class ShmDevicesAtRandom : public ShmDevices,
                           public ::testing::WithParamInterface<int> {
 protected:
  size_t Pick(size_t below) { return random_() % below; }
  bool OneIn(size_t n) { return Pick(n) == 0; }

  void AddPiece(memory::Payload* payload, std::string* expected) {
    const uint8_t seed = Pick(256);
    if (OneIn(2)) {
      const size_t size = 1 + Pick(20 * kKiB);
      payload->Append(OnHost(size, seed));
      *expected += Content(size, seed);
      return;
    }
    if (allocations_.size() < 80 && OneIn(2)) {
      allocations_.push_back(OnDevice(1 + Pick(256 * kKiB), seed));
    }
    if (allocations_.empty()) return;
    memory::Bytes& whole = allocations_[Pick(allocations_.size())];
    const size_t offset = Pick(whole.size);
    const memory::Bytes part =
        whole.Part(offset, 1 + Pick(whole.size - offset));
    *expected += theirs_.Get(part.span());
    payload->Append(part);
    if (OneIn(20)) {
      std::swap(whole, allocations_.back());
      allocations_.pop_back();
    }
  }
  void ChangeFailures() {
    const absl::Status error = absl::InternalError("by chance");
    theirs_.FailShares(OneIn(4) ? error : absl::OkStatus());
    theirs_.FailCopies(OneIn(8) ? error : absl::OkStatus());
    if (OneIn(200)) ours_.FailOpens(error);
  }
  void SendOne() {
    memory::Payload payload;
    std::string expected;
    const size_t count = 1 + Pick(6);
    for (size_t i = 0; i < count; ++i) AddPiece(&payload, &expected);
    if (payload.size() == 0) return;
    const auto exposure = lender()->Expose(payload, 1 + Pick(8));
    if (!exposure.ok()) {
      ASSERT_TRUE(absl::IsResourceExhausted(exposure.status()));
      return;
    }
    const auto loaded = borrower()->Load(exposure->region);
    if (!loaded.ok()) {
      EXPECT_TRUE(absl::IsInternal(loaded.status())) << loaded.status();
      borrower()->GiveBack(exposure->region);
      return;
    }
    ++loads_;
    on_devices_ += !loaded->on_host();
    held_.emplace_back(*loaded, expected);
  }
  void LookAtOne() {
    if (held_.empty()) return;
    std::swap(held_[Pick(held_.size())], held_.back());
    ASSERT_EQ(Read(held_.back().first), held_.back().second);
    held_.pop_back();
  }

  std::mt19937 random_;
  std::vector<memory::Bytes> allocations_;
  std::vector<std::pair<memory::Payload, std::string>> held_;
  int loads_ = 0;
  int on_devices_ = 0;
};

TEST_P(ShmDevicesAtRandom, EachMessageIsRightAndNothingIsLeft) {
  const char* const chosen = std::getenv("SHM_DEVICES_SEED");
  const int seed = chosen != nullptr ? std::atoi(chosen) : GetParam();
  std::cout << "SHM_DEVICES_SEED=" << seed << std::endl;
  random_.seed(seed);
  Connect();
  for (int step = 0; step < 300; ++step) {
    if (OneIn(20)) ChangeFailures();
    ASSERT_NO_FATAL_FAILURE(SendOne());
    while (held_.size() > 40 || (!held_.empty() && OneIn(3))) {
      ASSERT_NO_FATAL_FAILURE(LookAtOne());
    }
    if (OneIn(2)) lender()->Poll();
  }
  EXPECT_GT(loads_, 50);
  EXPECT_GT(on_devices_, 0);
  while (!held_.empty()) ASSERT_NO_FATAL_FAILURE(LookAtOne());
  std::vector<std::weak_ptr<const void>> freed;
  for (const memory::Bytes& one : allocations_) freed.push_back(one.owner);
  allocations_.clear();
  for (const auto& one : freed) ASSERT_TRUE(IsFreed(one));
  EXPECT_EQ(arena_->used(), 0u);
  EXPECT_TRUE(pair_->listening.events.broken.empty());
  EXPECT_TRUE(pair_->connecting.events.broken.empty());
  pair_.reset();
  EXPECT_TRUE(WaitUntil([this] { return ours_.open_now() == 0; }));
}

INSTANTIATE_TEST_SUITE_P(Seeds, ShmDevicesAtRandom, ::testing::Range(1, 21));

}  // namespace
}  // namespace shm
}  // namespace fabric
}  // namespace penstock
