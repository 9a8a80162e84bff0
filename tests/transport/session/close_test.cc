// Tests the ends of a session, and the remaining state.

#include <time.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "tests/transport/session/session_test_util.h"
#include "transport/fabric/fabric.h"
#include "transport/memory/bytes.h"
#include "transport/metrics/labels.h"
#include "transport/metrics/metric.h"
#include "transport/metrics/registry.h"
#include "transport/metrics/snapshot.h"

namespace penstock {
namespace session {
namespace {

TEST_F(SessionTest, BrokenLifelineResetsAllStreams) {
  Open();
  client_->Open(1);
  client_->Open(2);
  Run();
  server_->Take();
  lifeline_->Drop(absl::UnavailableError("cut"));
  Run();
  for (Peer* peer : {client_.get(), server_.get()}) {
    EXPECT_EQ(peer->Take(), Lines{"closed UNAVAILABLE: cut"});
    for (uint32_t stream : {1, 2}) {
      EXPECT_EQ(peer->stream(stream).Take().back(),
                "reset UNAVAILABLE: Penstock session closed: cut");
    }
    EXPECT_TRUE((*peer)->closed());
  }
}

TEST_F(SessionTest, StreamsAreToldBeforeTheSessionsOwner) {
  Open();
  client_->Open(1);
  Lines order;
  client_->stream(1).on_event = [&] { order.push_back("stream"); };
  client_->on_event = [&] { order.push_back("session"); };
  (*client_)->Close(absl::UnavailableError("enough"));
  (*client_)->Close(absl::UnavailableError("again"));
  EXPECT_EQ(order, (Lines{"stream", "session"}));
}

TEST_F(SessionTest, CloseSendsWhatWaits) {
  Open();
  client_->Open(1);
  Run();
  (*client_)->output().SendReset(1, absl::CancelledError("bye"));
  (*client_)->Close(absl::UnavailableError("enough"));
  Run();
  EXPECT_EQ(server_->stream(1).Take(),
            (Lines{"headers open", "reset CANCELLED: bye, by the peer"}));
  EXPECT_FALSE((*server_)->closed());
  client_->Destroy();
  StepAll(lifeline_.get(), kServer);
  EXPECT_TRUE((*server_)->closed());
}

// Keeps the calling thread busy for this processor time.
void Work(std::chrono::nanoseconds duration) {
  const auto now = [] {
    timespec time = {};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return std::chrono::seconds(time.tv_sec) +
           std::chrono::nanoseconds(time.tv_nsec);
  };
  const std::chrono::nanoseconds end = now() + duration;
  while (now() < end) {
  }
}

// A path that always has input.
class EndlessPath : public fabric::Endpoint {
 public:
  explicit EndlessPath(int* polls) : polls_(polls) {}

  const fabric::Capabilities& capabilities() const override {
    return capabilities_;
  }
  std::string Describe() const override { return "endless"; }
  void Start(fabric::EndpointEvents*) override {}
  bool Send(absl::Span<const uint8_t>) override { return true; }
  absl::StatusOr<fabric::Exposure> Expose(const memory::Payload&,
                                          size_t) override {
    return absl::UnimplementedError("");
  }
  void Withdraw(const fabric::RemoteRegion&) override {}
  void Read(const fabric::RemotePart&, uint64_t, absl::Span<uint8_t>,
            uint64_t) override {}
  bool Poll() override {
    ++*polls_;
    Work(std::chrono::milliseconds(3));
    return true;
  }
  bool HasInput() const override { return true; }
  void SetArmed(bool) override {}
  bool TakeDoorbellRequest() override { return false; }
  void RingDoorbell() override {}

