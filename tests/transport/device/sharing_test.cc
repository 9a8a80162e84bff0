// Tests memory that one ProcessDevices shares and another one opens.

#include <atomic>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/transport/device/fake_process.h"
#include "transport/device/allocation_name.h"
#include "transport/memory/device_ranges.h"

namespace penstock {
namespace device {
namespace {

using memory::OpenAllocation;
using memory::SharedAllocation;
using testing::HasSubstr;

// Decodes a name, so that a test can change it. The test encodes the changed
// name again, which then looks as if another process had sent it.
AllocationName NameOf(const SharedAllocation& shared) {
  return AllocationNames::Create()->Decode(shared.handle)->name;
}
std::string Encode(const AllocationName& name) {
  return AllocationNames::Create()->Encode(name);
}

class SharingTest : public testing::Test {
 protected:
  SharedAllocation Share(absl::Span<const uint8_t> range) {
    const auto shared = sender_->access()->Share(range);
    EXPECT_TRUE(shared.ok()) << shared.status();
    return *shared;
  }
  absl::StatusOr<OpenAllocation> Open(const SharedAllocation& shared) {
    return receiver_->access()->Open(shared.handle, shared.size);
  }

  std::unique_ptr<FakeProcess> sender_ = std::make_unique<FakeProcess>();
  std::unique_ptr<FakeProcess> receiver_ = std::make_unique<FakeProcess>();
};

TEST_F(SharingTest, TheOtherProcessSeesTheSameBytes) {
  for (int device : {0, 1}) {
    const std::string bytes(100000, static_cast<char>('a' + device));
    const auto range = sender_->OnDevice(bytes, device);
    const SharedAllocation shared = Share(range.subspan(1000, 500));
    EXPECT_EQ(shared.offset, 1000);
    EXPECT_EQ(shared.size, bytes.size());
    const auto open = Open(shared);
    ASSERT_TRUE(open.ok()) << open.status();
    EXPECT_EQ(open->size, bytes.size());
    EXPECT_NE(open->data, range.data());
    EXPECT_EQ(receiver_->Read(open->data, open->size), bytes);
    std::string host(500, 0);
    ASSERT_TRUE(receiver_->access()
                    ->CopyToHost({open->data + shared.offset, 500},
                                 reinterpret_cast<uint8_t*>(&host[0]))
                    .ok());
    EXPECT_EQ(host, bytes.substr(0, 500));
  }
}

TEST_F(SharingTest, IsDeclaredAsLongAsItIsOpen) {
  const auto range = sender_->OnDevice(std::string(100, 'x'));
  auto open = Open(Share(range));
  ASSERT_TRUE(open.ok());
  const uint8_t* const data = open->data;
  EXPECT_EQ(memory::FindDevice(data), receiver_->access());
  EXPECT_EQ(memory::FindDevice(data + 99), receiver_->access());
  EXPECT_EQ(memory::FindDevice(data + 100), nullptr);
  EXPECT_EQ(memory::PollDevice({data, 100}), absl::OkStatus());
  open->owner.reset();
  EXPECT_EQ(memory::FindDevice(data), nullptr);
  EXPECT_EQ(receiver_->driver()->OpenCount(), 0);
}

TEST_F(SharingTest, IsOpenedOnceAndClosedWithTheLastShare) {
  const auto range = sender_->OnDevice(std::string(100, 'x'));
  const SharedAllocation shared = Share(range);
  EXPECT_EQ(Share(range.subspan(10)).handle, shared.handle);
  EXPECT_EQ(Share(range.subspan(10)).id, shared.id);
  std::vector<OpenAllocation> shares;
  for (int i = 0; i < 5; ++i) {
    shares.push_back(*Open(shared));
    EXPECT_EQ(shares[i].data, shares[0].data);
  }
  EXPECT_EQ(receiver_->driver()->CallsOf("IpcOpenMemHandle"), 1);
  EXPECT_EQ(sender_->driver()->CallsOf("IpcGetMemHandle"), 1);
  while (shares.size() > 1) shares.pop_back();
  EXPECT_EQ(receiver_->driver()->CallsOf("IpcCloseMemHandle"), 0);
  shares.clear();
  EXPECT_EQ(receiver_->driver()->CallsOf("IpcCloseMemHandle"), 1);
  EXPECT_TRUE(Open(shared).ok());
  EXPECT_EQ(receiver_->driver()->CallsOf("IpcOpenMemHandle"), 2);
}

TEST_F(SharingTest, MoreThanMayBeOpenAreRefusedUntilOneIsClosed) {
  receiver_ = std::make_unique<FakeProcess>(/*max_open=*/2);
  std::vector<SharedAllocation> shared;
  shared.reserve(3);
  for (int i = 0; i < 3; ++i) {
    shared.push_back(Share(sender_->OnDevice(std::string(10 + i, 'x'))));
  }
  auto first = Open(shared[0]);
  auto second = Open(shared[1]);
  ASSERT_TRUE(first.ok() && second.ok());
  const absl::Status refused = Open(shared[2]).status();
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_THAT(refused.message(), HasSubstr("has 2 allocations"));
  EXPECT_TRUE(Open(shared[0]).ok());
  second->owner.reset();
  EXPECT_TRUE(Open(shared[2]).ok());
}

TEST_F(SharingTest, OfAProcessThatHasGoneNothingIsOpened) {
  const SharedAllocation shared =
      Share(sender_->OnDevice(std::string(100, 'x')));
  sender_.reset();
  const absl::Status gone = Open(shared).status();
  EXPECT_TRUE(absl::IsUnavailable(gone)) << gone;
  EXPECT_THAT(gone.message(), HasSubstr("or its process has ended"));
}

TEST_F(SharingTest, WhatWasFreedIsNotOpened) {
  const SharedAllocation shared =
      Share(sender_->OnDevice(std::string(100, 'x')));
  sender_->Free();
  EXPECT_TRUE(absl::IsUnavailable(Open(shared).status()));
}

TEST_F(SharingTest, BytesThatAreNoNameAreErrorsAndOpenNothing) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  for (int i = 0; i < 2000; ++i) {
    std::string bytes(
        random() % 2 == 0 ? AllocationNames::kBytes : random() % 130, 0);
    for (char& byte : bytes) byte = static_cast<char>(random());
    if (!bytes.empty() && random() % 2 == 0) bytes[0] = 1;
    EXPECT_FALSE(receiver_->access()->Open(bytes, random()).ok());
  }
}

TEST_F(SharingTest, AChangedNameIsAnErrorOrTheSameMemory) {
  const std::string text(100, 'x');
  const SharedAllocation shared = Share(sender_->OnDevice(text));
  for (size_t bit = 0; bit < shared.handle.size() * 8; ++bit) {
    std::string changed = shared.handle;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << bit % 8));
    const auto open = receiver_->access()->Open(changed, shared.size);
    if (!open.ok()) continue;
    EXPECT_EQ(receiver_->Read(open->data, open->size), text);
  }
  EXPECT_EQ(receiver_->driver()->OpenCount(), 0);
}

