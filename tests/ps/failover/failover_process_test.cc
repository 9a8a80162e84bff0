// Tests that a training survives the loss of servers. Runs ps_server processes
// with replicas, an etcd, and workers that know nothing of either.
//
// FAILOVER_SECONDS makes the last test longer than a few seconds.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "ps/client/define.h"
#include "ps/client/worker.h"
#include "ps/membership/keys.h"
#include "tests/ps/checkpoint/test_folder.h"
#include "tests/ps/etcd/real_etcd.h"
#include "tests/ps/failover/bank.h"
#include "tests/ps/failover/checkpoints.h"
#include "tests/ps/failover/servers.h"
#include "tests/ps/failover/timeline.h"
#include "transport/base/steady_time.h"

namespace penstock::ps {
namespace {

// Limits the pause of a worker. A failover takes about 3 s, and longer on
// machines that run other tests.
constexpr absl::Duration kLongestPause = absl::Seconds(15);

void Print(const char* what, absl::Duration pause) {
  std::printf(
      "%s: longest pause %s\n", what,
      absl::FormatDuration(absl::Trunc(pause, absl::Milliseconds(1))).c_str());
}

// Ends the server `name` by `end`. Prints the times from then on until etcd
// forgets the server, etcd has the next view, and workers make transfers.
void PrintTimeline(const char* what, ReplicatedServers* servers,
                   const std::string& name, const Bank& bank,
                   const std::function<void()>& end) {
  Timeline timeline(servers->etcd_address(), "t");
  const uint64_t view = servers->View().view().number();
  const absl::Time begin = base::SteadyNow();
  end();
  const absl::Time gone =
      timeline.AwaitGone(membership::ServerKey(name), kLongestPause);
  const absl::Time decided = timeline.AwaitViewAfter(view, kLongestPause);
  bank.AwaitTransfers(4);
  const absl::Time transferred = base::SteadyNow();
  std::printf(
      "%s: etcd forgets the server after %lld ms, has the next view "
      "after %lld ms; transfers after %lld ms\n",
      what, static_cast<long long>(absl::ToInt64Milliseconds(gone - begin)),
      static_cast<long long>(absl::ToInt64Milliseconds(decided - begin)),
      static_cast<long long>(absl::ToInt64Milliseconds(transferred - begin)));
}

TEST(FailoverTest, ATrainingSurvivesKilledAndStoppedServers) {
  SKIP_WITHOUT_ETCD();
  ReplicatedServers servers(3, /*replicas=*/1, /*workers=*/2);
  Bank bank(servers.Channels(), servers.addresses(), 2);
  ASSERT_TRUE(servers.AwaitBackups()) << servers.Logs();
  bank.AwaitTransfers(50);
  Print("undisturbed", bank.TakeLongestPause());

  PrintTimeline("kill -9", &servers, "ps-1", bank, [&] { servers.Kill(1); });
  bank.AwaitTransfers(50);
  const absl::Duration killed = bank.TakeLongestPause();
  Print("kill -9", killed);
  EXPECT_LT(killed, kLongestPause);
  EXPECT_NE(servers.PrimaryOf(1), 1u);

  ASSERT_TRUE(servers.Start(1));
  ASSERT_TRUE(servers.AwaitBackups()) << servers.Logs();
  Print("return", bank.TakeLongestPause());

  const size_t stopped = servers.PrimaryOf(0);
  PrintTimeline("SIGSTOP", &servers, absl::StrCat("ps-", stopped), bank,
                [&] { servers.process(stopped)->Suspend(); });
  bank.AwaitTransfers(50);
  const absl::Duration paused = bank.TakeLongestPause();
  Print("SIGSTOP", paused);
  EXPECT_LT(paused, kLongestPause);
  // The stop was longer than the lease of the server.
  EXPECT_NE(servers.PrimaryOf(0), stopped);
  servers.process(stopped)->Resume();
  ASSERT_TRUE(servers.AwaitBackups()) << servers.Logs();
  EXPECT_EQ(bank.Close(), "") << servers.Logs();
}

TEST(FailoverTest, AnEtcdThatWasWipedChangesNothing) {
  SKIP_WITHOUT_ETCD();
  ReplicatedServers servers(2, /*replicas=*/1, /*workers=*/1);
  Bank bank(servers.Channels(), servers.addresses(), 1);
  ASSERT_TRUE(servers.AwaitBackups()) << servers.Logs();
  const uint64_t view = servers.View().view().number();
  servers.WipeEtcd();
  const absl::Time limit = base::SteadyNow() + absl::Seconds(30);
  while (!absl::StrContains(servers.Logs(), "Start all servers and workers") &&
         base::SteadyNow() < limit) {
    bank.AwaitTransfers(10);
  }
  EXPECT_THAT(servers.Logs(), testing::HasSubstr("etcd was wiped"));
  bank.AwaitTransfers(50);
  EXPECT_EQ(servers.View().view().number(), view);
  EXPECT_THAT(servers.View().etcd_failure(), testing::HasSubstr("wiped"));
  EXPECT_EQ(bank.failure(), "");
  EXPECT_EQ(bank.Close(), "") << servers.Logs();
}

TEST(FailoverTest, AWorkerThatComesLateFindsTheServersThatLive) {
  SKIP_WITHOUT_ETCD();
  ReplicatedServers servers(2, /*replicas=*/1, /*workers=*/1);
  Bank bank(servers.Channels(), servers.addresses(), 1);
  ASSERT_TRUE(servers.AwaitBackups()) << servers.Logs();
  bank.AwaitTransfers(10);
  servers.Kill(0);
  // Does not use server 0, because Close() opens another connection.
  bank.AwaitTransfers(10);
  EXPECT_EQ(bank.Close(), "") << servers.Logs();
}

TEST(FailoverTest, PeriodicCheckpointsGoOnAndAreRestored) {
  SKIP_WITHOUT_ETCD();
  const checkpoint::TestFolder kept;
  const std::string& folder = kept.name();
  uint64_t transfers = 0;
  {
    ReplicatedServers servers(
        2, /*replicas=*/1, /*workers=*/2,
        {"--checkpoints=" + folder, "--checkpoint-every=1"});
    Bank bank(servers.Channels(), servers.addresses(), 2);
    ASSERT_TRUE(servers.AwaitBackups()) << servers.Logs();
    AwaitCheckpointAfter(folder, 0);
    servers.Kill(0);
    bank.AwaitTransfers(20);
    transfers = bank.transfers();
    // Waits for the second new checkpoint, because the first one may have begun
    // before the change.
    AwaitCheckpointAfter(folder, NewestIn(folder));
    AwaitCheckpointAfter(folder, NewestIn(folder));
    EXPECT_EQ(bank.Close(), "") << servers.Logs();
  }
  ReplicatedServers servers(2, /*replicas=*/1, /*workers=*/1,
                            {"--checkpoints=" + folder, "--restore=newest"});
  Bank restored(servers.Channels(), servers.addresses(), 0);
  const auto counted = restored.Counted(2);
  ASSERT_TRUE(counted.ok()) << counted.status() << servers.Logs();
  EXPECT_GE(*counted, transfers);
  ASSERT_TRUE(servers.AwaitBackups()) << servers.Logs();
  servers.Kill(0);
  EXPECT_EQ(*restored.Counted(2), *counted);
  EXPECT_EQ(restored.Close(), "") << servers.Logs();
}

// Trains a synchronous table, whose gradients depend on the values, and returns
// the last values. Calls `disturb` at half of the steps.
std::vector<float> TrainInStep(ReplicatedServers* servers,
                               const std::function<void()>& disturb) {
  constexpr uint64_t kSteps = 40;
  constexpr int64_t kElements = 1000;
  TableSpec table;
  table.name = "w";
  table.rows = DenseSpec{tensor::DType::kF32, {kElements}};
  table.optimizer.schedule.learning_rate = 0.1;
  Definition definition;
  definition.servers = servers->Channels();
  definition.addresses = servers->addresses();
  definition.model.tables = {table};
  const auto defined = Define(definition);
  EXPECT_TRUE(defined.ok()) << defined.status();
  if (!defined.ok()) return {};
  std::vector<float> last;
  const auto work = [&](uint32_t rank) {
    Worker::Options options;
    options.connection = defined->connection;
    options.rank = rank;
    auto worker = Worker::Join(std::move(options));
    ASSERT_TRUE(worker.ok()) << worker.status();
    if (rank == 0) {
      std::vector<float> first(kElements);
      for (size_t i = 0; i < first.size(); ++i) {
        first[i] = 1.0F / static_cast<float>(i + 3);
      }
      tensor::Bundle values;
      values.tensors = {
          {"w", *tensor::Tensor::Of<float>({kElements}, std::move(first))}};
      const absl::Status set = (*worker)->Initialize(values);
      ASSERT_TRUE(set.ok()) << set;
    }
    for (uint64_t step = 0; step <= kSteps; ++step) {
      const auto pulled = (*worker)->Pull(step);
      ASSERT_TRUE(pulled.ok()) << pulled.status();
      const auto aligned = pulled->Dense("w")->Aligned();
      const auto values = aligned->flat<float>();
      std::vector<float> gradient(values->begin(), values->end());
      if (step == kSteps) {
        if (rank == 0) last = gradient;
        break;
      }
      if (rank == 0 && step == kSteps / 2) disturb();
      for (size_t i = 0; i < gradient.size(); ++i) {
        gradient[i] = gradient[i] * 0.3F + static_cast<float>(rank + step) /
                                               static_cast<float>(i + 7);
      }
      StepGradients gradients;
      gradients.dense.tensors = {
          {"w", *tensor::Tensor::Of<float>({kElements}, std::move(gradient))}};
      const auto pushed = (*worker)->Push(step, gradients);
      ASSERT_TRUE(pushed.ok()) << pushed.status();
      ASSERT_TRUE(pushed->counted());
    }
    (*worker)->Leave();
  };
  std::thread other([&] { work(1); });
  work(0);
  other.join();
  return last;
}

TEST(FailoverTest, ASynchronousTrainingEndsWithTheSameBits) {
  SKIP_WITHOUT_ETCD();
  ReplicatedServers undisturbed(2, /*replicas=*/1, /*workers=*/2);
  const std::vector<float> wanted = TrainInStep(&undisturbed, [] {});
  ASSERT_EQ(wanted.size(), 1000u) << undisturbed.Logs();
  ReplicatedServers servers(2, /*replicas=*/1, /*workers=*/2);
  const std::vector<float> got = TrainInStep(&servers, [&] {
    ASSERT_TRUE(servers.AwaitBackups()) << servers.Logs();
    servers.Kill(0);
  });
  ASSERT_EQ(got.size(), wanted.size()) << servers.Logs();
  EXPECT_EQ(
      std::memcmp(got.data(), wanted.data(), wanted.size() * sizeof(float)), 0);
}

TEST(FailoverTest, ABankSurvivesALongChaos) {
  SKIP_WITHOUT_ETCD();
  double seconds = 0;
  const char* const text = std::getenv("FAILOVER_SECONDS");
  if (text == nullptr || !absl::SimpleAtod(text, &seconds)) {
    GTEST_SKIP() << "FAILOVER_SECONDS is not set: runs in long_failover_test";
  }
  std::random_device device;
  const unsigned seed = device();
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  std::mt19937 random(seed);
  ReplicatedServers servers(3, /*replicas=*/1, /*workers=*/2);
  Bank bank(servers.Channels(), servers.addresses(), 2);
  const absl::Time end = base::SteadyNow() + absl::Seconds(seconds);
  absl::Duration longest;
  while (base::SteadyNow() < end) {
    ASSERT_TRUE(servers.AwaitBackups()) << servers.Logs();
    bank.AwaitTransfers(20 + random() % 200);
    const size_t victim = random() % 3;
    switch (random() % 3) {
      case 0:
        servers.Kill(victim);
        bank.AwaitTransfers(random() % 100);
        ASSERT_TRUE(servers.Start(victim));
        break;
      case 1:
        servers.process(victim)->Suspend();
        absl::SleepFor(absl::Milliseconds(random() % 5000));
        servers.process(victim)->Resume();
        break;
      case 2:
        servers.etcd()->Suspend();
        bank.AwaitTransfers(100);
        absl::SleepFor(absl::Milliseconds(random() % 5000));
        servers.etcd()->Resume();
        break;
    }
    longest = std::max(longest, bank.TakeLongestPause());
  }
  Print("chaos", longest);
  std::printf("%llu transfers, view %llu\n",
              static_cast<unsigned long long>(bank.transfers()),
              static_cast<unsigned long long>(servers.View().view().number()));
  EXPECT_EQ(bank.Close(), "") << servers.Logs();
}

}  // namespace
}  // namespace penstock::ps
