// Tests servers and workers, as processes, that are killed and stopped. The
// other processes must continue, or must end soon and name the missing process.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "grpcpp/client_context.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "ps/client/define.h"
#include "ps/client/worker.h"
#include "ps/wire/ps.grpc.pb.h"
#include "tensor_service/status.h"
#include "tests/process/child.h"

namespace penstock::ps {
namespace {

using process::Child;
using testing::AllOf;
using testing::AnyOf;
using testing::Contains;
using testing::Each;
using testing::HasSubstr;

constexpr char kWorkerFlag[] = "--worker";
constexpr char kServer[] = "ps/ps_server";
constexpr char kForEver[] = "1000000000\n";  // steps
// Limits a worker's call, and therefore every wait in this test.
constexpr absl::Duration kTimeout = absl::Seconds(3);

// Runs a worker. Each line of its input is a number of steps to take. The
// worker then prints "done", or the reason why it has ended.

Model OneTableAtEach() {
  Model model;
  for (const char* name : {"a", "b"}) {
    TableSpec table;
    table.name = name;
    // Makes tables so large that no two share a server.
    table.rows = DenseSpec{tensor::DType::kF32, {8192}};
    table.optimizer.schedule.learning_rate = 1;
    model.tables.push_back(table);
  }
  return model;
}

tensor::Bundle Zeros() {
  const auto zeros =
      *tensor::Tensor::Of<float>({8192}, std::vector<float>(8192));
  return {{{"a", zeros}, {"b", zeros}}};
}

absl::StatusOr<std::unique_ptr<Worker>> Begin(
    uint32_t rank, const std::vector<std::string>& addresses) {
  TrainingConnection::Options open;
  for (const std::string& address : addresses) {
    open.servers.push_back(
        grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(),
                                  tensor::UnlimitedMessages()));
  }
  Worker::Options options;
  options.rank = rank;
  options.pull_timeout = kTimeout;
  options.push_timeout = kTimeout;
  if (rank == 0) {
    Definition definition;
    definition.servers = open.servers;
    definition.addresses = addresses;
    definition.model = OneTableAtEach();
    const auto defined = Define(definition);
    if (!defined.ok()) return defined.status();
    options.connection = defined->connection;
  } else {
    const auto connection = TrainingConnection::Open(open);
    if (!connection.ok()) return connection.status();
    options.connection = *connection;
  }
  auto worker = Worker::Join(std::move(options));
  if (!worker.ok() || rank != 0) return worker;
  const absl::Status given = (*worker)->Initialize(Zeros());
  if (!given.ok()) return given;
  return worker;
}

absl::Status Train(uint32_t rank, const std::vector<std::string>& addresses) {
  auto worker = Begin(rank, addresses);
  if (!worker.ok()) return worker.status();
  uint64_t step = (*worker)->clock();
  for (uint64_t steps = 0; std::cin >> steps;) {
    for (const uint64_t end = step + steps; step < end; ++step) {
      const auto pulled = (*worker)->Pull(step);
      if (!pulled.ok()) return pulled.status();
      const auto pushed = (*worker)->Push(step, {Zeros(), {}});
      if (!pushed.ok()) return pushed.status();
    }
    std::cout << "done" << std::endl;
  }
  return absl::OkStatus();
}

int BeWorker(const std::vector<std::string>& arguments) {
  uint32_t rank = 0;
  if (!absl::SimpleAtoi(arguments[0], &rank)) return 2;
  const absl::Status ended =
      Train(rank, {arguments.begin() + 1, arguments.end()});
  std::cout << "ended: " << ended.ToString() << std::endl;
  return 1;
}

class ProcessesTest : public testing::Test {
 protected:
  void SetUp() override {
    for (int i = 0; i < 2; ++i) {
      servers_.push_back(StartServer("127.0.0.1:0"));
      ASSERT_NE(servers_.back(), nullptr);
      const auto port = servers_.back()->Find("port ");
      ASSERT_TRUE(port.has_value());
      addresses_.push_back(absl::StrCat("127.0.0.1:", *port));
    }
    for (int rank = 0; rank < 2; ++rank) {
      std::vector<std::string> command = {"/proc/self/exe", kWorkerFlag,
                                          absl::StrCat(rank)};
      command.insert(command.end(), addresses_.begin(), addresses_.end());
      workers_.push_back(Child::Start(command));
      ASSERT_NE(workers_.back(), nullptr);
    }
    ASSERT_TRUE(TakeSteps({0, 1}));
  }

  // Starts a server with a lease far below kTimeout. The server therefore soon
  // stops waiting for a silent worker.
  static std::unique_ptr<Child> StartServer(const std::string& address) {
    return Child::Start({kServer, absl::StrCat("--listen=", address),
                         "--workers=2", "--lease=0.5", "--wait=2", "--quiet"});
  }