TEST_F(SharingTest, APeerThatClaimsMoreThanThereIsGetsNothing) {
  const SharedAllocation shared =
      Share(sender_->OnDevice(std::string(100, 'x')));
  for (const uint64_t size :
       {uint64_t{0}, uint64_t{99}, uint64_t{101}, ~uint64_t{0}}) {
    // Passes a wrong size, first with the unchanged name, and then with that
    // size in the name.
    EXPECT_TRUE(absl::IsInvalidArgument(
        receiver_->access()->Open(shared.handle, size).status()));
    if (size == 99) continue;  // a peer may request less
    AllocationName name = NameOf(shared);
    name.size = size;
    EXPECT_TRUE(absl::IsInvalidArgument(
        receiver_->access()->Open(Encode(name), size).status()))
        << size;
    EXPECT_EQ(receiver_->driver()->OpenCount(), 0);
  }
}

TEST_F(SharingTest, OnesOwnMemoryIsFoundWhereItLies) {
  const auto range = sender_->OnDevice(std::string(100, 'x'));
  const SharedAllocation shared = Share(range);
  const auto open = sender_->access()->Open(shared.handle, shared.size);
  ASSERT_TRUE(open.ok()) << open.status();
  EXPECT_EQ(open->data, range.data());
  EXPECT_EQ(sender_->driver()->CallsOf("IpcOpenMemHandle"), 0);
  EXPECT_EQ(memory::FindDevice(range.data()), sender_->access());
  // Expects that the opened memory can be shared again, because it is this
  // process's own.
  EXPECT_TRUE(sender_->access()->Share({open->data, 100}).ok());
}