 private:
  int* const polls_;
  const fabric::Capabilities capabilities_;
};

TEST_F(SessionTest, EndWaitsBoundedForAnEndlessPath) {
  Open();
  int polls = 0;
  (*client_)->path().Add("shm", std::make_shared<EndlessPath>(&polls));
  lifeline_->Drop(absl::UnavailableError("cut"));
  Run();
  EXPECT_TRUE((*client_)->closed());
  // The limit is 200 ms of the thread's own time.
  EXPECT_GE(polls, 50);
  EXPECT_LE(polls, 67);
}

TEST_F(SessionTest, EachEndIsCountedByItsCause) {
  const auto ended = [](metrics::End end) {
    return metrics::Registry::Get()
        ->CellFor(metrics::Metric::kSessionsEnded,
                  {metrics::Role::kClient, end})
        ->load();
  };
  const std::pair<absl::Status, metrics::End> causes[] = {
      {absl::UnavailableError("bye"), metrics::End::kClosed},
      {absl::DeadlineExceededError("silent"), metrics::End::kTimeout},
      {absl::InvalidArgumentError("nonsense"), metrics::End::kError}};
  for (const auto& [cause, end] : causes) {
    SCOPED_TRACE(cause.ToString());
    Open();
    const uint64_t before = ended(end);
    (*client_)->Close(cause);
    EXPECT_EQ(ended(end), before + 1);
  }
}

TEST_F(SessionTest, OnlyAnOpenSessionReportsItsState) {
  using metrics::Metric;
  Open();
  const auto reported = [this](Metric metric,
                               std::initializer_list<metrics::Value> labels) {
    metrics::Snapshot snapshot;
    (*client_)->Collect(&snapshot);
    return snapshot.Get(metric, labels);
  };
  client_->Open(1);
  const auto client = metrics::Role::kClient;
  const auto fabric = metrics::Fabric::kTcp;
  EXPECT_EQ(reported(Metric::kSessionsStarted, {client}), 1u);
  EXPECT_EQ(reported(Metric::kStreamsStarted, {client}), 1u);
  EXPECT_EQ(reported(Metric::kSessions, {client, fabric}), 1u);
  const uint64_t least = reported(Metric::kEagerLimitMin, {fabric});
  EXPECT_GT(least, 0u);
  EXPECT_EQ(least, reported(Metric::kEagerLimitMax, {fabric}));
  (*client_)->Close(absl::UnavailableError("bye"));
  EXPECT_EQ(reported(Metric::kSessionsStarted, {client}), 1u);
  EXPECT_EQ(reported(Metric::kSessions, {client, fabric}), 0u);
  EXPECT_EQ(reported(Metric::kEagerLimitMax, {fabric}), 0u);
}

TEST_F(SessionTest, CallsToAClosedSessionDoNothing) {
  Open();
  client_->Open(1);
  (*client_)->Close(absl::UnavailableError("enough"));
  client_->Take();
  client_->stream(1).Take();
  client_->Attach(2);
  EXPECT_EQ(client_->stream(2).Take(),
            Lines{"reset UNAVAILABLE: Penstock session closed"});
  (*client_)->output().SendHeaders(1, "late");
  EXPECT_TRUE(client_->Send(1, "late"));
  (*client_)->output().SendHalfClose(1);
  (*client_)->output().SendTrailers(1, "late");
  (*client_)->output().SendReset(1, absl::CancelledError("late"));
  (*client_)->input().WantMessage(1);
  (*client_)->input().Consumed(1);
  (*client_)->output().DropUnsent(1);
  (*client_)->streams().Detach(1);
  (*client_)->SendPing(1);
  (*client_)->SendGoaway(1, absl::UnavailableError("late"));
  (*client_)->path().OnFailure("shm", absl::UnavailableError("late"));
  NewLink();
  AddPath(kClient);
  EXPECT_EQ((*client_)->path().endpoint(), nullptr);
  EXPECT_FALSE((*client_)->Poll());
  Run();
  EXPECT_EQ(client_->Take(), Lines{});
  EXPECT_EQ(server_->Take(), Lines{"opened 1"});
  EXPECT_EQ(server_->stream(1).Take(), Lines{"headers open"});
}

TEST_F(SessionTest, EventMayCloseTheSession) {
  Open();
  client_->Open(1);
  client_->Send(1, "one");
  server_->stream(1).on_event = [this] {
    (*server_)->Close(absl::UnavailableError("enough"));
  };
  Run();
  EXPECT_EQ(server_->stream(1).Take(),
            (Lines{"headers open",
                   "reset UNAVAILABLE: Penstock session closed: enough"}));
}

TEST_F(SessionTest, ClosedSessionLetsGoOfItsFastPath) {
  OpenWithPath();
  (*client_)->Close(absl::UnavailableError("enough"));
  Run();
  EXPECT_EQ((*client_)->path().endpoint(), nullptr);
  EXPECT_EQ((*server_)->path().endpoint(), nullptr);
}

TEST_F(SessionTest, WhatThePeerSentLastIsTakenFromTheFastPath) {
  OpenWithPath();
  client_->Open(1);
  Run();
  (*server_)->output().SendTrailers(1, "done");
  server_->Flush();
  server_->Destroy();
  while (lifeline_->Step(kClient)) {
  }
  EXPECT_EQ(client_->stream(1).Take().front(), "trailers done");
  EXPECT_TRUE((*client_)->closed());
}

}  // namespace
}  // namespace session
}  // namespace penstock
