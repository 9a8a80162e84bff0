// Tests random and mutated bytes, to each method of the service.

#include <gtest/gtest.h>
#include <stdlib.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/blocking_counter.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "ps/checkpoint/posix_files.h"
#include "ps/model/wire.h"
#include "ps/server/checkpoint_writer.h"
#include "ps/service/service.h"
#include "tests/ps/seeds.h"
#include "tests/ps/server/small_server.h"
#include "tests/ps/service/raw_requests.h"

namespace penstock::ps {
namespace {

using grpc::ByteBuffer;

constexpr uint64_t kRun = SmallServer::kView.run;
constexpr int kAtOnce = 10;
constexpr const char* kMethods[] = {"Define",
                                    "GetModel",
                                    "Join",
                                    "Attend",
                                    "Initialize",
                                    "Push",
                                    "Pull",
                                    "Describe",
                                    "WriteShard",
                                    "BeginCheckpoint",
                                    "AttendCheckpoint",
                                    "CommitCheckpoint"};

ByteBuffer BytesOf(const std::string& text) {
  const grpc::Slice slice(text);
  return ByteBuffer(&slice, 1);
}

constexpr WorkerId kOwn = {9, 77};

// A server with a port, and an attacker.
class Victim {
 public:
  explicit Victim(uint64_t seed) : requests_(seed) {
    root_ = testing::TempDir() + "/raw-XXXXXX";
    if (mkdtemp(&root_[0]) != nullptr) files_ = *checkpoint::OpenFolder(root_);
    Server::Options options;
    options.max_wait = absl::Milliseconds(20);
    options.membership.assemble_timeout = absl::Milliseconds(20);
    options.membership.lease = absl::Milliseconds(100);
    options.max_held_bytes = 1 << 20;
    options.log = [](const std::string&) {};
    core_ = std::make_unique<Server>(options);
    CheckpointWriter::Options checkpoints;
    checkpoints.max_wait = absl::Milliseconds(5);
    checkpoints.commits.log = [](const std::string&) {};
    writer_ = std::make_unique<CheckpointWriter>(files_.get(), core_.get(),
                                                 checkpoints);
    ServiceOptions service;
    service.checkpoints = writer_.get();
    service_ = MakeService(core_.get(), service);
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                             &port);
    builder.RegisterService(service_.get());
    server_ = builder.BuildAndStart();
    channel_ = grpc::CreateChannel(absl::StrCat("127.0.0.1:", port),
                                   grpc::InsecureChannelCredentials());
  }
  ~Victim() {
    core_->Drain();
    server_->Shutdown(std::chrono::system_clock::now());
    server_->Wait();
    server_ = nullptr;
    std::filesystem::remove_all(root_);
  }

  Server& core() { return *core_; }

  // Sends `calls` calls, and expects an answer to each.
  void Attack(int calls, bool may_define) {
    for (int i = 0; i < calls; i += kAtOnce) {
      absl::BlockingCounter left(kAtOnce);
      std::vector<std::unique_ptr<Call>> all;
      for (int j = 0; j < kAtOnce; ++j) {
        std::string method = kMethods[requests_.Below(std::size(kMethods))];
        if (method == "Define" && !may_define) method = "Push";
        all.push_back(Start(method, requests_.Next(method), &left));
      }
      left.Wait();
      for (const auto& call : all) {
        ++counts_[call->status.error_code()];
        // Expects a message other than gRPC's message for a call without an
        // answer.
        EXPECT_NE(call->status.error_message(), "Deadline Exceeded");
        EXPECT_NE(call->status.error_code(), grpc::StatusCode::UNAVAILABLE)
            << call->status.error_message();
      }
    }
  }

  grpc::Status Send(const std::string& method, const std::string& bytes) {
    absl::BlockingCounter left(1);
    const auto call = Start(method, bytes, &left);
    left.Wait();
    return call->status;
  }

  // Returns the number of calls by status code.
  const std::map<int, int>& counts() const { return counts_; }

 private:
  struct Call {
    grpc::ClientContext context;
    ByteBuffer request;
    ByteBuffer reply;
    grpc::Status status;
  };

  std::unique_ptr<Call> Start(const std::string& method,
                              const std::string& bytes,
                              absl::BlockingCounter* left) {
    auto call = std::make_unique<Call>();
    call->request = BytesOf(bytes);
    call->context.set_deadline(std::chrono::system_clock::now() +
                               std::chrono::minutes(1));
    grpc::GenericStub(channel_).UnaryCall(
        &call->context, "/penstock.ps.v1.ParameterServer/" + method,
        grpc::StubOptions(), &call->request, &call->reply,
        [status = &call->status, left](grpc::Status answer) {
          *status = std::move(answer);
          left->DecrementCount();
        });
    return call;
  }

