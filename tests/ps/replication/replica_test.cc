#include "ps/replication/replica.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "ps/replication/backup.h"
#include "ps/replication/primary.h"
#include "tests/ps/replication/two_replicas.h"

namespace penstock::ps::replication {
namespace {

using absl::StatusCode;
using Verdict = PushHistory::Verdict;

TEST_F(ReplicaTest, APushIsCommittedOnceTheBackupHoldsIt) {
  const uint64_t seq = Push(0);
  EXPECT_LT(primary().committed(), seq);
  Exchange(At(0));
  EXPECT_EQ(primary().committed(), seq);
  EXPECT_EQ(b_.holdings().log.last(), seq);
}

TEST_F(ReplicaTest, AMessageThatIsNotForThisBackupIsRefused) {
  Push(0);
  const Append good = *primary().Heartbeat(kB, At(1));
  auto refused = [&](void (*change)(Append*)) {
    Append message = good;
    change(&message);
    return Refused(message).code();
  };
  EXPECT_EQ(refused([](Append* m) { m->envelope.group.run = 1; }),
            StatusCode::kFailedPrecondition);
  EXPECT_EQ(refused([](Append* m) { m->envelope.group.model = 1; }),
            StatusCode::kFailedPrecondition);
  EXPECT_EQ(refused([](Append* m) { m->envelope.group.build = "2"; }),
            StatusCode::kFailedPrecondition);
  EXPECT_EQ(refused([](Append* m) { m->envelope.group.shard = 1; }),
            StatusCode::kFailedPrecondition);
  EXPECT_EQ(refused([](Append* m) { m->envelope.view = 1; }),
            StatusCode::kFailedPrecondition);
  EXPECT_EQ(refused([](Append* m) { m->envelope.view = 3; }),
            StatusCode::kUnavailable);
  EXPECT_EQ(refused([](Append* m) { m->envelope.from = kC; }),
            StatusCode::kPermissionDenied);
  EXPECT_EQ(refused([](Append* m) { m->lease = absl::Hours(1); }),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(refused([](Append* m) { m->entries.push_back(nullptr); }),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(refused([](Append* m) { m->entries.push_back(m->entries[0]); }),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(refused([](Append* m) {
              m->prev_seq += 5;
              m->entries.clear();
            }),
            StatusCode::kOutOfRange);
  // Expects that none of the entries was accepted, and that none extends the
  // promise.
  EXPECT_EQ(b_.holdings().log.last(), 1u);
  EXPECT_TRUE(Refused(good).ok());
  EXPECT_TRUE(Refused(good).ok());
  EXPECT_EQ(b_.holdings().log.last(), 2u);
}

TEST_F(ReplicaTest, ABackupWithoutRoomHoldsWhatFits) {
  Push(0, 6000);
  Exchange(At(0));
  // Lets A apply the entry, but not B.
  a_.Applied();
  a_.Applied();
  Push(1, 6000);
  const Append message = *primary().Heartbeat(kB, At(0));
  const Answer answer = backup().OnAppend(message, At(0));
  EXPECT_EQ(answer.status.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(answer.held, 2u);
  primary().OnAnswer(answer, At(0));
  Exchange(At(0));
  b_.Applied();
  b_.Applied();
  Exchange(At(0));
  Exchange(At(0));
  EXPECT_EQ(primary().committed(), 3u);
}

// Expects that the primary keeps applied entries for the joiner while a
// snapshot is in progress.
TEST_F(ReplicaTest, AFormerPrimaryHasRoomForTheEntriesOfItsSuccessor) {
  const View view = ViewOf(3, kA, {kB}, {kC});
  Move(view);
  Replica c(OptionsOf(kC));
  ASSERT_TRUE(c.OnView(view, At(0)).ok());
  const Append probe = *primary().Heartbeat(kC, At(0));
  primary().OnAnswer(c.backup()->OnAppend(probe, At(0)), At(0));
  const auto snapshot =
      primary().MakeSnapshot(kC, std::make_shared<Bytes>(1), At(0));
  ASSERT_TRUE(snapshot.has_value());
  Push(0, 6000);
  Exchange(At(0));
  Exchange(At(0));
  while (a_.NextToApply() != nullptr) a_.Applied();
  while (b_.NextToApply() != nullptr) b_.Applied();
  ASSERT_EQ(a_.holdings().applied, 2u);
  ASSERT_TRUE(a_.holdings().log.Has(2));
  Move(ViewOf(4, kB, {kA}));
  Primary& successor = *b_.primary();
  const auto payload = std::make_shared<Bytes>(6000);
  ASSERT_TRUE(successor.Accept({{kWorker, 1}}, payload, At(0)).ok());
  const Append message = *successor.Heartbeat(kA, At(0));
  const Answer answer = a_.backup()->OnAppend(message, At(0));
  EXPECT_TRUE(answer.status.ok()) << answer.status;
  EXPECT_EQ(answer.held, 3u);
}

// Tests an entry of a former primary. The entry stays in the log until another
// entry replaces it. The log must have room for that other entry.
TEST_F(ReplicaTest, ABackupCommitsNothingThatItsPrimaryHasNotSent) {
  const uint64_t former = Push(0, 6000);
  Exchange(At(0));
  ASSERT_EQ(b_.holdings().log.last(), former);
  ASSERT_LT(b_.holdings().committed, former);
  ASSERT_TRUE(b_.OnView(ViewOf(3, kC, {kB}), At(0)).ok());
  Append message;
  message.envelope = {OptionsOf(kC).group, kC, 3};
  message.prev_seq = former - 1;
  message.prev_view = *b_.holdings().log.ViewAt(former - 1);
  message.committed = former;
  EXPECT_TRUE(backup().OnAppend(message, At(0)).status.ok());
  EXPECT_LT(b_.holdings().committed, former);
  auto other = std::make_shared<Entry>();
  other->seq = former;
  other->view = 3;
  other->payload = std::make_shared<Bytes>(6000);
  message.entries = {other};
  const Answer answer = backup().OnAppend(message, At(0));
  EXPECT_TRUE(answer.status.ok()) << answer.status;
  EXPECT_EQ(b_.holdings().log.ViewAt(former), 3u);
  EXPECT_EQ(b_.holdings().committed, former);
}

TEST_F(ReplicaTest, AFullLogRefusesPushesAndNamesTheSlowBackup) {
  Push(0, 6000);
  const auto refused =
      primary().Accept({{kWorker, 1}}, std::make_shared<Bytes>(6000), At(0));
  EXPECT_EQ(refused.status().code(), StatusCode::kResourceExhausted);
  EXPECT_NE(refused.status().message().find("b (incarnation 2) holds 1 of 2"),
            absl::string_view::npos)
      << refused.status();
  EXPECT_TRUE(primary().Overdue(At(2)).empty());
  ASSERT_EQ(primary().Overdue(At(3.1)).size(), 1u);
  EXPECT_EQ(primary().Overdue(At(3.1))[0].replica, kB);
  const auto never =
      primary().Accept({{kWorker, 1}}, std::make_shared<Bytes>(20000), At(0));
  EXPECT_EQ(never.status().code(), StatusCode::kInvalidArgument);
}

TEST_F(ReplicaTest, ASilentBackupIsOverdueButNotByAJumpOfTheClock) {
  primary().Heartbeat(kB, At(0));
  EXPECT_TRUE(primary().Overdue(At(1000)).empty());
  primary().Heartbeat(kB, At(1));
  primary().Heartbeat(kB, At(2));
  EXPECT_TRUE(primary().Overdue(At(2.9)).empty());
  EXPECT_EQ(primary().Overdue(At(3.1)).size(), 1u);
}

TEST_F(ReplicaTest, APrimaryWithoutAnswersStopsBeforeItsBackupBegins) {
  EXPECT_TRUE(primary().MayAnswer(At(1.8)));
  EXPECT_FALSE(primary().MayAnswer(At(1.95)));
  ASSERT_TRUE(b_.OnView(ViewOf(3, kB, {}), At(1)).ok());
  EXPECT_FALSE(b_.primary()->MayAnswer(At(1.99)));
  EXPECT_TRUE(b_.primary()->MayAnswer(At(2)));
}

TEST_F(ReplicaTest, ASuccessorBeginsAtOnceWhenThePrimaryHasHeard) {
  Move(ViewOf(3, kB, {kA}));
  Primary& successor = *b_.primary();
  EXPECT_FALSE(successor.MayAnswer(At(0.1)));
  const Append message = *successor.Heartbeat(kA, At(0.1));
  successor.OnAnswer(a_.backup()->OnAppend(message, At(0.1)), At(0.1));
  EXPECT_TRUE(successor.MayAnswer(At(0.1)));
}

TEST_F(ReplicaTest, ASuccessorKnowsThePushesItHolds) {
  const uint64_t seq = Push(0);
  Exchange(At(0));
  ASSERT_TRUE(b_.OnView(ViewOf(3, kB, {}), At(10)).ok());
  EXPECT_EQ(b_.primary()->Judge({kWorker, 0}).verdict, Verdict::kRepeated);
  EXPECT_EQ(b_.primary()->Judge({kWorker, 0}).seq, seq);
  EXPECT_EQ(b_.primary()->Judge({kWorker, 1}).verdict, Verdict::kNew);
  EXPECT_FALSE(b_.primary()->HasAppliedInherited());
}

TEST_F(ReplicaTest, ADeposedPrimaryDropsWhatNobodyElseHolds) {
  Push(0);
  Move(ViewOf(3, kB, {kA}));
  Primary& successor = *b_.primary();
  ASSERT_TRUE(successor.Accept({{kWorker, 0}}, nullptr, At(5)).ok());
  const Append message = *successor.Next(kA, At(5));
  successor.OnAnswer(a_.backup()->OnAppend(message, At(5)), At(5));
  EXPECT_EQ(successor.committed(), 2u);
  EXPECT_EQ(a_.holdings().log.ViewAt(2), 3u);
}

TEST_F(ReplicaTest, AnEntryIsNotAppliedBeforeItIsCommitted) {
  Push(0);
  EXPECT_EQ(a_.NextToApply()->seq, 1u);
  a_.Applied();
  EXPECT_EQ(a_.NextToApply(), nullptr);
}

TEST_F(ReplicaTest, ViewsThatGoBackOrDifferAreRefused) {
  EXPECT_EQ(a_.OnView(ViewOf(1, kB, {}), At(0)).code(),
            StatusCode::kFailedPrecondition);
  EXPECT_EQ(a_.OnView(ViewOf(2, kB, {kA}), At(0)).code(),
            StatusCode::kFailedPrecondition);
  EXPECT_TRUE(a_.OnView(ViewOf(2, kA, {kB}), At(0)).ok());
  View other = ViewOf(3, kB, {});
  other.run = 8;
  EXPECT_EQ(a_.OnView(other, At(0)).code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(a_.OnView(ViewOf(3, kA, {kA}), At(0)).code(),
            StatusCode::kInvalidArgument);
  EXPECT_NE(a_.primary(), nullptr);
}

TEST_F(ReplicaTest, AReplicaThatHasNotCaughtUpNeverLeads) {
  Replica c(OptionsOf(kC));
  ASSERT_TRUE(c.OnView(ViewOf(3, kA, {kB}, {kC}), At(0)).ok());
  EXPECT_EQ(c.OnView(ViewOf(4, kC, {}), At(0)).code(), StatusCode::kDataLoss);
  EXPECT_EQ(c.primary(), nullptr);
  // Tests a replica that was complete, and then missed a view in which it was a
  // joiner. The replica must catch up again.
  ASSERT_TRUE(b_.OnView(ViewOf(3, kA, {}), At(0)).ok());
  EXPECT_EQ(b_.OnView(ViewOf(4, kB, {}), At(0)).code(), StatusCode::kDataLoss);
}

}  // namespace
}  // namespace penstock::ps::replication