TEST_F(SharingTest, OnesOwnMemoryThatWasFreedIsGone) {
  const SharedAllocation shared =
      Share(sender_->OnDevice(std::string(100, 'x')));
  sender_->Free();
  const absl::Status gone =
      sender_->access()->Open(shared.handle, shared.size).status();
  EXPECT_TRUE(absl::IsUnavailable(gone)) << gone;
  EXPECT_THAT(gone.message(), HasSubstr("was freed"));
}

TEST_F(SharingTest, MemoryThatCameAfterIsNotWhatWasShared) {
  // Allocates until another allocation has the address of the freed one. The
  // name then has the right mark and a wrong id.
  const auto range = sender_->OnDevice(std::string(100, 'x'));
  const SharedAllocation shared = Share(range);
  sender_->Free();
  for (int i = 0; i < 100; ++i) {
    const auto next = sender_->OnDevice(std::string(100, 'y'));
    const auto open = sender_->access()->Open(shared.handle, shared.size);
    EXPECT_TRUE(absl::IsUnavailable(open.status())) << open.status();
    if (next.data() == range.data()) return;
  }
  GTEST_SKIP() << "no address was used again";
}

TEST_F(SharingTest, NobodyCanForgeANameOfThisProcess) {
  const auto secret = sender_->OnDevice(std::string(100, 's'));
  AllocationName name = NameOf(Share(secret));
  std::memset(name.ipc.bytes, 0, sizeof name.ipc.bytes);
  EXPECT_FALSE(sender_->access()->Open(Encode(name), name.size).ok());
  EXPECT_EQ(sender_->driver()->CallsOf("IpcOpenMemHandle"), 1);
}

TEST_F(SharingTest, MemoryOfAnotherProcessIsNotSharedOnNorExported) {
  const auto open = Open(Share(sender_->OnDevice(std::string(100, 'x'))));
  ASSERT_TRUE(open.ok());
  const absl::Span<const uint8_t> part(open->data + 10, 5);
  EXPECT_TRUE(
      absl::IsFailedPrecondition(receiver_->access()->Share(part).status()));
  EXPECT_TRUE(absl::IsFailedPrecondition(
      receiver_->access()->ExportDmabuf(part).status()));
}

TEST_F(SharingTest, MemoryThatIpcDoesNotShareSaysWhatDoes) {
  const auto range = sender_->OnDevice(std::string(100, 'x'));
  sender_->driver()->RefuseIpc(true);
  const absl::Status refused = sender_->access()->Share(range).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_THAT(refused.message(), HasSubstr("allocate it by cudaMalloc()"));
  sender_->driver()->RefuseIpc(false);
  EXPECT_TRUE(sender_->access()->Share(range).ok());
}

TEST_F(SharingTest, ARangeThatIsNoneIsAnError) {
  const auto range = sender_->OnDevice(std::string(100, 'x'));
  int here = 0;
  const auto* const host = reinterpret_cast<const uint8_t*>(&here);
  EXPECT_FALSE(sender_->access()->Share({host, 4}).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(
      sender_->access()->Share({range.data() + 50, 51}).status()));
}

TEST_F(SharingTest, DevicesAreKnownByWhatTheyAreAndNotByTheirNumbers) {
  receiver_->driver()->SetVisible({1, 0});
  const auto open = Open(Share(sender_->OnDevice("of the second", 1)));
  ASSERT_TRUE(open.ok()) << open.status();
  EXPECT_EQ(*receiver_->devices()->OrdinalOf(
                reinterpret_cast<abi::Address>(open->data)),
            0);
}

