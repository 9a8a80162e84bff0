#include "tests/oracle/rules.h"

#include <set>
#include <string>

#include "gtest/gtest.h"

namespace penstock::oracle {
namespace {

Message MessageOf(size_t size, uint64_t seed) {
  Message message;
  message.size = size;
  message.seed = seed;
  return message;
}

// Returns a chat: two messages up, two down, and two more with the status.
Plan PlanWith(Ending ending) {
  Plan plan;
  plan.kind = Kind::kChat;
  plan.phases.resize(1);
  plan.phases[0].up = {MessageOf(10, 1), MessageOf(20, 2)};
  plan.phases[0].down = {MessageOf(30, 3), MessageOf(40, 4)};
  plan.last = {MessageOf(50, 5), MessageOf(60, 6)};
  plan.trailing = {{"x-key", "value"}};
  plan.ending = ending;
  return plan;
}

// Returns the outcome with everything in the plan.
Outcome CompleteOutcome(const Plan& plan) {
  Outcome outcome;
  outcome.status = plan.status;
  outcome.initial = plan.initial;
  outcome.trailing = plan.trailing;
  for (const Message& each : plan.phases[0].down) {
    outcome.received.push_back(DigestOf(each));
  }
  for (const Message& each : plan.last) {
    outcome.received.push_back(DigestOf(each));
  }
  outcome.runs = 1;
  for (const Message& each : plan.phases[0].up) {
    outcome.server_received.push_back(DigestOf(each));
  }
  return outcome;
}

Outcome CancelledOutcome() {
  Outcome outcome;
  outcome.status = grpc::Status(grpc::StatusCode::CANCELLED, "CANCELLED");
  return outcome;
}

TEST(RulesTest, TheSameOutcomeIsRight) {
  const Plan plan = PlanWith(Ending::kFinish);
  const Outcome outcome = CompleteOutcome(plan);
  EXPECT_EQ(Judge(Program(), plan, outcome, outcome), "");
}

TEST(RulesTest, OkWithAMessageMissingIsNeverRight) {
  for (Ending ending : {Ending::kFinish, Ending::kCancelBehind,
                        Ending::kDeadlineBehind, Ending::kRandomCancel}) {
    const Plan plan = PlanWith(ending);
    Outcome outcome = CompleteOutcome(plan);
    outcome.received.pop_back();
    EXPECT_NE(Judge(Program(), plan, outcome, outcome), "") << ToText(ending);
  }
}

TEST(RulesTest, OkWithoutTheServersMetadataIsNeverRight) {
  const Plan plan = PlanWith(Ending::kRandomCancel);
  Outcome outcome = CompleteOutcome(plan);
  outcome.trailing.clear();
  EXPECT_NE(Judge(Program(), plan, outcome, outcome), "");
}

// Tests missing initial metadata. gRPC's filters drop either all of it or none,
// and only in a cancelled call.
TEST(RulesTest, InitialMetadataIsMissingWholeAndWithACancelOnly) {
  for (Ending ending : {Ending::kFinish, Ending::kRandomCancel}) {
    Plan plan = PlanWith(ending);
    plan.initial = {{"x-a", "1"}, {"x-b", "2"}};
    const Outcome complete = CompleteOutcome(plan);
    Outcome without = complete;
    without.initial.clear();
    EXPECT_EQ(Judge(Program(), plan, complete, without) == "",
              ending == Ending::kRandomCancel);
    Outcome with_half = complete;
    with_half.initial.pop_back();
    EXPECT_NE(Judge(Program(), plan, complete, with_half), "");
  }
}

TEST(RulesTest, OkThatTheServerDidNotSayIsNeverRight) {
  Plan plan = PlanWith(Ending::kRandomCancel);
  const Outcome outcome = CompleteOutcome(plan);
  plan.status = grpc::Status(grpc::StatusCode::NOT_FOUND, "no");
  EXPECT_NE(Judge(Program(), plan, outcome, outcome), "");
}

TEST(RulesTest, GapsAndChangesAreNeverRight) {
  const Plan plan = PlanWith(Ending::kRandomCancel);
  const Outcome complete = CompleteOutcome(plan);
  Outcome with_gap = CancelledOutcome();
  with_gap.received = {complete.received[0], complete.received[2]};
  EXPECT_NE(Judge(Program(), plan, CancelledOutcome(), with_gap), "");
  Outcome changed = CancelledOutcome();
  changed.received = {complete.received[0]};
  changed.received[0].sum ^= 1;
  EXPECT_NE(Judge(Program(), plan, CancelledOutcome(), changed), "");
}

TEST(RulesTest, ARandomCancelMayComeBeforeTheEndOrAfterIt) {
  const Plan plan = PlanWith(Ending::kRandomCancel);
  const Outcome complete = CompleteOutcome(plan);
  Outcome cancelled = CancelledOutcome();
  cancelled.received = {complete.received[0]};
  EXPECT_EQ(Judge(Program(), plan, complete, cancelled), "");
  EXPECT_EQ(Judge(Program(), plan, cancelled, complete), "");
}

TEST(RulesTest, ARandomCancelExplainsNoOtherCode) {
  const Plan plan = PlanWith(Ending::kRandomCancel);
  Outcome outcome = CancelledOutcome();
  outcome.status = grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "push");
  EXPECT_NE(Judge(Program(), plan, CancelledOutcome(), outcome), "");
}

TEST(RulesTest, WhatIsDeterminedIsComparedToTheLetter) {
  const Plan plan = PlanWith(Ending::kServerCancels);
  Outcome outcome = CancelledOutcome();
  outcome.status = grpc::Status(grpc::StatusCode::CANCELLED, "another text");
  EXPECT_NE(Judge(Program(), plan, CancelledOutcome(), outcome), "");
}

TEST(MisreadConnectTest, IsKnownByWhatConnectDoesNotSay) {
  const std::string all = "failed to connect to all addresses; last error: ";
  EXPECT_TRUE(TellsOfMisreadConnect(
      all + "UNKNOWN: ipv4:127.0.0.1:39659: Invalid argument"));
  // Failures of Penstock's connections, and of a missing server.
  for (const char* other :
       {"UNAVAILABLE: ipv4:127.0.0.1:39659: recvmsg:Invalid argument",
        "UNKNOWN: ipv4:127.0.0.1:39659: Failed to connect to remote host: "
        "Connection refused",
        "UNKNOWN: ipv4:127.0.0.1:39659: Connection refused"}) {
    EXPECT_FALSE(TellsOfMisreadConnect(all + other)) << other;
  }
  EXPECT_FALSE(TellsOfMisreadConnect(""));
}

TEST(ProgramTest, IsTheSameForTheSameSeed) {
  std::set<std::string> programs;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    const Program a = MakeProgram(seed);
    const Program b = MakeProgram(seed);
    ASSERT_EQ(ToText(a), ToText(b));
    ASSERT_EQ(a.calls.size(), b.calls.size());
    for (size_t i = 0; i < a.calls.size(); ++i) {
      ASSERT_EQ(ToText(a.calls[i]), ToText(b.calls[i]));
      programs.insert(ToText(a.calls[i]));
    }
  }
  EXPECT_GT(programs.size(), 1000u);
}

TEST(ProgramTest, HasEachKindApiAndEnding) {
  std::set<std::string> seen;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    for (const Plan& plan : MakeProgram(seed).calls) {
      seen.insert("client " + ToText(plan.client));
      seen.insert("server " + ToText(plan.server));
      seen.insert(ToText(plan.kind));
      seen.insert(ToText(plan.ending));
    }
  }
  EXPECT_EQ(seen.size(), 5u + 4u + 4u + 10u);
}

TEST(ContentTest, BytesTellMessagesApart) {
  EXPECT_TRUE(DigestOf(ToBuffer(MessageOf(1000, 7))) ==
              DigestOf(MessageOf(1000, 7)));
  EXPECT_FALSE(DigestOf(MessageOf(1000, 7)) == DigestOf(MessageOf(1000, 9)));
  EXPECT_FALSE(DigestOf(MessageOf(1000, 0)) == DigestOf(MessageOf(1001, 0)));
  Message pieces = MessageOf(1000, 7);
  pieces.slices = 3;
  EXPECT_TRUE(DigestOf(ToBuffer(pieces)) == DigestOf(MessageOf(1000, 7)));
}

}  // namespace
}  // namespace penstock::oracle
