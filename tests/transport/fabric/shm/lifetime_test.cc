// Tests memory after one of the two ends has gone.

#include <unistd.h>

#include <atomic>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tests/transport/fabric/shm/shm_test_util.h"
#include "transport/fabric/shm/arena.h"
#include "transport/fabric/shm/fabric.h"
#include "transport/fabric/shm/user_arenas.h"
#include "transport/progress/aside.h"

namespace penstock {
namespace fabric {
namespace shm {
namespace {

constexpr uint64_t kMiB = 1 << 20;

class ShmLifetime : public ::testing::Test {
 protected:
  ShmLifetime() : lender_(Arena::Create(16 * kMiB)) {
    Options options;
    options.arena = lender_;
    server_ = absl::make_unique<ShmFabric>(options);
    pair_ = MakePair(server_.get(), &client_);
  }
  void SetUp() override { ASSERT_NE(pair_, nullptr); }

  End& lender() { return pair_->listening; }
  End& borrower() { return pair_->connecting; }
  // Lends a payload with a pattern, and loads it on the other side.
  memory::Bytes Lend(size_t size, uint8_t seed) {
    auto exposure = lender().endpoint->Expose(PatternPayload(size, seed), 1);
    EXPECT_TRUE(exposure.ok()) << exposure.status();
    auto bytes = borrower().endpoint->Load(exposure->region);
    EXPECT_TRUE(bytes.ok()) << bytes.status();
    return bytes->pieces()[0];
  }
  std::shared_ptr<Arena> lender_;
  std::unique_ptr<ShmFabric> server_;
  ShmFabric client_;
  std::unique_ptr<Pair> pair_;
};

TEST_F(ShmLifetime, DestroyedEndIsSeenOnceAfterItsLastPackets) {
  ASSERT_TRUE(Send(lender().endpoint.get(), "last words"));
  lender().endpoint.reset();
  End& end = borrower();
  EXPECT_TRUE(end.endpoint->HasInput());
  EXPECT_TRUE(end.endpoint->Poll());
  EXPECT_EQ(end.events.packets, std::vector<std::string>{"last words"});
  ASSERT_EQ(end.events.broken.size(), 1u);
  EXPECT_TRUE(absl::IsUnavailable(end.events.broken[0]));
  EXPECT_EQ(end.events.broken[0].message(), "peer closed its shared memory");
  EXPECT_FALSE(end.endpoint->HasInput());
  EXPECT_FALSE(end.endpoint->Poll());
  EXPECT_EQ(end.events.broken.size(), 1u);
}

TEST_F(ShmLifetime, LoadedBytesSurviveBothEndsAndAreNotRecycled) {
  memory::Bytes bytes = Lend(4 * kMiB, 9);
  lender().endpoint.reset();
  borrower().endpoint.reset();
  // Uses up the rest of the arena through another connection.
  auto other = MakePair(server_.get(), &client_);
  ASSERT_NE(other, nullptr);
  std::vector<Exposure> exposures;
  for (;;) {
    auto more = other->listening.endpoint->Expose(PatternPayload(kMiB, 200), 1);
    if (!more.ok()) break;
    exposures.push_back(*std::move(more));
  }
  EXPECT_EQ(exposures.size(), 12u);
  EXPECT_TRUE(HasPattern(bytes.span(), 9));

  exposures.clear();
  other.reset();
  EXPECT_TRUE(WaitUntil([this] { return lender_->used() == 4 * kMiB; }));
  bytes = memory::Bytes();
  EXPECT_TRUE(WaitUntil([this] { return lender_->used() == 0; }));
}

TEST_F(ShmLifetime, LoanThatIsBackIsNoticedWithoutAPoll) {
  // Waits without other events on the connection, as happens to an owner of
  // lent memory.
  for (int i = 0; i < 3; ++i) {
    memory::Bytes bytes = Lend(kMiB, 6);
    // Lets the lender look for returned loans while there are none.
    absl::SleepFor(absl::Milliseconds(20));
    EXPECT_EQ(lender_->used(), kMiB);
    bytes = memory::Bytes();
    const absl::Time limit = absl::Now() + absl::Seconds(20);
    while (lender_->used() > 0 && absl::Now() < limit) {
      absl::SleepFor(absl::Milliseconds(1));
    }
    EXPECT_EQ(lender_->used(), 0u);
  }
}

TEST_F(ShmLifetime, FullArenaTakesBackWhatQuietConnectionsHaveReturned) {
  auto other = MakePair(server_.get(), &client_);
  ASSERT_NE(other, nullptr);
  // Repeats, because the timer may reclaim some of the loans.
  for (int i = 0; i < 20; ++i) {
    (void)Lend(12 * kMiB, 7);  // returns the loan immediately
    auto exposure =
        other->listening.endpoint->Expose(PatternPayload(12 * kMiB, 8), 1);
    ASSERT_TRUE(exposure.ok()) << exposure.status();
    (void)other->connecting.endpoint->Load(exposure->region);
  }
}

TEST_F(ShmLifetime, FullArenaIsNotEmptiedOfLoansThatAreRead) {
  auto other = MakePair(server_.get(), &client_);
  ASSERT_NE(other, nullptr);
  const memory::Bytes bytes = Lend(12 * kMiB, 7);
  auto refused =
      other->listening.endpoint->Expose(PatternPayload(12 * kMiB, 8), 1);
  EXPECT_TRUE(absl::IsResourceExhausted(refused.status()));
  EXPECT_TRUE(HasPattern(bytes.span(), 7));
}

TEST_F(ShmLifetime, LastShareOfLoadedBytesClosesEverything) {
  {
    memory::Bytes bytes = Lend(kMiB, 9);
    pair_.reset();
    EXPECT_TRUE(HasPattern(bytes.span(), 9));
    std::thread([&bytes] { bytes = memory::Bytes(); }).join();
  }
  EXPECT_TRUE(WaitUntil([this] { return lender_->used() == 0; }));
}

TEST_F(ShmLifetime, PayloadThatLiesInTheArenaIsLentWhereItLies) {
  std::shared_ptr<ArenaLease> lease = lender_->Allocate(kMiB).value();
  lease->data()[1000] = 5;
  {
    const memory::Bytes part{lease->data() + 1000, 100000, lease};
    auto exposure = lender().endpoint->Expose(memory::Payload(part), 1);
    ASSERT_TRUE(exposure.ok()) << exposure.status();
    EXPECT_EQ(exposure->stable.pieces()[0].data, lease->data() + 1000);
    EXPECT_EQ(lender_->used(), kMiB);
    auto bytes = borrower().endpoint->Load(exposure->region);
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    EXPECT_EQ(bytes->size(), 100000u);
    EXPECT_EQ(bytes->pieces()[0].data[0], 5);
    lender().endpoint->Withdraw(exposure->region);
    lease.reset();
    lender().endpoint->Poll();
    EXPECT_EQ(lender_->used(), kMiB);  // the peer has the memory
  }
  lender().endpoint->Poll();
  EXPECT_EQ(lender_->used(), 0u);
}

// A fixture for lent memory whose owner runs code of the application in its
// destructor. This code may use the connection that has lent the memory. The
// tests end a loan in each of two ways.
class OwnersCode : public ShmLifetime {
 protected:
  // Lends memory whose owner uses the connection in its destructor, from
  // another thread.
  Exposure LendOwned() {
    std::shared_ptr<ArenaLease> lease = lender_->Allocate(1000).value();
    Endpoint* const endpoint = lender().endpoint.get();
    auto owner = std::shared_ptr<const void>(
        lease->data(), [lease, endpoint, this](const void*) {
          use_ = std::async(std::launch::async, [endpoint] {
            (void)endpoint->Expose(PatternPayload(10, 1), 1);
          });
          in_time_ = use_.wait_for(absl::ToChronoSeconds(kTestDeadline)) ==
                     std::future_status::ready;
        });
    return lender()
        .endpoint
        ->Expose(memory::Payload(memory::Bytes{lease->data(), 1000, owner}), 1)
        .value();
  }
  std::future<void> use_;
  std::atomic<bool> in_time_{false};
};

TEST_F(OwnersCode, RunsUnlockedWhenThePeerGivesBack) {
  ASSERT_TRUE(borrower().endpoint->Load(LendOwned().region).ok());
  lender().endpoint->Poll();
  EXPECT_TRUE(in_time_);
}

TEST_F(OwnersCode, RunsUnlockedWhenThePeerIsGone) {
  (void)LendOwned();
  borrower().endpoint.reset();
  EXPECT_TRUE(WaitUntil([this] { return in_time_.load(); }));
}

TEST_F(ShmLifetime, PiecesThatLieInTheArenaAreCopiedTogether) {
  std::shared_ptr<ArenaLease> lease = lender_->Allocate(kMiB).value();
  memory::Payload payload;
  payload.Append(memory::Bytes{lease->data(), 1000, lease});
  payload.Append(memory::Bytes{lease->data() + 5000, 1000, lease});
  auto exposure = lender().endpoint->Expose(payload, 1);
  ASSERT_TRUE(exposure.ok()) << exposure.status();
  EXPECT_EQ(exposure->stable.pieces().size(), 1u);
  EXPECT_GT(lender_->used(), kMiB);
}

TEST_F(ShmLifetime, LoansThatNobodyLoadedEndWithTheBorrower) {
  ASSERT_TRUE(lender().endpoint->Expose(PatternPayload(kMiB, 1), 1).ok());
  EXPECT_EQ(lender_->used(), kMiB);
  borrower().endpoint.reset();
  EXPECT_TRUE(WaitUntil([this] { return lender_->used() == 0; }));
}

TEST_F(ShmLifetime, BothSidesWithLoansOutDoNotWaitForEachOther) {
  ASSERT_TRUE(lender().endpoint->Expose(PatternPayload(kMiB, 1), 1).ok());
  // The arena of the process, which the client uses.
  auto theirs = ArenaFor(geteuid()).value();
  const uint64_t before = theirs->used();
  ASSERT_TRUE(borrower().endpoint->Expose(PatternPayload(kMiB, 1), 1).ok());
  pair_.reset();
  EXPECT_TRUE(WaitUntil(
      [&] { return lender_->used() == 0 && theirs->used() == before; }));
}

TEST_F(ShmLifetime, LingeringLenderNoticesSingleReleases) {
  memory::Bytes first = Lend(kMiB, 1);
  memory::Bytes second = Lend(kMiB, 2);
  pair_.reset();
  first = memory::Bytes();
  EXPECT_TRUE(WaitUntil([this] { return lender_->used() == kMiB; }));
  EXPECT_TRUE(HasPattern(second.span(), 2));
}

TEST_F(ShmLifetime, ManyConnectionsLeaveNoDescriptors) {
  // Makes a first connection. The process keeps some descriptors afterwards:
  // the event loop's, the listener's, and that of the arena's first segment.
  // The test checks that all others are closed.
  (void)Lend(kMiB, 1);
  ASSERT_TRUE(WaitUntil([] { return progress::TasksAside() == 0; }));
  const size_t with_one_pair = CountFds();
  // The number of descriptors of a pair: each side has a socket and two
  // doorbells.
  constexpr size_t kOfAPair = 6;
  for (int i = 0; i < 20; ++i) {
    pair_ = MakePair(server_.get(), &client_);
    ASSERT_NE(pair_, nullptr);
    memory::Bytes bytes = Lend(1000, 1);
    if (i % 2 == 0) lender().endpoint.reset();
    if (i % 3 == 0) bytes = memory::Bytes();
    pair_.reset();
  }
  EXPECT_TRUE(WaitUntil([=] { return CountFds() == with_one_pair - kOfAPair; }))
      << CountFds() << " after " << with_one_pair;
}

TEST_F(ShmLifetime, ExposeToAGonePeerIsUnavailable) {
  borrower().endpoint.reset();
  EXPECT_TRUE(WaitUntil([this] {
    return absl::IsUnavailable(
        lender().endpoint->Expose(PatternPayload(10, 1), 1).status());
  }));
  EXPECT_EQ(lender_->used(), 0u);
}

}  // namespace
}  // namespace shm
}  // namespace fabric
}  // namespace penstock
