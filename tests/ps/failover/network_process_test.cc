// Tests a training on separate hosts, with an etcd of three members. Cables are
// cut and lose packets, and processes are killed and stopped.
//
// NETWORK_SECONDS limits the time of the first test, and NETWORK_SEED repeats
// one scene.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tests/ps/checkpoint/test_folder.h"
#include "tests/ps/etcd/real_etcd.h"
#include "tests/ps/failover/bank.h"
#include "tests/ps/failover/etcd_members.h"
#include "tests/ps/failover/network.h"
#include "tests/ps/failover/servers.h"
#include "tests/ps/failover/stalls.h"
#include "transport/base/steady_time.h"

namespace penstock::ps {
namespace {

constexpr size_t kWorkerHost = 0;  // this process
constexpr size_t kFirstServer = 1;
constexpr size_t kServers = 3;
constexpr size_t kFirstMember = kFirstServer + kServers;
constexpr size_t kMembers = 3;
constexpr size_t kHosts = kFirstMember + kMembers;
// Limits the pause. A failover takes 3 s. After a cut of T seconds, TCP may
// wait for T more seconds.
constexpr absl::Duration kLongestPause = absl::Seconds(40);
constexpr absl::Duration kRecovery = absl::Seconds(60);
// Limits the pause of the whole machine. A longer pause ends leases.
constexpr absl::Duration kStall = absl::Seconds(1);
constexpr int kTries = 3;
constexpr absl::Duration kTraining = absl::Seconds(200);
// A failover takes at least the rest of the primary's lease.
constexpr absl::Duration kLeastFailover = absl::Seconds(1);
constexpr Cable kCut = {true, 0, absl::ZeroDuration(), absl::ZeroDuration()};

Network* the_network = nullptr;  // null: not permitted

#define SKIP_WITHOUT_NETWORK()                                             \
  SKIP_WITHOUT_ETCD();                                                     \
  if (the_network == nullptr) {                                            \
    GTEST_SKIP() << "this process may make no network namespaces and TAP " \
                    "devices";                                             \
  }                                                                        \
  static_assert(true, "")

// The processes of a training, and the faults that may happen to them.
class World {
 public:
  World(unsigned seed, unsigned workers)
      : random_(seed),
        etcd_(*the_network, kFirstMember, kMembers, folder_.name()),
        servers_({the_network, kFirstServer, etcd_.addresses()}, kServers,
                 workers) {
    the_network->Heal();
    the_network->Seed(seed);
  }
  ~World() { the_network->Heal(); }

  ReplicatedServers* servers() { return &servers_; }

  // Causes a fault for a while, and runs `meanwhile`. Returns a description of
  // the fault.
  std::string Play(const std::function<void()>& meanwhile) {
    the_network->TakeLost();
    const size_t server = Below(kServers);
    const size_t member = Below(kMembers);
    const absl::Duration time = absl::Milliseconds(500 + Below(6000));
    const auto during = [&](const std::string& what, bool goes_on) {
      const absl::Time begin = base::SteadyNow();
      if (goes_on) meanwhile();
      absl::SleepFor(time);
      return absl::StrCat(what, " for ", TextSince(begin));
    };
    switch (Below(9)) {
      case 0:
        servers_.Kill(server);
        meanwhile();
        EXPECT_TRUE(servers_.Start(server)) << servers_.Logs();
        return absl::StrCat("kill -9 of server ", server);
      case 1:
        return Stop(servers_.process(server), during,
                    absl::StrCat("server ", server, " is stopped"));
      case 2:
        return Cut(kFirstServer + server, true, true, during);
      case 3:
        return Cut(kFirstServer + server, true, false, during);
      case 4:
        return Cut(kFirstServer + server, false, true, during);
      case 5:
        return CutBetween(server, during);
      case 6:
        return LosePackets(time, meanwhile);
      case 7:
        if (Below(2) == 0) {
          return Stop(etcd_.process(member), during,
                      absl::StrCat("etcd ", member, " is stopped"));
        }
        etcd_.process(member)->Kill();
        meanwhile();
        etcd_.Start(member);
        return absl::StrCat("kill -9 of etcd ", member);
      default:
        return SplitEtcd(member, during);
    }
  }

  // Makes a server fail. Returns a function that waits until a view shows the
  // failure, and then repairs the server.
  std::function<void()> Depose() {
    const size_t server = Below(kServers);
    const uint64_t view = servers_.View().view().number();
    std::string what = absl::StrCat("server ", server);
    std::function<void()> repair;
    switch (Below(3)) {
      case 0:
        servers_.Kill(server);
        what += " is killed";
        repair = [=] { EXPECT_TRUE(servers_.Start(server)); };
        break;
      case 1:
        servers_.process(server)->Suspend();
        what += " is stopped";
        repair = [=] { servers_.process(server)->Resume(); };
        break;
      default:
        the_network->SetFrom(kFirstServer + server, kCut);
        the_network->SetTo(kFirstServer + server, kCut);
        what += " is cut off";
        repair = [] { the_network->Heal(); };
    }
    std::printf("%s\n", what.c_str());
    return [=] {
      const absl::Time limit = base::SteadyNow() + kRecovery;
      while (servers_.View().view().number() <= view &&
             base::SteadyNow() < limit) {
        absl::SleepFor(absl::Milliseconds(50));
      }
      EXPECT_GT(servers_.View().view().number(), view) << what;
      repair();
    };
  }

