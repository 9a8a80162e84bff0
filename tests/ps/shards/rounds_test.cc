// Tests that the threads that bring news of a push do all work for it. These
// replicas have no thread of their own.

#include "ps/shards/rounds.h"

#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "ps/consistency/policy.h"
#include "ps/model/model.h"
#include "ps/replication/view.h"
#include "ps/server/server.h"
#include "ps/shards/boot_time.h"
#include "ps/shards/peers.h"
#include "ps/shards/shards.h"
#include "ps/shards/wire.h"
#include "ps/wire/shard_key.h"
#include "tensor_service/tensor.h"
#include "tests/ps/server/small_server.h"
#include "tests/transport/base/set_clock.h"
#include "transport/base/steady_mutex.h"

namespace penstock::ps {
namespace {

constexpr uint64_t kRun = 7;
constexpr View kTraining = {kRun, 1};
constexpr WorkerId kWorker = {0, 100};
constexpr WorkerId kOther = {1, 101};
const replication::ReplicaId kPrimary = {"primary", 1};
const replication::ReplicaId kBackup = {"backup", 2};

// Keeps messages until the test delivers them.
class Post final : public Peers {
 public:
  struct Letter {
    grpc::ByteBuffer request;
    Callback callback;
  };

  void Replicate(const std::string& /*server*/, const grpc::ByteBuffer& request,
                 absl::Duration /*timeout*/, Callback callback) override {
    letters_.push_back({request, std::move(callback)});
  }
  void Stop() override {}

  size_t size() const { return letters_.size(); }
  Letter Take() {
    Letter first = std::move(letters_.front());
    letters_.pop_front();
    return first;
  }

 private:
  std::deque<Letter> letters_;
};

std::shared_ptr<Server> MakeServer() {
  Server::Options options;
  options.membership.expected_workers = 2;
  options.tables.hash_seed = 1;
  options.log = [](const std::string&) {};
  auto server = std::make_shared<Server>(ForReplica(options));
  Server::Definition definition;
  definition.model.tables = {
      DenseTable("w", {1}, ConsistencyPolicy::kUnlimited)};
  definition.run = kRun;
  definition.servers = {"primary"};
  EXPECT_TRUE(server->Define(definition).ok());
  tensor::Bundle zeros;
  zeros.tensors.push_back(Floats("w", {1}, {0}));
  EXPECT_TRUE(server->Initialize(kTraining, {0, 1}, zeros).ok());
  return server;
}

// A replica without the thread of a Shard.
struct Replica {
  Replica(const replication::ReplicaId& self, Peers* peers,
          const std::string& build = "test") {
    ShardOptions options;
    options.peers = peers;
    options.build = build;
    options.log = [this](const std::string& line) { lines.push_back(line); };
    const replication::Group group{kRun, 1, build, 0};
    state = std::make_shared<ReplicaState>(options, group, self, MakeServer(),
                                           /*leads=*/true);
    calls = std::make_shared<WorkerCalls>(state);
    rounds = std::make_shared<Rounds>(state, calls,
                                      std::make_shared<LogSender>(state),
                                      std::make_shared<Feeder>(state, calls),
                                      std::make_shared<SnapshotSender>(state));
    state->rounds = rounds;
    base::SteadyMutexLock lock(&state->mu);
    state->view.run = kRun;
    state->view.number = 1;
    state->view.shards = {{kPrimary, {kBackup}, {}}};
    EXPECT_TRUE(state->replica.OnView(state->view, BootNow()).ok());
  }

  float value() const {
    std::shared_ptr<Server> server;
    {
      base::SteadyMutexLock lock(&state->mu);
      server = state->server;
    }
    Exchange::PullSpec spec;
    spec.all_parts = true;
    Answer<Exchange::Pulled> answer;
    server->Pull(kTraining, spec, answer.callback());
    const auto pulled = answer.Wait();
    EXPECT_TRUE(pulled.ok()) << pulled.status();
    if (!pulled.ok()) return -1;
    return ElementsOf(pulled->bundle.tensors.front().tensor).front();
  }

  std::vector<std::string> lines;  // of the log
  std::shared_ptr<ReplicaState> state;
  std::shared_ptr<WorkerCalls> calls;
  std::shared_ptr<Rounds> rounds;
};

class RoundsTest : public testing::Test {
 protected:
  RoundsTest() : primary_(kPrimary, &post_), backup_(kBackup, &post_) {
    primary_.state->Work();  // the first heartbeat
    DeliverAll();
    Join(kWorker);
    Join(kOther);
  }

  void Join(const WorkerId& worker) {
    Answer<Exchange::Joined> joined;
    primary_.calls->StartJoin(kTraining, worker, joined.callback());
    primary_.state->Work();
    DeliverAll();
    EXPECT_TRUE(joined.is_there());
  }

  // Takes a message to the backup, and its answer to the primary.
  void Deliver() { DeliverTo(&backup_); }
  void DeliverTo(Replica* backup) {
    const Post::Letter letter = post_.Take();
    const auto message = MessageIn(letter.request);
    ASSERT_TRUE(message.ok()) << message.status();
    replication::Answer answer;
    {
      base::SteadyMutexLock lock(&backup->state->mu);
      answer = backup->state->replica.backup()->OnAppend(*message->append,
                                                         BootNow());
    }
    letter.callback(ToBytes(answer));
  }
  void DeliverAll() {
    while (post_.size() > 0) Deliver();
  }

