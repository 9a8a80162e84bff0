// Two servers and their workers in one process, over real connections.

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "ps/client.h"
#include "ps/optimizer.h"
#include "ps/reader.h"
#include "ps/server.h"
#include "ps/service.h"
#include "tensor_service/status.h"

namespace penstock::ps {
namespace {

using tensor::Bundle;
using tensor::DType;
using tensor::Tensor;

class EndToEndTest : public testing::Test {
 protected:
  struct Node {
    std::unique_ptr<Server> core;
    std::unique_ptr<grpc::Service> service;
    std::unique_ptr<grpc::Server> server;
    int port = 0;
  };

  void Start(uint32_t workers, absl::Duration max_wait = absl::Minutes(1)) {
    for (Node& node : nodes_) {
      Server::Options options;
      options.barrier.expected_workers = workers;
      options.max_wait = max_wait;
      options.log = [](const std::string&) {};
      node.core = std::make_unique<Server>(options, *MakeSgd(1));
      node.service = MakeService(node.core.get());
      grpc::ServerBuilder builder;
      tensor::AllowUnlimitedMessages(&builder);
      builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                               &node.port);
      builder.RegisterService(node.service.get());
      node.server = builder.BuildAndStart();
      ASSERT_NE(node.server, nullptr);
    }
  }

  void TearDown() override {
    for (Node& node : nodes_) {
      if (node.server == nullptr) continue;
      node.core->Drain();
      node.server->Shutdown(std::chrono::system_clock::now());
      node.server->Wait();
    }
  }

  std::vector<std::shared_ptr<grpc::Channel>> Channels() const {
    std::vector<std::shared_ptr<grpc::Channel>> channels;
    for (const Node& node : nodes_) {
      grpc::ChannelArguments arguments = tensor::UnlimitedMessages();
      // Workers in one process must not share a connection.
      arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
      channels.push_back(grpc::CreateCustomChannel(
          absl::StrCat("127.0.0.1:", node.port),
          grpc::InsecureChannelCredentials(), arguments));
    }
    return channels;
  }

  static std::vector<VariableSpec> Specs() {
    return {{"a", DType::kF32, {kBig}}, {"b", DType::kF64, {2}}};
  }

  absl::StatusOr<std::unique_ptr<Worker>> Join(uint32_t rank) {
    Worker::Options options;
    options.servers = Channels();
    options.variables = Specs();
    options.rank = rank;
    return Worker::Join(std::move(options));
  }

  static Bundle Values(float a, double b) {
    std::vector<float> as(kBig, a);
    Bundle bundle;
    bundle.tensors.push_back({"a", *Tensor::Of<float>({kBig}, as)});
    bundle.tensors.push_back({"b", *Tensor::Of<double>({2}, {b, b})});
    return bundle;
  }

  static float First(const Worker::Pulled& pulled) {
    auto aligned = pulled.variables.tensors[0].tensor.Aligned();
    return (*aligned->flat<float>())[0];
  }

  static constexpr int64_t kBig = 2 << 20;  // 8 MiB: above the stock limit