 private:
  // Lets time pass, and returns a description of the fault. `goes_on` is true
  // if workers reach all primaries, including new ones.
  using During =
      std::function<std::string(const std::string& what, bool goes_on)>;

  size_t Below(size_t limit) { return random_() % limit; }

  static std::string TextSince(absl::Time begin) {
    return absl::FormatDuration(
        absl::Trunc(base::SteadyNow() - begin, absl::Milliseconds(1)));
  }

  static std::string Stop(process::Child* process, const During& during,
                          const std::string& what) {
    process->Suspend();
    std::string text = during(what, true);
    process->Resume();
    return text;
  }

  static std::string Cut(size_t host, bool from, bool to,
                         const During& during) {
    if (from) the_network->SetFrom(host, kCut);
    if (to) the_network->SetTo(host, kCut);
    std::string text =
        during(absl::StrCat("host ", host, " is cut", from ? " (from)" : "",
                            to ? " (to)" : ""),
               true);
    HealAndExpectLoss(text);
    return text;
  }

  // Repairs all cables, and checks that packets were lost.
  static void HealAndExpectLoss(const std::string& what) {
    the_network->Heal();
    EXPECT_GT(the_network->TakeLost(), 0u) << what << " has disturbed nothing";
  }

  std::string CutBetween(size_t server, const During& during) {
    const size_t host = kFirstServer + server;
    const size_t other =
        Below(2) == 0 ? kWorkerHost : kFirstServer + (server + 1) % kServers;
    const bool both = Below(2) == 0;
    the_network->Set(host, other, kCut);
    if (both) the_network->Set(other, host, kCut);
    std::string text = during(absl::StrCat("host ", host, " is cut from ",
                                           other, both ? " both ways" : ""),
                              other != kWorkerHost);
    // Two servers may have exchanged no packet.
    other == kWorkerHost ? HealAndExpectLoss(text) : the_network->Heal();
    return text;
  }

  // Waits for `meanwhile` only after the loss, in which transfers may take
  // minutes.
  static std::string LosePackets(absl::Duration time,
                                 const std::function<void()>& meanwhile) {
    const Cable bad = {false, 0.3, absl::Milliseconds(5),
                       absl::Milliseconds(20)};
    for (size_t host = 0; host < kHosts; ++host) {
      the_network->SetFrom(host, bad);
    }
    const absl::Time begin = base::SteadyNow();
    absl::SleepFor(time);
    std::string text = absl::StrCat("all cables lose 30 % of the packets for ",
                                    TextSince(begin));
    HealAndExpectLoss(text);
    meanwhile();
    return text;
  }

  // Isolates a member of etcd from the other members, not from the servers.
  static std::string SplitEtcd(size_t member, const During& during) {
    const size_t host = kFirstMember + member;
    for (size_t i = 0; i < kMembers; ++i) {
      if (i == member) continue;
      the_network->Set(host, kFirstMember + i, kCut);
      the_network->Set(kFirstMember + i, host, kCut);
    }
    std::string text =
        during(absl::StrCat("etcd ", member, " is split off"), true);
    HealAndExpectLoss(text);
    return text;
  }