  void Push(const WorkerId& worker, uint64_t clock,
            Answer<Exchange::PushVerdict>* answer) {
    tensor::Bundle minus_one;
    minus_one.tensors.push_back(Floats("w", {1}, {-1}));
    primary_.calls->Push(kTraining, worker, clock, minus_one,
                         answer->callback(), /*will_help=*/true);
  }

  void Pull(Answer<Exchange::Pulled>* answer) {
    Exchange::PullSpec spec;
    spec.all_parts = true;
    primary_.calls->Pull(kTraining, spec, answer->callback());
  }
  // Ends the training at the primary's Server.
  void FailPrimary(const std::string& why) {
    std::shared_ptr<Server> server;
    {
      base::SteadyMutexLock lock(&primary_.state->mu);
      server = primary_.state->server;
    }
    const auto exchange = server->Serving(kTraining);
    ASSERT_TRUE(exchange.ok()) << exchange.status();
    (*exchange)->OnFailed(absl::AbortedError(why));
  }

  Post post_;
  Replica primary_;
  Replica backup_;
};

TEST_F(RoundsTest, ABackupOfAnotherReleaseIsLoggedOnce) {
  Replica other(kBackup, &post_, "another");
  Answer<Exchange::PushVerdict> answer;
  Push(kWorker, 0, &answer);
  primary_.lines.clear();
  DeliverTo(&other);
  ASSERT_EQ(primary_.lines.size(), 1U);
  EXPECT_TRUE(
      absl::StrContains(primary_.lines[0], "replicas need the same program"))
      << primary_.lines[0];
  Push(kOther, 0, &answer);
  while (post_.size() > 0) DeliverTo(&other);
  EXPECT_EQ(primary_.lines.size(), 1U);
  EXPECT_FALSE(answer.is_there());
}

TEST_F(RoundsTest, AcceptingAPushSendsIt) {
  Answer<Exchange::PushVerdict> first;
  Answer<Exchange::PushVerdict> second;
  Push(kWorker, 0, &first);
  EXPECT_EQ(post_.size(), 1U);
  EXPECT_FALSE(first.is_there());
  EXPECT_EQ(primary_.value(), 0);
  // A replica receives one message at a time.
  Push(kOther, 0, &second);
  EXPECT_EQ(post_.size(), 1U);
  Deliver();
  EXPECT_EQ(post_.size(), 1U);
  EXPECT_TRUE(first.is_there());
  EXPECT_FALSE(second.is_there());
  Deliver();
  EXPECT_TRUE(second.is_there());
}

TEST_F(RoundsTest, TheAnswerOfTheBackupAcknowledgesAndAppliesThePush) {
  Answer<Exchange::PushVerdict> pushed;
  Push(kWorker, 0, &pushed);
  Deliver();
  ASSERT_TRUE(pushed.is_there());
  EXPECT_EQ(*pushed.Wait(), Exchange::PushVerdict::kCounted);
  EXPECT_EQ(primary_.value(), 1);
}

TEST_F(RoundsTest, ABackupAppliesWhatTheNextMessageCommits) {
  Answer<Exchange::PushVerdict> first;
  Answer<Exchange::PushVerdict> second;
  Push(kWorker, 0, &first);
  Deliver();
  backup_.state->Work();
  EXPECT_EQ(backup_.value(), 0);
  Push(kOther, 0, &second);
  Deliver();
  backup_.state->Work();
  EXPECT_EQ(backup_.value(), 1);
}

TEST_F(RoundsTest, AThreadLeavesWorkToTheOneThatIsAtWork) {
  {
    base::SteadyMutexLock lock(&primary_.state->mu);
    primary_.state->is_at_work = true;
  }
  Answer<Exchange::PushVerdict> pushed;
  Push(kWorker, 0, &pushed);
  EXPECT_EQ(post_.size(), 0U);
  base::SteadyMutexLock lock(&primary_.state->mu);
  EXPECT_TRUE(primary_.state->wants_pump);
}

// Sets the system's clock back while the Shard's thread waits for the next
// tick.
TEST_F(RoundsTest, TicksContinueWhenTheClockIsSetBack) {
  SetClockBy(absl::Hours(1));
  EXPECT_TRUE(primary_.rounds->AwaitOne());
  SetClockBy(absl::ZeroDuration());
}

TEST_F(RoundsTest, AFailedPrimaryEndsItsCallsAlsoIfItsBackupIsDead) {
  Answer<Exchange::PushVerdict> pushed;
  Push(kWorker, 0, &pushed);
  FailPrimary("the disk is gone");
  Answer<Exchange::Pulled> pulled;
  Pull(&pulled);
  primary_.state->Work();
  ASSERT_TRUE(pushed.is_there());
  ASSERT_TRUE(pulled.is_there());
  for (const absl::Status& status :
       {pushed.Wait().status(), pulled.Wait().status()}) {
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    EXPECT_TRUE(absl::StartsWith(status.message(), kNotPrimary)) << status;
    EXPECT_TRUE(absl::StrContains(status.message(), "the disk is gone"))
        << status;
  }
  // Drops the backup from the view. Nobody can take over any more.
  {
    base::SteadyMutexLock lock(&primary_.state->mu);
    replication::View& view = primary_.state->view;
    ++view.number;
    view.shards[0].backups.clear();
    ASSERT_TRUE(primary_.state->replica.OnView(view, BootNow()).ok());
  }
  Answer<Exchange::Pulled> last;
  Pull(&last);
  primary_.state->Work();
  ASSERT_TRUE(last.is_there());
  EXPECT_TRUE(absl::IsAborted(last.Wait().status())) << last.Wait().status();
}

}  // namespace
}  // namespace penstock::ps