  Node nodes_[2];
};

TEST_F(EndToEndTest, TwoWorkersAverage) {
  Start(2);
  auto run = [this](uint32_t rank, float gradient, float* result) {
    auto worker = Join(rank);
    ASSERT_TRUE(worker.ok()) << worker.status();
    if (rank == 0) {
      ASSERT_TRUE((*worker)->Initialize(Values(10, 10)).ok());
    }
    for (uint64_t step = 0; step < 3; ++step) {
      auto pulled = (*worker)->Pull(step);
      ASSERT_TRUE(pulled.ok()) << pulled.status();
      EXPECT_EQ(pulled->version, step);
      auto pushed = (*worker)->Push(step, Values(gradient, gradient));
      ASSERT_TRUE(pushed.ok()) << pushed.status();
      EXPECT_TRUE(pushed->counted);
      ASSERT_TRUE((*worker)->Await(step + 1).ok());
    }
    auto pulled = (*worker)->Pull(3);
    ASSERT_TRUE(pulled.ok());
    *result = First(*pulled);
    (*worker)->Leave();
  };
  float results[2] = {};
  std::thread other([&] { run(1, 3, &results[1]); });
  run(0, 1, &results[0]);
  other.join();
  EXPECT_EQ(results[0], 10 - 3 * 2);
  EXPECT_EQ(results[1], results[0]);
  EXPECT_EQ(nodes_[0].core->report().workers_lost, 0u);
}

TEST_F(EndToEndTest, WorkerThatDiesDoesNotHoldTheBarrier) {
  Start(2);
  auto chief = Join(0);
  ASSERT_TRUE(chief.ok());
  auto mortal = Join(1);
  ASSERT_TRUE(mortal.ok());
  ASSERT_TRUE((*chief)->Initialize(Values(5, 5)).ok());
  ASSERT_TRUE((*mortal)->Pull(0).ok());
  ASSERT_TRUE((*chief)->Push(0, Values(1, 1)).ok());
  mortal->reset();  // without Leave: its streams break
  absl::Status released = (*chief)->Await(1);
  ASSERT_TRUE(released.ok()) << released;
  EXPECT_EQ(First(*(*chief)->Pull(1)), 4);
  EXPECT_EQ(nodes_[0].core->report().workers_lost, 1u);
}

TEST_F(EndToEndTest, ReaderNeitherDelaysTheBarrierNorCounts) {
  Start(1);
  // It comes first, and would be the one worker that the start waits for.
  auto reader = std::make_unique<Reader>(Channels(), Specs());
  EXPECT_EQ(reader->Pull(0, absl::Milliseconds(1)).status().code(),
            absl::StatusCode::kDeadlineExceeded);
  auto before = reader->Describe(absl::Minutes(1));
  ASSERT_TRUE(before.ok()) << before.status();
  EXPECT_FALSE(before->initialized);
  EXPECT_EQ(before->live_workers, 0u);
  auto chief = Join(0);
  ASSERT_TRUE(chief.ok());
  ASSERT_TRUE((*chief)->Initialize(Values(5, 5)).ok());
  EXPECT_EQ(First(*reader->Pull(0, absl::Minutes(1))), 5);
  // Step 0 completes by the chief alone, while the reader waits in a Pull.
  std::thread waiting([&] {
    auto pulled = reader->Pull(2, absl::Minutes(1));
    ASSERT_TRUE(pulled.ok()) << pulled.status();
    EXPECT_EQ(pulled->version, 2u);
    EXPECT_EQ(First(*pulled), 3);
  });
  for (uint64_t step = 0; step < 2; ++step) {
    ASSERT_TRUE((*chief)->Push(step, Values(1, 1)).ok());
    ASSERT_TRUE((*chief)->Await(step + 1).ok());
  }
  waiting.join();
  auto during = reader->Describe(absl::Minutes(1));
  EXPECT_EQ(during->version, 2u);
  EXPECT_EQ(during->live_workers, 1u);
  reader.reset();  // nobody's loss
  ASSERT_TRUE((*chief)->Push(2, Values(1, 1)).ok());
  ASSERT_TRUE((*chief)->Await(3).ok());
  for (Node& node : nodes_) {
    EXPECT_EQ(node.core->report().live_workers, 1u);
    EXPECT_EQ(node.core->report().workers_lost, 0u);
    EXPECT_EQ(node.core->report().pushes_counted, 3u);
  }
}

TEST_F(EndToEndTest, NotANumberIsRefusedByNameAndTheStepGoesOn) {
  Start(1);
  auto chief = Join(0);
  ASSERT_TRUE(chief.ok());
  ASSERT_TRUE((*chief)->Initialize(Values(5, 5)).ok());
  auto refused = (*chief)->Push(0, Values(1, std::nan("")));
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(refused.status().message().find("variable b"),
            absl::string_view::npos)
      << refused.status();
  // Server 0 has taken its part; the repetition completes the other's.
  ASSERT_TRUE((*chief)->Push(0, Values(1, 1)).ok());
  ASSERT_TRUE((*chief)->Await(1).ok());
  EXPECT_EQ(First(*(*chief)->Pull(1)), 4);
}

TEST_F(EndToEndTest, RepeatedPushCountsOnce) {
  Start(1);
  auto chief = Join(0);
  ASSERT_TRUE(chief.ok());
  ASSERT_TRUE((*chief)->Initialize(Values(5, 5)).ok());
  ASSERT_TRUE((*chief)->Push(0, Values(1, 1)).ok());
  ASSERT_TRUE((*chief)->Await(1).ok());
  auto again = (*chief)->Push(0, Values(1, 1));
  ASSERT_TRUE(again.ok());
  EXPECT_FALSE(again->counted);
  EXPECT_EQ(again->version, 1u);
  EXPECT_EQ(First(*(*chief)->Pull(1)), 4);
}

TEST_F(EndToEndTest, VariablesAreInitialisedOnce) {
  Start(1);
  auto chief = Join(0);
  ASSERT_TRUE(chief.ok());
  ASSERT_TRUE((*chief)->Initialize(Values(5, 5)).ok());
  ASSERT_TRUE((*chief)->Initialize(Values(6, 6)).ok());
  EXPECT_EQ(First(*(*chief)->Pull(0)), 5);
  auto other = Join(1);
  EXPECT_EQ((*other)->Initialize(Values(7, 7)).code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST_F(EndToEndTest, WrongShapeIsRefused) {
  Start(1);
  auto chief = Join(0);
  ASSERT_TRUE(chief.ok());
  ASSERT_TRUE((*chief)->Initialize(Values(5, 5)).ok());
  Bundle gradients = Values(1, 1);
  gradients.tensors[1].tensor = *Tensor::Of<double>({1}, {1});
  EXPECT_EQ((*chief)->Push(0, gradients).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(EndToEndTest, WaitsEndByTheServersLimit) {
  Start(1, /*max_wait=*/absl::Milliseconds(1));
  auto chief = Join(0);
  ASSERT_TRUE(chief.ok());
  absl::Status status = (*chief)->Pull(0).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_NE(status.message().find("initialised"), absl::string_view::npos);
  ASSERT_TRUE((*chief)->Initialize(Values(5, 5)).ok());
  status = (*chief)->Await(1);
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_NE(status.message().find("workers 0"), absl::string_view::npos);
}

TEST_F(EndToEndTest, DrainEndsWaits) {
  Start(1);
  auto chief = Join(0);
  ASSERT_TRUE(chief.ok());
  ASSERT_TRUE((*chief)->Initialize(Values(5, 5)).ok());
  std::thread drainer([this] {
    for (Node& node : nodes_) node.core->Drain();
  });
  EXPECT_EQ((*chief)->Await(1).code(), absl::StatusCode::kUnavailable);
  drainer.join();
}

}  // namespace
}  // namespace penstock::ps