  const checkpoint::TestFolder folder_;
  std::mt19937 random_;
  EtcdMembers etcd_;
  ReplicatedServers servers_;
};

unsigned ChosenSeed() {
  unsigned seed = 0;
  const char* const text = std::getenv("NETWORK_SEED");
  if (text != nullptr && absl::SimpleAtoi(text, &seed)) return seed;
  return std::random_device()();
}

TEST(NetworkTest, ABankSurvivesAllThatFails) {
  SKIP_WITHOUT_NETWORK();
  double seconds = 12;
  const char* const text = std::getenv("NETWORK_SECONDS");
  if (text != nullptr) ASSERT_TRUE(absl::SimpleAtod(text, &seconds));
  const unsigned seed = ChosenSeed();
  std::printf("repeat with NETWORK_SEED=%u\n", seed);
  World world(seed, /*workers=*/2);
  ReplicatedServers* const servers = world.servers();
  Bank bank(servers->Channels(), servers->addresses(), 2,
            ReplicatedServers::ChannelTo);
  ASSERT_TRUE(servers->AwaitBackups(kRecovery)) << servers->Logs();
  const absl::Time end = base::SteadyNow() + absl::Seconds(seconds);
  Stalls stalls;
  do {
    bank.AwaitTransfers(20);
    bank.TakeLongestPause();
    stalls.Take();
    const uint64_t before = bank.transfers();
    const std::string what = world.Play([&] { bank.AwaitTransfers(20); });
    ASSERT_TRUE(servers->AwaitBackups(kRecovery)) << what << servers->Logs();
    const uint64_t healed = bank.transfers();
    bank.AwaitTransfers(20);
    const absl::Duration pause = bank.TakeLongestPause();
    std::printf("%s: %llu transfers, longest pause %s\n", what.c_str(),
                static_cast<unsigned long long>(bank.transfers() - before),
                absl::FormatDuration(absl::Trunc(pause, absl::Milliseconds(1)))
                    .c_str());
    std::fflush(stdout);
    if (stalls.Take() > kStall) {
      std::printf("the machine has paused\n");
      // A push may then be late at one server, which ends the bank.
      if (bank.failure().empty()) continue;
      GTEST_SKIP() << "the machine has paused: " << bank.failure();
    }
    ASSERT_EQ(bank.failure(), "") << what << servers->Logs();
    EXPECT_LT(pause, kLongestPause) << what;
    ASSERT_GE(bank.transfers(), healed + 20)
        << what << ": " << bank.Close() << servers->Logs();
  } while (base::SteadyNow() < end);
  EXPECT_EQ(bank.Close(), "") << servers->Logs();
}

// The steps of a training of digits, as a worker prints them.
struct Digits {
  std::string losses;  // losses of each step, and the result
  // The longest time without a step after a server had failed.
  absl::Duration pause;
};

// Trains the digits on two hosts of etcd's members. If `is_disturbed`, a server
// fails meanwhile.
Digits TrainDigits(World* world, bool is_disturbed) {
  std::vector<std::unique_ptr<process::Child>> workers;
  for (size_t rank = 0; rank < 2; ++rank) {
    std::vector<std::string> command = the_network->Enter(kFirstMember + rank);
    for (std::string& word : std::vector<std::string>{
             "examples/digits/digits_worker",
             "--servers=" + absl::StrJoin(world->servers()->addresses(), ","),
             absl::StrCat("--rank=", rank), "--workers=2", "--steps=60",
             "--seed=7"}) {
      command.push_back(std::move(word));
    }
    workers.push_back(process::Child::Start(std::move(command)));
    EXPECT_NE(workers.back(), nullptr);
  }
  Digits digits;
  std::thread repairs;
  absl::Time last = absl::InfiniteFuture();
  const absl::Time limit = base::SteadyNow() + kTraining;
  while (base::SteadyNow() < limit) {
    const auto line = workers[0]->Find("");  // nothing after ten seconds
    if (!line.has_value() && !workers[0]->IsAlive()) break;
    digits.pause = std::max(digits.pause, base::SteadyNow() - last);
    if (repairs.joinable()) last = base::SteadyNow();
    const std::vector<std::string> words =
        absl::StrSplit(line.value_or(""), ' ');
    const bool is_step = words[0] == "step" && words.size() > 2;
    if (is_step) {
      absl::StrAppend(&digits.losses, words[1], " ", words[2], "\n");
    }
    if (words[0] == "result") {
      absl::StrAppend(&digits.losses, *line, "\n");
      break;
    }
    if (!is_disturbed || !is_step || words[1] != "20") continue;
    // Keep the workers from finishing before the server fails.
    for (auto& worker : workers) worker->Suspend();
    EXPECT_TRUE(world->servers()->AwaitBackups(kRecovery));
    repairs = std::thread(world->Depose());
    for (auto& worker : workers) worker->Resume();
    last = base::SteadyNow();
  }
  for (auto& worker : workers) {
    absl::StrAppend(&digits.losses, "exit code ", worker->Finish(), "\n");
  }
  if (repairs.joinable()) repairs.join();
  return digits;
}

TEST(NetworkTest, SynchronousDigitsEndWithTheSameBits) {
  SKIP_WITHOUT_NETWORK();
  const unsigned seed = ChosenSeed();
  std::printf("repeat with NETWORK_SEED=%u\n", seed);
  Stalls stalls;
  for (int i = 0; i < kTries; ++i) {
    stalls.Take();
    Digits wanted;
    {
      World undisturbed(seed, /*workers=*/2);
      wanted = TrainDigits(&undisturbed, false);
    }
    World world(seed, /*workers=*/2);
    const Digits got = TrainDigits(&world, true);
    if (stalls.Take() > kStall) {
      std::printf("the machine has paused\n");
      continue;
    }
    EXPECT_THAT(wanted.losses, testing::HasSubstr("result"));
    EXPECT_THAT(wanted.losses, testing::HasSubstr("exit code 0"));
    EXPECT_EQ(got.losses, wanted.losses) << world.servers()->Logs();
    // Expects that the training has waited for a failover.
    EXPECT_GE(got.pause, kLeastFailover);
    return;
  }
  GTEST_SKIP() << "the machine pauses for seconds, again and again";
}

}  // namespace
}  // namespace penstock::ps

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  // Makes the network before there is a second thread.
  const auto network = penstock::ps::Network::Make(penstock::ps::kHosts);
  penstock::ps::the_network = network.get();
  return RUN_ALL_TESTS();
}