  Requests requests_;
  std::string root_;
  std::unique_ptr<checkpoint::Files> files_;
  std::unique_ptr<Server> core_;
  std::unique_ptr<CheckpointWriter> writer_;
  std::unique_ptr<grpc::Service> service_;
  std::unique_ptr<grpc::Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::map<int, int> counts_;
};

// Returns the name of the part of table "w".
std::string PartOfW(Server& core) {
  for (const Part& part : core.training()->tables->parts()) {
    if (part.dtype == tensor::DType::kF32) return part.name;
  }
  return "";
}

void Initialize(Server* core) {
  tensor::Bundle values;
  for (const Part& part : core->training()->tables->parts()) {
    auto value = *tensor::Tensor::Allocate(part.dtype, part.shape);
    if (value.byte_size() > 0) {
      std::memset(value.buffer()->mutable_data(), 0, value.byte_size());
    }
    values.tensors.push_back({part.name, value});
  }
  constexpr WorkerId kChief = {0, 99};
  ASSERT_TRUE(core->Join(SmallServer::kView, kChief).ok());
  const auto taken = core->Initialize(SmallServer::kView, kChief, values);
  ASSERT_TRUE(taken.ok()) << taken.status();
}

// Waits until all accepted pushes are applied.
void ExpectToSettle(Server* core) {
  while (core->report().held_bytes > 0) {
    ASSERT_TRUE(
        core->TakeSnapshot(SmallServer::kView, {}, {}, absl::Seconds(60)).ok());
  }
}

absl::StatusOr<Server::Pulled> PullW(Server* core) {
  Server::PullSpec spec;
  spec.parts = {PartOfW(*core)};
  Answer<Server::Pulled> answer;
  core->Pull(SmallServer::kView, spec, answer.callback());
  return answer.Wait();
}

// Expects that a well-behaved worker can do a step. The worker's calls fail
// while the server waits for members that have gone.
void ExpectStep(Server* core) {
  while (true) {
    const auto joined = core->Join(SmallServer::kView, kOwn);
    ASSERT_TRUE(joined.ok()) << joined.status();
    Server::PullSpec all;
    all.worker = kOwn;
    all.clock = joined->clock;
    Answer<Server::Pulled> waited;
    core->Pull(SmallServer::kView, all, waited.callback());
    const auto may = waited.Wait();
    if (absl::IsDeadlineExceeded(may.status())) continue;
    ASSERT_TRUE(may.ok()) << may.status();
    ExpectToSettle(core);
    const auto before = PullW(core);
    ASSERT_TRUE(before.ok()) << before.status();
    const std::vector<float> was = ElementsOf(before->bundle.tensors[0].tensor);
    Answer<Server::PushVerdict> pushed;
    core->Push(SmallServer::kView, kOwn, may->clock,
               {{Floats(PartOfW(*core), {2}, {1, -2})}}, pushed.callback());
    const auto verdict = pushed.Wait();
    // Tries again if the worker's lease has ended.
    if (absl::IsFailedPrecondition(verdict.status())) continue;
    ASSERT_TRUE(verdict.ok()) << verdict.status();
    ASSERT_EQ(*verdict, Server::PushVerdict::kCounted);
    ExpectToSettle(core);
    const auto after = PullW(core);
    ASSERT_TRUE(after.ok()) << after.status();
    EXPECT_EQ(ElementsOf(after->bundle.tensors[0].tensor),
              (std::vector<float>{was[0] - 1, was[1] + 2}));
    return;
  }
}

TEST(RawTest, WhateverComesIsAnsweredAndTheServerTrainsOn) {
  std::map<int, int> counts;
  for (uint64_t seed = ChosenSeeds().first(); ChosenSeeds().Wants(seed);
       ++seed) {
    SCOPED_TRACE(RepeatWith(seed));
    Victim victim(seed);
    victim.Attack(100, /*may_define=*/false);
    ASSERT_EQ(victim.core().training(), nullptr);
    Server::Definition definition =
        SmallServer::Definition(ModelForRawRequests());
    const auto defined = victim.core().Define(definition);
    ASSERT_TRUE(defined.ok()) << defined.status();
    victim.Attack(100, /*may_define=*/true);
    Initialize(&victim.core());
    victim.Attack(500, /*may_define=*/true);
    ExpectStep(&victim.core());
    EXPECT_EQ(victim.core().report().failure, "");
    for (const auto& [code, count] : victim.counts()) counts[code] += count;
    if (testing::Test::HasFailure()) return;
  }
  ChosenSeeds().Print();
  for (const auto& [code, count] : counts) {
    std::printf("status %d: %d\n", code, count);
  }
  EXPECT_GT(counts[grpc::StatusCode::OK], 0);
}

// Tests names that are not UTF-8. A client could not parse a reply that
// contains such a name.
TEST(RawTest, NamesThatAreNotUtf8AreNotTaken) {
  Victim victim(1);
  v1::DefineRequest request;
  Model model = {{DenseTable("name", {2})}};
  *request.mutable_model() = ToMessage(model);
  request.add_servers("ps0:1");
  request.set_run(kRun);
  std::string bytes = request.SerializeAsString();
  EXPECT_TRUE(victim.Send("Define", bytes).ok());
  bytes[bytes.find("name")] = '\xff';
  const grpc::Status refused = Victim(2).Send("Define", bytes);
  EXPECT_FALSE(refused.ok());
}

}  // namespace
}  // namespace penstock::ps

int main(int argc, char** argv) {
  return penstock::ps::RunWithSeeds(argc, argv, 10);
}
