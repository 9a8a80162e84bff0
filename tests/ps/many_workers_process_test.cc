// Tests one ps_server with the connections of 1,000 workers. Idle workers must
// not delay the others, and busy ones must lose no push.

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "ps/client/define.h"
#include "ps/client/reader.h"
#include "ps/client/worker.h"
#include "tests/process/child.h"

namespace penstock::ps {
namespace {

constexpr uint32_t kWorkers = 1000;
constexpr uint64_t kSteps = 5;  // per busy worker
constexpr int kThreads = 8;
// The timeout of calls, enough for a loaded machine of two cores. Heartbeats
// are late on such a machine, too. The lease of a worker therefore is two
// minutes.
constexpr absl::Duration kTimeout = absl::Minutes(5);

// Returns the time of the steady clock.
absl::Time SteadyNow() {
  return absl::UnixEpoch() +
         absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
}

// Returns a channel with a connection of its own.
std::shared_ptr<grpc::Channel> Connect(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(),
                                   arguments);
}

tensor::Bundle One(float value) {
  return {{{"w", *tensor::Tensor::Of<float>({1}, {value})}}};
}

// Returns a line of /proc/PID/status, such as "VmRSS:".
std::string StatusOf(pid_t pid, const std::string& wanted) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/status"));
  std::string line;
  while (std::getline(file, line)) {
    if (line.rfind(wanted, 0) == 0) return line;
  }
  return "";
}

class ManyWorkersTest : public testing::Test {
 protected:
  void SetUp() override {
    rlimit files = {};
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = std::min<rlim_t>(files.rlim_max, 16384);
    setrlimit(RLIMIT_NOFILE, &files);
    if (files.rlim_cur < 4 * kWorkers) {
      GTEST_SKIP() << "too few open files are permitted: ulimit -Hn "
                   << 4 * kWorkers;
    }
    server_ = process::Child::Start({"ps/ps_server", "--listen=127.0.0.1:0",
                                     absl::StrCat("--workers=", kWorkers),
                                     "--assemble=300", "--lease=120"});
    ASSERT_NE(server_, nullptr);
    const auto port = server_->Find("port ");
    ASSERT_TRUE(port.has_value());
    address_ = absl::StrCat("127.0.0.1:", *port);
    Definition definition;
    definition.addresses = {address_};
    definition.servers = {Connect(address_)};
    TableSpec table;
    table.name = "w";
    table.rows = DenseSpec{tensor::DType::kF32, {1}};
    table.staleness = ConsistencyPolicy::kUnlimited;
    table.optimizer.schedule.learning_rate = 1;
    definition.model.tables = {table};
    const auto defined = Define(definition);
    ASSERT_TRUE(defined.ok()) << defined.status();
    connection_ = defined->connection;
    AddWorker(connection_);
    ASSERT_TRUE(workers_[0]->Initialize(One(0)).ok());
  }

  void AddWorker(std::shared_ptr<const TrainingConnection> connection) {
    Worker::Options options;
    options.connection = std::move(connection);
    options.rank = static_cast<uint32_t>(workers_.size());
    options.join_timeout = kTimeout;
    auto worker = Worker::Join(std::move(options));
    ASSERT_TRUE(worker.ok()) << worker.status();
    next_.push_back((*worker)->clock());
    workers_.push_back(*std::move(worker));
  }

  void AddAllWorkers() {
    while (workers_.size() < kWorkers) {
      TrainingConnection::Options options;
      options.servers = {Connect(address_)};
      options.timeout = kTimeout;
      auto connection = TrainingConnection::Open(options);
      ASSERT_TRUE(connection.ok()) << connection.status();
      ASSERT_NO_FATAL_FAILURE(AddWorker(*std::move(connection)));
    }
  }

  void Push(uint32_t rank) {
    const auto pushed = workers_[rank]->Push(next_[rank]++, {One(-1), {}});
    ASSERT_TRUE(pushed.ok()) << pushed.status();
    ASSERT_TRUE(pushed->counted());
    ++pushes_;
  }

  // Returns the median time of a push by worker 0.
  absl::Duration MedianPush() {
    std::vector<absl::Duration> times;
    for (int i = 0; i < 200; ++i) {
      const absl::Time begin = SteadyNow();
      Push(0);
      times.push_back(SteadyNow() - begin);
    }
    std::nth_element(times.begin(), times.begin() + 100, times.end());
    return times[100];
  }

  void PushAll() {
    std::vector<std::thread> threads;
    for (int at = 0; at < kThreads; ++at) {
      threads.emplace_back([this, at] {
        for (uint64_t step = 0; step < kSteps; ++step) {
          for (uint32_t rank = static_cast<uint32_t>(at); rank < kWorkers;
               rank += kThreads) {
            Push(rank);
          }
        }
      });
    }
    for (std::thread& each : threads) each.join();
  }

  std::unique_ptr<process::Child> server_;
  std::string address_;
  std::shared_ptr<const TrainingConnection> connection_;  // of worker 0
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<uint64_t> next_;  // the next step of each worker
  std::atomic<uint64_t> pushes_{0};
};

TEST_F(ManyWorkersTest, IdleOnesHoldUpNobodyAndBusyOnesLoseNothing) {
  const absl::Duration alone = MedianPush();
  std::printf("alone: push %s, %s\n", absl::FormatDuration(alone).c_str(),
              StatusOf(server_->pid(), "VmRSS:").c_str());
  ASSERT_NO_FATAL_FAILURE(AddAllWorkers());
  absl::SleepFor(absl::Seconds(5));
  const absl::Duration among_idle = MedianPush();
  std::printf("%u idle workers: push %s, %s\n", kWorkers,
              absl::FormatDuration(among_idle).c_str(),
              StatusOf(server_->pid(), "VmRSS:").c_str());
  EXPECT_LT(among_idle, 20 * alone + absl::Milliseconds(20));
  const absl::Time begin = SteadyNow();
  PushAll();
  std::printf("%u busy workers: %.0f pushes a second, %s\n", kWorkers,
              kWorkers * kSteps / absl::ToDoubleSeconds(SteadyNow() - begin),
              StatusOf(server_->pid(), "Threads:").c_str());
  // Waits, because acknowledged pushes are applied soon.
  const absl::Time limit = SteadyNow() + kTimeout;
  float value = 0;
  while (value != static_cast<float>(pushes_) && SteadyNow() < limit) {
    const auto pulled = Reader(connection_).Pull(0, {}, kTimeout);
    ASSERT_TRUE(pulled.ok()) << pulled.status();
    value = (*pulled->Dense("w")->Aligned()->flat<float>())[0];
  }
  EXPECT_EQ(value, static_cast<float>(pushes_));
}

}  // namespace
}  // namespace penstock::ps
