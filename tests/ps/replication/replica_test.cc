#include "ps/replication/replica.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "ps/replication/backup.h"
#include "ps/replication/primary.h"

namespace penstock::ps::replication {
namespace {

using absl::StatusCode;
using Verdict = PushHistory::Verdict;

const ReplicaId kA = {"a", 1};
const ReplicaId kB = {"b", 2};
const ReplicaId kC = {"c", 3};
const WorkerId kWorker = {0, 99};

class Bytes final : public Payload {
 public:
  explicit Bytes(size_t bytes) : bytes_(bytes) {}
  size_t bytes() const override { return bytes_; }

 private:
  const size_t bytes_;
};

absl::Time At(double seconds) {
  return absl::UnixEpoch() + absl::Seconds(seconds);
}

View ViewOf(uint64_t number, ReplicaId primary, std::vector<ReplicaId> backups,
            std::vector<ReplicaId> joiners = {}) {
  return {7, number, {{primary, std::move(backups), std::move(joiners)}}};
}

Options OptionsOf(const ReplicaId& self) {
  Options options;
  options.group = {7, 8, "1.0", 0};
  options.self = self;
  options.max_log_bytes = 10000;
  return options;
}

// Two replicas: A leads view 2, and B is its backup.
class ReplicaTest : public testing::Test {
 protected:
  ReplicaTest()
      : a_(OptionsOf(kA), PushHistory(), true),
        b_(OptionsOf(kB), PushHistory(), false) {
    Move(ViewOf(1, kA, {}, {kB}));
    Exchange(At(0));
    Exchange(At(0));
    EXPECT_EQ(primary().Complete(), std::vector<ReplicaId>{kB});
    Move(ViewOf(2, kA, {kB}));
    EXPECT_TRUE(primary().Join(kWorker, At(0)).ok());
    Exchange(At(0));
  }

  Primary& primary() { return *a_.primary(); }
  Backup& backup() { return *b_.backup(); }

  void Move(const View& view) {
    EXPECT_TRUE(a_.OnView(view, At(0)).ok());
    EXPECT_TRUE(b_.OnView(view, At(0)).ok());
  }

  // Sends the primary's next message to the backup, and the answer back.
  void Exchange(absl::Time now) {
    Append message = *primary().Heartbeat(kB, now);
    primary().OnAnswer(backup().OnAppend(message, now), now);
  }

  uint64_t Push(uint64_t clock, size_t bytes = 10) {
    return *primary().Accept({{kWorker, clock}}, std::make_shared<Bytes>(bytes),
                             At(0));
  }

  absl::Status Refused(const Append& message) {
    return backup().OnAppend(message, At(1)).status;
  }

