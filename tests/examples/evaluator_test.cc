#include "examples/digits/evaluator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "ps/client/define.h"
#include "ps/client/worker.h"
#include "ps/server/server.h"
#include "ps/service/service.h"
#include "tensor_service/status.h"

namespace penstock::digits {
namespace {

using tensor::Bundle;
using tensor::Tensor;

// One server and one worker, which trains only on demand.
class EvaluatorTest : public testing::Test {
 protected:
  EvaluatorTest() {
    ps::Server::Options options;
    options.log = [](const std::string&) {};
    core_ = std::make_unique<ps::Server>(options);
    service_ = ps::MakeService(core_.get());
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                             &port_);
    builder.RegisterService(service_.get());
    server_ = builder.BuildAndStart();
  }

  ~EvaluatorTest() override {
    core_->Drain();
    server_->Shutdown(std::chrono::system_clock::now());
    server_->Wait();
  }

  std::vector<std::shared_ptr<grpc::Channel>> Channels() const {
    return {grpc::CreateChannel(absl::StrCat("127.0.0.1:", port_),
                                grpc::InsecureChannelCredentials())};
  }

  std::unique_ptr<ps::Worker> JoinAndInitialize() {
    ps::TableSpec table;
    table.name = "a";
    table.rows = ps::DenseSpec{tensor::DType::kF32, {1}};
    table.optimizer.schedule.learning_rate = 1;
    auto defined = ps::Define(
        {Channels(), {absl::StrCat("127.0.0.1:", port_)}, {{table}}});
    EXPECT_TRUE(defined.ok()) << defined.status();
    connection_ = defined->connection;
    ps::Worker::Options options;
    options.connection = connection_;
    auto worker = ps::Worker::Join(std::move(options));
    EXPECT_TRUE(worker.ok()) << worker.status();
    EXPECT_TRUE((*worker)->Initialize(Value(10)).ok());
    return *std::move(worker);
  }

  static void Step(ps::Worker* worker, uint64_t step) {
    ASSERT_TRUE(worker->Push(step, {Value(1), {}}).ok());
    ASSERT_TRUE(worker->Pull(step + 1).ok());
  }

  static Bundle Value(float value) {
    Bundle bundle;
    bundle.tensors.push_back({"a", *Tensor::Of<float>({1}, {value})});
    return bundle;
  }

  std::shared_ptr<const ps::TrainingConnection> connection_;
  std::unique_ptr<ps::Server> core_;
  std::unique_ptr<grpc::Service> service_;
  std::unique_ptr<grpc::Server> server_;
  int port_ = 0;
};

TEST_F(EvaluatorTest, EvaluatesNowAndThenAndEndsWithTheLastStep) {
  auto worker = JoinAndInitialize();
  ps::Reader reader(connection_);
  EvaluatorOptions options;
  options.steps = 5;
  options.every = 2;
  // Trains two steps first, and more steps during the evaluation. The versions
  // are thus known.
  Step(worker.get(), 0);
  Step(worker.get(), 1);
  std::vector<uint64_t> versions;
  absl::Status status = Evaluate(
      options, &reader, [&](uint64_t version, const Bundle& variables) {
        versions.push_back(version);
        auto aligned = variables.tensors[0].tensor.Aligned();
        EXPECT_EQ((*aligned->flat<float>())[0], 10 - float(version));
        for (uint64_t i = version; i < std::min(version + 2, options.steps);
             ++i) {
          Step(worker.get(), i);
        }
        return absl::OkStatus();
      });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(versions, (std::vector<uint64_t>{2, 4, 5}));
  EXPECT_EQ(core_->report().live_workers, 1u);
  EXPECT_EQ(core_->report().workers_lost, 0u);
}

TEST_F(EvaluatorTest, EndsWhenTheWorkersLeaveBeforeTheLastStep) {
  auto worker = JoinAndInitialize();
  Step(worker.get(), 0);
  worker->Leave();
  ps::Reader reader(connection_);
  EvaluatorOptions options;
  options.steps = 1000;
  std::vector<uint64_t> versions;
  absl::Status status =
      Evaluate(options, &reader, [&](uint64_t version, const Bundle&) {
        versions.push_back(version);
        return absl::OkStatus();
      });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(versions, std::vector<uint64_t>{1});
}

TEST_F(EvaluatorTest, TrainingThatHangsIsGivenUp) {
  auto worker = JoinAndInitialize();
  ps::Reader reader(connection_);
  EvaluatorOptions options;
  options.steps = 1;
  options.check_interval = absl::Milliseconds(10);
  options.patience = absl::Milliseconds(100);
  absl::Status status = Evaluate(options, &reader, [](uint64_t, const Bundle&) {
    return absl::InternalError("none");
  });
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_NE(status.message().find("hangs"), absl::string_view::npos) << status;
}

TEST_F(EvaluatorTest, ErrorOfAnEvaluationEndsIt) {
  auto worker = JoinAndInitialize();
  Step(worker.get(), 0);
  ps::Reader reader(connection_);
  EvaluatorOptions options;
  options.steps = 1;
  absl::Status status = Evaluate(options, &reader, [](uint64_t, const Bundle&) {
    return absl::InternalError("mine");
  });
  EXPECT_EQ(status, absl::InternalError("mine"));
}

}  // namespace
}  // namespace penstock::digits