TEST_F(SharingTest, ADeviceThatTheReceiverDoesNotSeeIsNotFound) {
  receiver_->driver()->SetVisible({5, 6});
  const absl::Status unseen =
      Open(Share(sender_->OnDevice(std::string(100, 'x')))).status();
  EXPECT_TRUE(absl::IsNotFound(unseen)) << unseen;
  EXPECT_THAT(unseen.message(),
              HasSubstr("does not see GPU-01010101-0101-0101-0101-01"));
  EXPECT_THAT(unseen.message(), HasSubstr("CUDA_VISIBLE_DEVICES"));
}

TEST_F(SharingTest, EachCallMayFailAndNothingStays) {
  const auto range = sender_->OnDevice(std::string(100, 'x'));
  for (const abi::Result result : {abi::kOutOfMemory, abi::kOperatingSystem}) {
    SharedAllocation shared;
    const FakeProcess::Failures sharing = sender_->FailEach(
        result,
        [&]() -> absl::Status {
          auto access =
              // Makes another object with the same driver.
              std::make_unique<ProcessDevices>(sender_->devices());
          auto made = access->Share(range);
          if (made.ok()) shared = *made;
          return made.status();
        },
        [](const absl::Status& status) {
          EXPECT_THAT(status.message(), HasSubstr("CUDA"));
        });
    EXPECT_GT(sharing.calls, 8);
    EXPECT_EQ(sharing.errors, sharing.calls);
    ASSERT_TRUE(receiver_->devices()->At(0).ok());
    // Waits until the allocation is closed, now that no call fails any more.
    absl::StatusOr<OpenAllocation> open;
    const FakeProcess::Failures opening = receiver_->FailEach(
        result, [&] { return (open = Open(shared)).status(); },
        [&](const absl::Status& status) {
          EXPECT_THAT(status.message(), HasSubstr("CUDA"));
          EXPECT_EQ(receiver_->driver()->OpenCount(), 0);
        });
    EXPECT_GT(opening.calls, 5);
    EXPECT_EQ(opening.errors, opening.calls);
  }
}

TEST_F(SharingTest, ALostDeviceIsAnErrorAndWhatIsOpenIsClosed) {
  const auto range = sender_->OnDevice(std::string(100, 'x'));
  const SharedAllocation shared = Share(range);
  const SharedAllocation other = Share(sender_->OnDevice("others"));
  auto open = Open(shared);
  ASSERT_TRUE(open.ok());
  receiver_->driver()->Lose(abi::kIllegalAddress);
  for (int i = 0; i < 2; ++i) {
    const absl::Status lost = Open(other).status();
    EXPECT_TRUE(absl::IsUnavailable(lost)) << lost;
    EXPECT_FALSE(receiver_->access()->Share({open->data, 100}).ok());
  }
  open->owner.reset();
  EXPECT_EQ(receiver_->driver()->OpenCount(), 0);
}

TEST_F(SharingTest, ThreadsThatOpenAndCloseAtRandomShareWhatIsOpen) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  receiver_ = std::make_unique<FakeProcess>(/*max_open=*/5);
  constexpr int kAllocations = 8;
  std::vector<SharedAllocation> shared;
  shared.reserve(kAllocations);
  for (int i = 0; i < kAllocations; ++i) {
    shared.push_back(Share(
        sender_->OnDevice(std::string(50 + i, static_cast<char>('a' + i)))));
  }
  std::atomic<int> opened{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(seed + t);
      std::vector<std::shared_ptr<const void>> held(3);
      for (int i = 0; i < 2000; ++i) {
        const int which = static_cast<int>(random() % kAllocations);
        auto open = Open(shared[which]);
        if (!open.ok()) {
          EXPECT_TRUE(absl::IsResourceExhausted(open.status()));
          held[random() % held.size()].reset();
          continue;
        }
        ++opened;
        EXPECT_EQ(receiver_->Read(open->data, open->size),
                  std::string(50 + which, static_cast<char>('a' + which)));
        held[random() % held.size()] = std::move(open->owner);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(opened, 1000);
  EXPECT_EQ(receiver_->driver()->OpenCount(), 0);
}

}  // namespace
}  // namespace device
}  // namespace penstock
