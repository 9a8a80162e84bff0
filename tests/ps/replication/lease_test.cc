#include "ps/replication/lease.h"

#include "gtest/gtest.h"

namespace penstock::ps::replication {
namespace {

const ReplicaId kA = {"a", 1};
const ReplicaId kB = {"b", 2};

absl::Time At(double seconds) {
  return absl::UnixEpoch() + absl::Seconds(seconds);
}

TEST(LeaseTest, EndsBeforeThePromise) {
  Lease lease({absl::Seconds(2), absl::Milliseconds(100)});
  Promises promises;
  const LeaseStamp asked = lease.Ask(At(10));
  // The request takes one second to arrive, and the answer half a second.
  promises.Give(kA, absl::Seconds(2), At(11));
  lease.Grant(kB, asked, At(11.5));
  EXPECT_TRUE(lease.Covers({kB}, At(11.89)));
  EXPECT_FALSE(lease.Covers({kB}, At(11.91)));
  EXPECT_FALSE(promises.AreOver(At(12.99)));
  EXPECT_TRUE(promises.AreOver(At(13)));
}

TEST(LeaseTest, NeedsEachReplica) {
  Lease lease({});
  EXPECT_TRUE(lease.Covers({}, At(1)));
  lease.Grant(kA, lease.Ask(At(1)), At(1));
  EXPECT_TRUE(lease.Covers({kA}, At(1)));
  EXPECT_FALSE(lease.Covers({kA, kB}, At(1)));
}

TEST(LeaseTest, ALateAnswerShortensNothing) {
  Lease lease({absl::Seconds(2), absl::ZeroDuration()});
  const LeaseStamp first = lease.Ask(At(1));
  const LeaseStamp second = lease.Ask(At(2));
  lease.Grant(kA, second, At(2));
  lease.Grant(kA, first, At(2.5));
  EXPECT_TRUE(lease.Covers({kA}, At(3.9)));
}

TEST(LeaseTest, AClockThatGoesBackEndsAllLeases) {
  Lease lease({});
  const LeaseStamp before = lease.Ask(At(100));
  lease.Grant(kA, before, At(100));
  EXPECT_FALSE(lease.Covers({kA}, At(50)));
  // Lets the clock pass the old end of the lease again.
  lease.Grant(kA, before, At(100.5));
  EXPECT_FALSE(lease.Covers({kA}, At(100.5)));
  lease.Grant(kA, lease.Ask(At(101)), At(101));
  EXPECT_TRUE(lease.Covers({kA}, At(101)));
}

TEST(LeaseTest, AnAnswerFromTheFutureIsIgnored) {
  Lease lease({});
  lease.Grant(kA, {At(100), 0}, At(1));
  EXPECT_FALSE(lease.Covers({kA}, At(1)));
}

TEST(LeaseTest, PromisesToSeveralPrimariesAllBind) {
  Promises promises;
  promises.Give(kA, absl::Seconds(5), At(1));
  promises.Give(kB, absl::Seconds(1), At(2));
  EXPECT_EQ(promises.until(), At(6));
  EXPECT_FALSE(promises.AreOver(At(4)));
  promises.Release(kA);
  EXPECT_TRUE(promises.AreOver(At(4)));
}

TEST(LeaseTest, AClockThatGoesBackMakesAPromiseLastOnceMoreAtMost) {
  Promises promises;
  promises.Give(kA, absl::Seconds(5), At(1000));
  EXPECT_FALSE(promises.AreOver(At(1)));
  EXPECT_FALSE(promises.AreOver(At(5.9)));
  EXPECT_TRUE(promises.AreOver(At(6)));
}

}  // namespace
}  // namespace penstock::ps::replication
