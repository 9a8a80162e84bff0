#include "frameworks/torch/remote_memory.h"

#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/synchronization/notification.h"
#include "collectives/group.h"
#include "frameworks/torch/mailbox.h"
#include "frameworks/torch/workers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/frameworks/torch/memory_board.h"
#include "transport/memory/bytes.h"

namespace penstock {
namespace pytorch {
namespace {

using testing::HasSubstr;

using Vector = std::vector<uint8_t>;

memory::Bytes BytesOf(Vector bytes) {
  const auto owner = std::make_shared<Vector>(std::move(bytes));
  return {owner->data(), owner->size(), owner};
}

// Calls `start` with a callback `done`, and returns the status that `done`
// receives.
absl::Status Await(const std::function<void(RemoteMemory::Done)>& start) {
  struct End {
    absl::Notification came;
    absl::Status status;
  };
  const auto end = std::make_shared<End>();
  start([end](const absl::Status& status) {
    end->status = status;
    end->came.Notify();
  });
  end->came.WaitForNotification();
  return end->status;
}

absl::Status Put(RemoteMemory* memory, int to, int64_t offset, Vector bytes) {
  return Await([&](RemoteMemory::Done done) {
    memory->Put(to, offset, BytesOf(std::move(bytes)), std::move(done));
  });
}

absl::Status Signal(RemoteMemory* memory, int to) {
  return Await([&](RemoteMemory::Done done) { memory->Signal(to, done); });
}

absl::Status AwaitSignal(RemoteMemory* memory, int from) {
  return Await([&](RemoteMemory::Done done) {
    memory->AwaitSignal(from, std::move(done));
  });
}

// A rank of a test.
struct Rank {
  int rank;
  collectives::Group* group;
  Mailbox* mailbox;
  RemoteMemory* memory;
  Vector bytes;  // memory that other ranks write
};

// Runs ranks with windows of `size` bytes of zeros.
void RunWindows(int ranks, size_t size, const std::function<void(Rank*)>& run) {
  RunRanks(ranks, [&](collectives::Group* group) {
    Workers workers;
    auto mailbox = Mailbox::Open(group, "127.0.0.1", &workers);
    ASSERT_TRUE(mailbox.ok()) << mailbox.status();
    const auto memory = std::make_shared<RemoteMemory>(
        mailbox->get(), group->rank(), ranks, /*number=*/0);
    Rank rank{group->rank(), group, mailbox->get(), memory.get(), Vector(size)};
    memory->Attach({rank.bytes.data(), rank.bytes.size(), nullptr});
    memory->Open();
    ASSERT_TRUE(group->Barrier().ok());
    run(&rank);
    EXPECT_EQ(group->Barrier(), absl::OkStatus());
    memory->Detach();
    memory->Close();
  });
}

TEST(RemoteMemoryTest, RandomWritesArriveBeforeTheSignalThatFollows) {
  constexpr int kRanks = 3;
  constexpr int kWrites = 100;
  constexpr size_t kSize = 300'000;
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  RunWindows(kRanks, kRanks * kSize, [&](Rank* rank) {
    // Computes the expected values. Each rank knows the writes of the others.
    std::vector<Vector> expected(kRanks, Vector(kSize));
    std::mt19937 random(seed);
    for (int from = 0; from < kRanks; ++from) {
      for (int i = 0; i < kWrites; ++i) {
        const size_t size = random() % (size_t{1} << random() % 18);
        const size_t offset = random() % (kSize - size);
        const auto value = static_cast<uint8_t>(random());
        std::memset(expected[from].data() + offset, value, size);
        for (int to = 0; from == rank->rank && to < kRanks; ++to) {
          rank->memory->Put(to, static_cast<int64_t>(from * kSize + offset),
                            BytesOf(Vector(size, value)),
                            [](const absl::Status& status) {
                              EXPECT_EQ(status, absl::OkStatus());
                            });
        }
      }
      for (int to = 0; from == rank->rank && to < kRanks; ++to) {
        EXPECT_EQ(Signal(rank->memory, to), absl::OkStatus());
      }
    }
    for (int from = 0; from < kRanks; ++from) {
      ASSERT_EQ(AwaitSignal(rank->memory, from), absl::OkStatus());
      EXPECT_EQ(std::memcmp(rank->bytes.data() + from * kSize,
                            expected[from].data(), kSize),
                0)
          << "from rank " << from;
    }
  });
}

TEST(RemoteMemoryTest, ARefusedWriteShiftsNoOthers) {
  RunWindows(2, 100'000, [](Rank* rank) {
    if (rank->rank == 0) {
      for (const int64_t offset : {int64_t{-1}, int64_t{99'999}, INT64_MAX}) {
        const absl::Status status =
            Put(rank->memory, 1, offset, Vector(70'000, 1));
        EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
        EXPECT_THAT(status.message(),
                    HasSubstr("the window of rank 1 has 100000"));
      }
      EXPECT_EQ(Put(rank->memory, 1, 30'000, Vector(70'000, 2)),
                absl::OkStatus());
      EXPECT_EQ(Signal(rank->memory, 1), absl::OkStatus());
    } else {
      EXPECT_EQ(AwaitSignal(rank->memory, 0), absl::OkStatus());
      Vector expected(30'000, 0);
      expected.resize(100'000, 2);
      EXPECT_EQ(rank->bytes, expected);
    }
  });
}

TEST(RemoteMemoryTest, AMessageOfAnotherVersionEndsTheOrigin) {
  for (const size_t size : {size_t{0}, size_t{3}, size_t{16}}) {
    RunWindows(2, 8, [size](Rank* rank) {
      if (rank->rank == 0) {
        const absl::Status sent = Await([&](RemoteMemory::Done done) {
          rank->mailbox->Send(
              1, uint32_t{1} << 31, memory::Payload(BytesOf(Vector(size, 9))),
              [done](const absl::Status& status, int) { done(status); });
        });
        EXPECT_THAT(sent.ToString(), HasSubstr("of another version"));
      } else {
        EXPECT_THAT(AwaitSignal(rank->memory, 0).ToString(),
                    HasSubstr("FAILED_PRECONDITION: rank 0 sent an operation"));
      }
    });
  }
}

TEST(RemoteMemoryTest, TheEndOfTheMailboxEndsAllWaits) {
  RunWindows(2, 8, [](Rank* rank) {
    if (rank->rank != 0) return;
    std::vector<absl::Status> ends;
    for (const int from : {0, 1, 0}) {
      rank->memory->AwaitSignal(
          from, [&](const absl::Status& status) { ends.push_back(status); });
    }
    rank->mailbox->End(absl::CancelledError("test"));
    EXPECT_THAT(ends, testing::Each(absl::CancelledError("test")));
    EXPECT_EQ(ends.size(), 3);
    EXPECT_EQ(AwaitSignal(rank->memory, 0), absl::CancelledError("test"));
  });
}

TEST(RemoteMemoryTest, AWithdrawnWaitTakesNoSignal) {
  RunWindows(2, 8, [](Rank* rank) {
    const int other = 1 - rank->rank;
    for (const int from : {rank->rank, other}) {
      const auto first = rank->memory->AwaitSignal(
          from,
          [](const absl::Status&) { ADD_FAILURE() << "it took a signal"; });
      EXPECT_TRUE(rank->memory->Withdraw(from, first));
      EXPECT_FALSE(rank->memory->Withdraw(from, first));
    }
    EXPECT_EQ(rank->group->Barrier(), absl::OkStatus());
    for (const int to : {rank->rank, other}) {
      EXPECT_EQ(Signal(rank->memory, to), absl::OkStatus());
    }
    for (const int from : {rank->rank, other}) {
      EXPECT_EQ(AwaitSignal(rank->memory, from), absl::OkStatus());
    }
  });
}

}  // namespace
}  // namespace pytorch
}  // namespace penstock
