// Tests replicas that join: by a snapshot, and by the entries after it.

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "ps/replication/backup.h"
#include "ps/replication/primary.h"
#include "ps/replication/replica.h"
#include "tests/ps/replication/two_replicas.h"

namespace penstock::ps::replication {
namespace {

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
  // Expects that a repeated snapshot changes nothing.
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
    // Sends the entries again after a refusal, as the sender of the log does.
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
  EXPECT_FALSE(take(snapshot).status.ok());  // the snapshot belongs to view 3
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

// Expects that a joiner keeps its progress only up to the committed entries.
// Another primary may have replaced later entries in views that primary A has
// missed.
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
  const uint64_t seq = Push(0);  // B does not hold the entry
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

// A late answer may bring a second snapshot. The primary must still count the
// entries that the replica held before.
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

TEST_F(ReplicaTest, AReplicaThatTakesASnapshotPromisesNotToLead) {
  const uint64_t seq = Push(0);
  Exchange(At(0));
  const absl::Time before = b_.holdings().promises.until();
  Snapshot message;
  message.envelope = {OptionsOf(kA).group, kA, 2};
  message.seq = seq;
  message.seq_view = 2;
  message.values = std::make_shared<Bytes>(1);
  message.lease = OptionsOf(kA).lease.duration;
  bool replaces_values = false;
  backup().OnSnapshot(message, At(1), &replaces_values);
  EXPECT_EQ(b_.holdings().promises.until(), before + absl::Seconds(1));
}

}  // namespace
}  // namespace penstock::ps::replication