  // Makes these workers take some steps. Returns true if all steps succeed.
  bool TakeSteps(const std::vector<int>& ranks) {
    for (const int rank : ranks) workers_[rank]->Tell("20\n");
    for (const int rank : ranks) {
      if (!workers_[rank]->Find("done").has_value()) return false;
    }
    return true;
  }

  // Makes all workers train. Returns why each worker ended, or "" for a worker
  // that continues.
  std::vector<std::string> TrainUntilTheyEnd() {
    for (auto& worker : workers_) worker->Tell(kForEver);
    std::vector<std::string> ends;
    ends.reserve(workers_.size());
    for (auto& worker : workers_) {
      ends.push_back(worker->Find("ended: ").value_or(""));
    }
    return ends;
  }

  std::string NameOf(int server) const {
    return absl::StrCat("server ", server, " (", addresses_[server], ")");
  }

  std::vector<std::unique_ptr<Child>> servers_;
  std::vector<std::string> addresses_;
  std::vector<std::unique_ptr<Child>> workers_;
};

TEST_F(ProcessesTest, AWorkerThatIsKilledIsNotWaitedFor) {
  workers_[1]->Kill();
  EXPECT_TRUE(TakeSteps({0}));
}

TEST_F(ProcessesTest, AWorkerThatIsStoppedIsNotWaitedForAndComesBack) {
  workers_[1]->Suspend();
  EXPECT_TRUE(TakeSteps({0}));
  workers_[1]->Resume();
  // Let worker 0 continue for ever: the workers are no longer at the same step,
  // and worker 1 may wait for its pushes.
  workers_[0]->Tell(kForEver);
  EXPECT_TRUE(TakeSteps({1}));
}

// Tests that the workers' messages name a killed server. A message may name a
// worker instead: if worker A waits for worker B, which waits for the server, A
// may end before B.
TEST_F(ProcessesTest, AServerThatIsKilledIsNamed) {
  servers_[1]->Kill();
  const std::vector<std::string> ends = TrainUntilTheyEnd();
  EXPECT_THAT(ends, Each(AnyOf(HasSubstr(NameOf(1)), HasSubstr("worker "))));
  EXPECT_THAT(ends, Contains(HasSubstr(NameOf(1))));
}

TEST_F(ProcessesTest, AServerThatIsStoppedIsNamed) {
  servers_[1]->Suspend();
  const std::vector<std::string> ends = TrainUntilTheyEnd();
  EXPECT_THAT(ends, Each(AnyOf(HasSubstr(NameOf(1)), HasSubstr("worker "))));
  EXPECT_THAT(
      ends, Contains(AllOf(HasSubstr(NameOf(1)), HasSubstr("is it running"))));
}

TEST_F(ProcessesTest, AServerThatIsStoppedForAMomentLosesNothing) {
  servers_[1]->Suspend();
  for (auto& worker : workers_) worker->Tell("20\n");
  servers_[1]->Resume();
  for (auto& worker : workers_) EXPECT_TRUE(worker->Find("done").has_value());
}

// Tests heartbeats that wait in the server's sockets while it is stopped, twice
// in a row.
TEST(StoppedServerTest, LosesNoWorkerThatLives) {
  constexpr absl::Duration kLease = absl::Seconds(2);
  const auto server = Child::Start(
      {kServer, "--listen=127.0.0.1:0", "--workers=1", "--lease=2", "--quiet"});
  ASSERT_NE(server, nullptr);
  const auto port = server->Find("port ");
  ASSERT_TRUE(port.has_value());
  const std::string address = absl::StrCat("127.0.0.1:", *port);
  const auto worker = Begin(0, {address});
  ASSERT_TRUE(worker.ok()) << worker.status();
  for (int i = 0; i < 2; ++i) {
    server->Suspend();
    absl::SleepFor(kLease * 3 / 2);
    server->Resume();
    absl::SleepFor(absl::Milliseconds(5));  // too short to read all sockets
  }
  absl::SleepFor(kLease / 2);
  const auto stub = v1::ParameterServer::NewStub(
      grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  v1::ServerReport report;
  const grpc::Status described = stub->Describe(&context, {}, &report);
  ASSERT_TRUE(described.ok()) << described.error_message();
  EXPECT_EQ(report.live_workers(), 1u);
  EXPECT_EQ(report.workers_lost(), 0u);
}

TEST_F(ProcessesTest, AServerThatIsStartedAnewSaysThatTheRunIsLost) {
  servers_[1]->Kill();
  servers_[1] = StartServer(addresses_[1]);
  ASSERT_TRUE(servers_[1]->Find("port ").has_value());
  EXPECT_THAT(TrainUntilTheyEnd(), Contains(AllOf(HasSubstr(NameOf(1)),
                                                  HasSubstr("was restarted"))));
}

}  // namespace
}  // namespace penstock::ps

int main(int argc, char** argv) {
  if (argc > 3 && std::string(argv[1]) == penstock::ps::kWorkerFlag) {
    return penstock::ps::BeWorker({argv + 2, argv + argc});
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
