// Tests that calls follow the views of servers that replicate their shards.

#include "ps/client/router.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "ps/client/call_loop.h"
#include "ps/client/fanout.h"
#include "ps/client/heartbeat.h"
#include "ps/client/patient_call.h"
#include "ps/client/patient_fanout.h"
#include "ps/client/training_connection.h"
#include "ps/replication/view_wire.h"
#include "ps/wire/ps.grpc.pb.h"
#include "ps/wire/shard_key.h"
#include "tensor_service/calls.h"
#include "transport/base/steady_time.h"

namespace penstock::ps {
namespace {

using replication::ReplicaId;
using replication::View;
using testing::Contains;
using testing::HasSubstr;

constexpr uint64_t kRun = 7;
constexpr absl::Duration kTimeout = absl::Seconds(20);

// A server that answers as the test says, and records the shards that calls
// name.
class FakeServer final : public v1::ParameterServer::Service {
 public:
  FakeServer() { Start(); }
  ~FakeServer() override { Stop(); }

  void Start() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(absl::StrCat("127.0.0.1:", port_),
                             grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  void Stop() {
    if (server_ == nullptr) return;
    server_->Shutdown(std::chrono::system_clock::now());
    server_ = nullptr;
  }
  std::shared_ptr<grpc::Channel> Channel() const {
    return grpc::CreateChannel(absl::StrCat("127.0.0.1:", port_),
                               grpc::InsecureChannelCredentials());
  }

  void SetView(const v1::GetViewReply& view) {
    absl::MutexLock lock(&mu_);
    view_ = view;
  }
  void SetHangs(bool hangs) {
    absl::MutexLock lock(&mu_);
    hangs_ = hangs;
  }
  void SetLeads(bool leads) {
    absl::MutexLock lock(&mu_);
    leads_ = leads;
  }
  std::set<std::string> calls() const {
    absl::MutexLock lock(&mu_);
    return calls_;
  }

  grpc::Status GetView(grpc::ServerContext* context, const v1::GetViewRequest*,
                       v1::GetViewReply* reply) override {
    AwaitCancelIfHanging(context);
    absl::MutexLock lock(&mu_);
    *reply = view_;
    return grpc::Status::OK;
  }
  grpc::Status Join(grpc::ServerContext* context, const v1::JoinRequest*,
                    v1::JoinReply* reply) override {
    Note("join", *context);
    AwaitCancelIfHanging(context);
    reply->set_clock(static_cast<uint64_t>(port_));
    absl::MutexLock lock(&mu_);
    if (leads_) return grpc::Status::OK;
    return {grpc::StatusCode::UNAVAILABLE, kNotPrimary};
  }
  grpc::Status Attend(grpc::ServerContext* context,
                      grpc::ServerReader<v1::Heartbeat>* reader,
                      v1::AttendReply*) override {
    v1::Heartbeat beat;
    while (reader->Read(&beat)) Note("attend", *context);
    return grpc::Status::OK;
  }
  grpc::Status Describe(grpc::ServerContext*, const v1::DescribeRequest*,
                        v1::ServerReport* report) override {
    absl::MutexLock lock(&mu_);
    if (view_.replicas() > 0) *report->mutable_view() = view_;
    return grpc::Status::OK;
  }

  int port() const { return port_; }

 private:
  void Note(const std::string& method, const grpc::ServerContext& context) {
    const auto& metadata = context.client_metadata();
    const auto found = metadata.find(kShardKey);
    absl::MutexLock lock(&mu_);
    calls_.insert(absl::StrCat(
        method, " ",
        found == metadata.end()
            ? "own"
            : std::string(found->second.data(), found->second.size())));
  }
  void AwaitCancelIfHanging(grpc::ServerContext* context) {
    while (!context->IsCancelled()) {
      {
        absl::MutexLock lock(&mu_);
        if (!hangs_) return;
      }
      absl::SleepFor(absl::Milliseconds(5));
    }
  }

  mutable absl::Mutex mu_;
  v1::GetViewReply view_ ABSL_GUARDED_BY(mu_);
  bool hangs_ ABSL_GUARDED_BY(mu_) = false;
  bool leads_ ABSL_GUARDED_BY(mu_) = true;
  std::set<std::string> calls_ ABSL_GUARDED_BY(mu_);
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

// Two servers, each of which leads a shard at first.
class RouterTest : public testing::Test {
 protected:
  static ReplicaId Replica(int server) {
    return {absl::StrCat("ps", server, ":1"),
            100 + static_cast<uint64_t>(server)};
  }

  // Returns a view in which these servers lead shards 0 and 1.
  static v1::GetViewReply Reply(uint64_t number, int first, int second,
                                uint64_t run = kRun) {
    View view{run,
              number,
              {{Replica(first), {Replica(1 - first)}, {}},
               {Replica(second), {Replica(1 - second)}, {}}}};
    v1::GetViewReply reply;
    reply.set_replicas(1);
    *reply.mutable_view() = replication::ToMessage(view);
    reply.add_servers("ps0:1");
    reply.add_servers("ps1:1");
    return reply;
  }

  void Announce(const v1::GetViewReply& reply) {
    for (FakeServer& server : servers_) server.SetView(reply);
  }

  std::vector<std::shared_ptr<grpc::Channel>> Channels() const {
    return {servers_[0].Channel(), servers_[1].Channel()};
  }

  std::shared_ptr<Router> Open() const {
    auto router = ReachServers(Channels(), kTimeout);
    EXPECT_TRUE(router.ok()) << router.status();
    return router.ok() ? *std::move(router) : nullptr;
  }

  // Asks for the clock of a shard, which is the port of the server.
  absl::StatusOr<int> PortOf(Route* shard) const {
    const auto replies =
        CallPatiently({shard}, {}, "Join", v1::JoinRequest(), kTimeout);
    if (!replies.ok()) return replies.status();
    v1::JoinReply reply;
    absl::Status status = tensor::ToProto(replies->front(), &reply);
    if (!status.ok()) return status;
    return static_cast<int>(reply.clock());
  }

  FakeServer servers_[2];
};

TEST_F(RouterTest, ServersWithoutReplicasHaveNoRouter) {
  const auto router = ReachServers(Channels(), kTimeout);
  ASSERT_TRUE(router.ok()) << router.status();
  EXPECT_EQ(*router, nullptr);
}

TEST_F(RouterTest, CallsGoToTheOwnServersBeforeTheFirstView) {
  v1::GetViewReply reply;
  reply.set_replicas(1);
  Announce(reply);
  const auto router = Open();
  ASSERT_NE(router, nullptr);
  EXPECT_FALSE(router->has_view());
  EXPECT_EQ(*PortOf(router->route(1)), servers_[1].port());
  EXPECT_THAT(servers_[1].calls(), Contains("join own"));
}

TEST_F(RouterTest, ACallThatHangsIsRepeatedAtTheNewPrimary) {
  Announce(Reply(1, 0, 1));
  const auto router = Open();
  ASSERT_NE(router, nullptr);
  servers_[0].SetHangs(true);  // like a stopped process
  CallLoop loop;
  absl::Notification ended;
  int attempts = 0;
  CallLoop::Reply reply = absl::UnknownError("none");
  PatientCall::Start(&loop,
                     {nullptr, absl::StrCat(kServicePath, "Join"),
                      tensor::FromProto(v1::JoinRequest()),
                      base::SteadyNow() + kTimeout, nullptr, router->route(0)},
                     nullptr, [&](CallLoop::Reply came, int count) {
                       attempts = count;
                       reply = std::move(came);
                       ended.Notify();
                     });
  while (servers_[0].calls().empty()) absl::SleepFor(absl::Milliseconds(5));
  EXPECT_FALSE(ended.HasBeenNotified());
  servers_[1].SetView(Reply(2, 1, 1));
  ended.WaitForNotification();
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(attempts, 2);
  EXPECT_THAT(servers_[0].calls(), Contains("join 0"));
  EXPECT_THAT(servers_[1].calls(), Contains("join 0"));
}

TEST_F(RouterTest, ADeadServerIsPassedOver) {
  Announce(Reply(3, 1, 1));
  servers_[0].Stop();
  const auto router = ReachServers(Channels(), kTimeout);
  ASSERT_TRUE(router.ok()) << router.status();
  ASSERT_NE(*router, nullptr);
  EXPECT_EQ(*PortOf((*router)->route(0)), servers_[1].port());
  // Announces the next view only to the server that is alive. The router must
  // get the view from there.
  servers_[1].SetView(Reply(4, 0, 1));
  servers_[0].Start();
  EXPECT_EQ(*PortOf((*router)->route(1)), servers_[1].port());
  while (*PortOf((*router)->route(0)) != servers_[0].port()) {
    absl::SleepFor(absl::Milliseconds(20));
  }
}

TEST_F(RouterTest, ARefusedCallGoesToTheServerThatLeads) {
  Announce(Reply(1, 0, 1));
  const auto router = Open();
  servers_[0].SetLeads(false);
  servers_[1].SetView(Reply(2, 1, 1));
  EXPECT_EQ(*PortOf(router->route(0)), servers_[1].port());
}

TEST_F(RouterTest, WrongViewsAreIgnored) {
  Announce(Reply(5, 0, 1));
  const auto router = Open();
  router->Pin(kRun);
  v1::GetViewReply stranger = Reply(6, 1, 1);
  stranger.set_servers(1, "ps7:1");
  v1::GetViewReply garbled = Reply(6, 1, 1);
  garbled.mutable_view()->mutable_shards(0)->mutable_primary()->clear_server();
  for (const v1::GetViewReply& wrong :
       {Reply(4, 1, 1), Reply(6, 1, 1, kRun + 1), stranger, garbled}) {
    Announce(wrong);
    absl::SleepFor(2 * Router::kAskEvery + absl::Milliseconds(50));
    EXPECT_EQ(*PortOf(router->route(0)), servers_[0].port());
  }
  Announce(Reply(6, 1, 1));
  while (*PortOf(router->route(0)) != servers_[1].port()) {
    absl::SleepFor(absl::Milliseconds(20));
  }
}

TEST_F(RouterTest, AServerThatTakesThePlaceOfAnotherIsReached) {
  Announce(Reply(5, 0, 1));
  FakeServer added;
  std::vector<std::string> met;
  const auto router =
      *ReachServers(Channels(), kTimeout, [&](const std::string& address) {
        met.push_back(address);
        return added.Channel();
      });
  v1::GetViewReply reply = Reply(6, 0, 1);
  reply.set_servers(1, "ps9:1");
  reply.mutable_view()->mutable_shards(1)->mutable_primary()->set_server(
      "ps9:1");
  added.SetView(reply);
  Announce(reply);
  while (*PortOf(router->route(1)) != added.port()) {
    absl::SleepFor(absl::Milliseconds(20));
  }
  EXPECT_EQ(met, std::vector<std::string>({"ps9:1"}));
  EXPECT_EQ(*PortOf(router->route(0)), servers_[0].port());
}

TEST_F(RouterTest, AViewOfALostTrainingIsNotUsed) {
  v1::GetViewReply lost = Reply(9, 1, 0);
  lost.add_lost_shards(0);
  Announce(lost);
  const auto router = Open();
  ASSERT_NE(router, nullptr);
  EXPECT_FALSE(router->has_view());
  EXPECT_EQ(*PortOf(router->route(0)), servers_[0].port());
}

TEST_F(RouterTest, HeartbeatsFollow) {
  Announce(Reply(1, 0, 1));
  const auto router = Open();
  HeartbeatSender sender(Channels(), kRun, v1::WorkerId(),
                         absl::Milliseconds(300), RoutesOf(router.get(), 2));
  const auto await = [](const FakeServer& server, const std::string& call) {
    while (server.calls().count(call) == 0) {
      absl::SleepFor(absl::Milliseconds(5));
    }
  };
  await(servers_[0], "attend 0");
  await(servers_[1], "attend 1");
  EXPECT_EQ(servers_[1].calls().count("attend 0"), 0u);
  Announce(Reply(2, 1, 1));
  await(servers_[1], "attend 0");
}

TEST_F(RouterTest, AFanoutNamesTheShards) {
  Announce(Reply(1, 1, 0));
  const auto router = Open();
  Fanout fanout(Channels(), {}, nullptr, RoutesOf(router.get(), 2));
  const auto replies = fanout.Call("Join", v1::JoinRequest(), kTimeout);
  ASSERT_TRUE(replies.ok()) << replies.status();
  EXPECT_THAT(servers_[1].calls(), Contains("join 0"));
  EXPECT_THAT(servers_[0].calls(), Contains("join 1"));
}

TEST_F(RouterTest, APatientFanoutEndsAtItsTimeout) {
  Announce(Reply(1, 0, 1));
  const auto router = Open();
  servers_[1].SetLeads(false);
  const auto replies =
      CallPatiently(RoutesOf(router.get(), 2), {"one", "other"}, "Join",
                    v1::JoinRequest(), absl::Milliseconds(300));
  EXPECT_FALSE(replies.ok());
  EXPECT_THAT(replies.status().ToString(), HasSubstr("other: "));
}

}  // namespace
}  // namespace penstock::ps
