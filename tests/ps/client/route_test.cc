// Tests that calls look for the new primary of a shard without delay.

#include "ps/client/route.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "ps/client/call_loop.h"
#include "ps/client/patient_call.h"
#include "ps/client/router.h"
#include "ps/replication/view_wire.h"
#include "ps/wire/ps.pb.h"
#include "ps/wire/shard_key.h"
#include "tensor_service/calls.h"
#include "tests/ps/client/scripted_server.h"
#include "transport/base/steady_time.h"

namespace penstock::ps {
namespace {

constexpr absl::Duration kTimeout = absl::Seconds(20);

v1::GetViewReply ViewOf(const std::string& primary) {
  v1::GetViewReply reply;
  reply.set_replicas(1);
  *reply.mutable_view() =
      replication::ToMessage({7, 1, {{{primary, 100}, {}, {}}}});
  reply.add_servers(primary);
  return reply;
}

// A server that refuses calls to its shard, or answers them. Counts them.
class Shard {
 public:
  explicit Shard(bool leads) : leads_(leads) {}

  std::shared_ptr<grpc::Channel> Channel() const { return server_.Channel(); }
  void SetLeads() { leads_ = true; }
  int questions() const { return questions_; }
  int joins() const { return joins_; }

 private:
  absl::optional<ScriptedServer::Answer> OnCall(const std::string& method) {
    if (method == "GetView") {
      ++questions_;
      return ScriptedServer::Answer{grpc::Status::OK,
                                    tensor::FromProto(ViewOf("ps0:1"))};
    }
    ++joins_;
    if (!leads_) {
      return ScriptedServer::Answer{
          grpc::Status(grpc::StatusCode::UNAVAILABLE, kNotPrimary), {}};
    }
    return ScriptedServer::Answer{grpc::Status::OK,
                                  tensor::FromProto(v1::JoinReply())};
  }

  std::atomic<bool> leads_;
  std::atomic<int> questions_{0};
  std::atomic<int> joins_{0};
  ScriptedServer server_{
      [this](const std::string& method, const grpc::ByteBuffer&) {
        return OnCall(method);
      }};
};

// A call to a shard that is repeated until it is answered.
class RepeatedJoin {
 public:
  explicit RepeatedJoin(Route* shard) {
    PatientCall::Start(&loop_,
                       {nullptr, "/penstock.ps.v1.ParameterServer/Join",
                        tensor::FromProto(v1::JoinRequest()),
                        base::SteadyNow() + kTimeout, nullptr, shard},
                       nullptr, [this](const CallLoop::Reply& reply, int) {
                         EXPECT_TRUE(reply.ok()) << reply.status();
                         ended_.Notify();
                       });
  }
  void Await() { ended_.WaitForNotification(); }

 private:
  absl::Notification ended_;
  CallLoop loop_;
};

TEST(RouteTest, TheViewIsAskedForMoreOftenWhileACallIsRefused) {
  Shard shard(/*leads=*/false);
  Router router({shard.Channel()}, ViewOf("ps0:1"));
  ASSERT_TRUE(router.has_view());
  RepeatedJoin join(router.route(0));
  const int before = shard.questions();
  const absl::Time begin = base::SteadyNow();
  // Counts more questions than kAskEvery permits.
  while (true) {
    const int asked = shard.questions() - before;
    const absl::Duration passed = base::SteadyNow() - begin;
    if (asked > absl::FDivDuration(passed, Router::kAskEvery) + 3) break;
    ASSERT_LT(passed, kTimeout / 2) << asked << " questions";
    absl::SleepFor(absl::Milliseconds(5));
  }
  shard.SetLeads();
  join.Await();
  EXPECT_FALSE(router.route(0)->is_in_doubt());
}

TEST(RouteTest, AMoveOfTheShardEndsTheWaitOfACall) {
  // The attempts after which a wait is the longest one: half a second or more.
  constexpr int kAttempts = 8;
  Shard leads(/*leads=*/true);
  absl::Duration shortest = absl::InfiniteDuration();
  // Tries again if the machine was busy.
  for (int i = 0; i < 5 && shortest > absl::Milliseconds(400); ++i) {
    Shard former(/*leads=*/false);
    Route route(0, former.Channel());
    RepeatedJoin join(&route);
    while (former.joins() < kAttempts) absl::SleepFor(absl::Milliseconds(1));
    const absl::Time moved = base::SteadyNow();
    route.MoveTo(leads.Channel());
    join.Await();
    shortest = std::min(shortest, base::SteadyNow() - moved);
  }
  EXPECT_LE(shortest, absl::Milliseconds(400));
}

}  // namespace
}  // namespace penstock::ps