  Replica a_;
  Replica b_;
};

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

// Entries of a former primary are still in the log, since there is no room for
// those that replace them.
TEST_F(ReplicaTest, ABackupCommitsNothingThatItsPrimaryHasNotSent) {
  const uint64_t former = Push(0, 6000);
  Exchange(At(0));
  ASSERT_EQ(b_.holdings().log.last(), former);
  ASSERT_LT(b_.holdings().committed, former);
  ASSERT_TRUE(b_.OnView(ViewOf(3, kC, {kB}), At(0)).ok());
  auto other = std::make_shared<Entry>();
  other->seq = former;
  other->view = 3;
  other->payload = std::make_shared<Bytes>(6000);
  Append message;
  message.envelope = {OptionsOf(kC).group, kC, 3};
  message.prev_seq = former - 1;
  message.prev_view = *b_.holdings().log.ViewAt(former - 1);
  message.entries = {other};
  message.committed = former;
  const Answer answer = backup().OnAppend(message, At(0));
  EXPECT_EQ(answer.status.code(), StatusCode::kResourceExhausted);
  EXPECT_LT(b_.holdings().committed, former);
}

// A late answer may bring a second snapshot. The primary counts on the entries
// that were held before.
TEST_F(ReplicaTest, ASnapshotDropsNoEntryThatIsHeld) {
  const uint64_t first = Push(0);
  const uint64_t second = Push(1);
  Exchange(At(0));
  ASSERT_LT(b_.holdings().committed, first);
  Snapshot message;
  message.envelope = {OptionsOf(kA).group, kA, 2};
  message.seq = first;
  message.seq_view = 2;
  message.values = std::make_shared<Bytes>(1);
  bool replaces_values = false;
  const Answer answer = backup().OnSnapshot(message, At(0), &replaces_values);
  EXPECT_TRUE(replaces_values);
  EXPECT_EQ(answer.held, second);
  EXPECT_EQ(b_.holdings().applied, first);
  EXPECT_EQ(b_.holdings().log.last(), second);
  EXPECT_TRUE(b_.holdings().log.Has(second));
  EXPECT_FALSE(b_.holdings().log.Has(first));
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

TEST_F(ReplicaTest, AJoinerCatchesUpBySnapshotWhilePushesGoOn) {
  Replica c(OptionsOf(kC));
  const View view = ViewOf(3, kA, {kB}, {kC});
  Move(view);
  ASSERT_TRUE(c.OnView(view, At(0)).ok());
  a_.Applied();
  auto exchange = [&](const Append& message) {
    primary().OnAnswer(c.backup()->OnAppend(message, At(0)), At(0));
  };
  exchange(*primary().Heartbeat(kC, At(0)));
  ASSERT_EQ(primary().WantSnapshot(), std::vector<ReplicaId>{kC});
  const Snapshot snapshot =
      *primary().MakeSnapshot(kC, std::make_shared<Bytes>(1), At(0));
  EXPECT_EQ(snapshot.seq, 1u);
  Push(0);
  Exchange(At(0));
  EXPECT_EQ(primary().committed(), 2u);
  a_.Applied();
  EXPECT_TRUE(a_.holdings().log.Has(2));  // kept for C
  bool replaces_values = false;
  primary().OnAnswer(c.backup()->OnSnapshot(snapshot, At(0), &replaces_values),
                     At(0));
  EXPECT_TRUE(replaces_values);
  exchange(*primary().Next(kC, At(0)));
  exchange(*primary().Heartbeat(kC, At(0)));
  EXPECT_EQ(primary().Complete(), std::vector<ReplicaId>{kC});
  EXPECT_FALSE(a_.holdings().log.Has(2));
  // Repeats the snapshot, which must change nothing.
  c.backup()->OnSnapshot(snapshot, At(0), &replaces_values);
  EXPECT_FALSE(replaces_values);
  EXPECT_EQ(c.holdings().log.last(), 2u);
}

TEST_F(ReplicaTest, ASnapshotGoesOnThroughViewsAndHeartbeats) {
  Replica c(OptionsOf(kC));
  const auto move = [&](const View& view) {
    Move(view);
    ASSERT_TRUE(c.OnView(view, At(0)).ok());
  };
  const auto exchange = [&](const Append& message) {
    const Answer answer = c.backup()->OnAppend(message, At(0));
    primary().OnAnswer(answer, At(0));
    // As the sender of the log does.
    if (!answer.status.ok()) primary().Resend(kC);
  };
  move(ViewOf(3, kA, {kB}, {kC}));
  a_.Applied();
  exchange(*primary().Heartbeat(kC, At(0)));
  const Snapshot snapshot =
      *primary().MakeSnapshot(kC, std::make_shared<Bytes>(1), At(0));
  Push(0);
  Exchange(At(0));
  a_.Applied();
  exchange(*primary().Heartbeat(kC, At(0)));
  exchange(*primary().Heartbeat(kC, At(0)));
  move(ViewOf(4, kA, {}, {kC, kB}));
  EXPECT_TRUE(primary().WantSnapshot().empty());
  bool replaces_values = false;
  const auto take = [&](const Snapshot& message) {
    return c.backup()->OnSnapshot(message, At(0), &replaces_values);
  };
  EXPECT_FALSE(take(snapshot).status.ok());  // of view 3
  const auto renewed = primary().RenewSnapshot(kC, snapshot, At(0));
  ASSERT_TRUE(renewed.has_value());
  primary().OnAnswer(take(*renewed), At(0));
  EXPECT_TRUE(replaces_values);
  EXPECT_FALSE(primary().RenewSnapshot(kC, snapshot, At(0)).has_value());
  // Expects that the entry after the snapshot was kept, and stays when a view
  // comes.
  move(ViewOf(5, kA, {kB}, {kC}));
  exchange(*primary().Next(kC, At(0)));
  exchange(*primary().Heartbeat(kC, At(0)));
  EXPECT_EQ(c.holdings().log.last(), 2u);
  EXPECT_EQ(primary().Complete(), std::vector<ReplicaId>{kC});
}

// In views that A missed, another primary may have replaced the entries that
// were not committed.
TEST_F(ReplicaTest, AJoinerKeepsItsPlaceThroughViewsUpToTheCommittedEntries) {
  Replica c(OptionsOf(kC), PushHistory(), false);
  const auto exchange = [&] {
    const Append message = *primary().Heartbeat(kC, At(0));
    primary().OnAnswer(c.backup()->OnAppend(message, At(0)), At(0));
  };
  Move(ViewOf(3, kA, {kB}, {kC}));
  ASSERT_TRUE(c.OnView(ViewOf(3, kA, {kB}, {kC}), At(0)).ok());
  exchange();
  exchange();
  const uint64_t seq = Push(0);  // which B does not hold
  exchange();
  ASSERT_EQ(c.holdings().log.last(), seq);
  ASSERT_LT(primary().committed(), seq);
  Move(ViewOf(6, kA, {kB}, {kC}));
  const auto next = primary().Next(kC, At(0));
  ASSERT_TRUE(next.has_value());
  EXPECT_EQ(next->prev_seq, primary().committed());
  ASSERT_EQ(next->entries.size(), 1u);
  EXPECT_EQ(next->entries[0]->seq, seq);
}

TEST_F(ReplicaTest, ALostSnapshotIsMadeAnew) {
  Replica c(OptionsOf(kC));
  const View view = ViewOf(3, kA, {kB}, {kC});
  Move(view);
  ASSERT_TRUE(c.OnView(view, At(0)).ok());
  const auto ask = [&] {
    const Append probe = *primary().Heartbeat(kC, At(0));
    primary().OnAnswer(c.backup()->OnAppend(probe, At(0)), At(0));
  };
  ask();
  a_.Applied();
  const auto values = std::make_shared<Bytes>(1);
  const auto lost = primary().MakeSnapshot(kC, values, At(0));
  ASSERT_TRUE(lost.has_value());
  primary().LoseSnapshot(kC);
  EXPECT_FALSE(primary().RenewSnapshot(kC, *lost, At(0)).has_value());
  ask();
  EXPECT_TRUE(primary().MakeSnapshot(kC, values, At(0)).has_value());
}

TEST_F(ReplicaTest, AJoinerThatIsBehindLosesItsPlaceBeforePushesAreRefused) {
  const View view = ViewOf(3, kA, {kB}, {kC});
  Move(view);
  Replica c(OptionsOf(kC));
  ASSERT_TRUE(c.OnView(view, At(0)).ok());
  const Append probe = *primary().Heartbeat(kC, At(0));
  primary().OnAnswer(c.backup()->OnAppend(probe, At(0)), At(0));
  a_.Applied();
  ASSERT_TRUE(primary()
                  .MakeSnapshot(kC, std::make_shared<Bytes>(1), At(0))
                  .has_value());
  for (uint64_t clock = 0; clock < 5; ++clock) {
    Push(clock, 4000);
    Exchange(At(0));
    while (a_.NextToApply() != nullptr) a_.Applied();
    while (b_.NextToApply() != nullptr) b_.Applied();
  }
  EXPECT_EQ(primary().WantSnapshot(), std::vector<ReplicaId>{kC});
}

}  // namespace
}  // namespace penstock::ps::replication
