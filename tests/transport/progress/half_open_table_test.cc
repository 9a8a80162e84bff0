#include "transport/progress/half_open_table.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace penstock {
namespace progress {
namespace {

using Id = HalfOpenTable::Id;

sockaddr_storage Address(int family, const char* text) {
  sockaddr_storage address = {};
  address.ss_family = static_cast<sa_family_t>(family);
  void* const bytes =
      family == AF_INET ? static_cast<void*>(
                              &reinterpret_cast<sockaddr_in&>(address).sin_addr)
                        : &reinterpret_cast<sockaddr_in6&>(address).sin6_addr;
  EXPECT_EQ(inet_pton(family, text, bytes), 1) << text;
  return address;
}

TEST(HostOf, IsTheAddressWithoutWhatItsOwnerChooses) {
  sockaddr_storage one = Address(AF_INET, "10.0.0.1");
  reinterpret_cast<sockaddr_in&>(one).sin_port = htons(1234);
  EXPECT_EQ(HostOf(one), HostOf(Address(AF_INET, "10.0.0.1")));
  EXPECT_NE(HostOf(one), HostOf(Address(AF_INET, "10.0.0.2")));
  EXPECT_EQ(HostOf(one), HostOf(Address(AF_INET6, "::ffff:10.0.0.1")));
  EXPECT_EQ(HostOf(Address(AF_INET6, "2001:db8::1")),
            HostOf(Address(AF_INET6, "2001:db8::ffff:ffff:ffff:ffff")));
  EXPECT_NE(HostOf(Address(AF_INET6, "2001:db8::1")),
            HostOf(Address(AF_INET6, "2001:db8:0:1::1")));
  sockaddr_storage unix_socket = {};
  unix_socket.ss_family = AF_UNIX;
  EXPECT_EQ(HostOf(unix_socket), "");
}

TEST(HalfOpenTable, WithinItsLimitsNobodyGoes) {
  HalfOpenTable table({4, 2});
  for (const char* host : {"a", "b", "a", "b"}) {
    table.Add(host);
    EXPECT_FALSE(table.Excess().has_value());
  }
  EXPECT_EQ(table.size(), 4u);
}

TEST(HalfOpenTable, TheOldestOfAHostAboveItsLimitGoes) {
  HalfOpenTable table({100, 2});
  const Id first = table.Add("a");
  table.Add("a");
  table.Add("b");
  table.Add("a");
  EXPECT_EQ(table.Excess(), first);
  table.Remove(first);
  EXPECT_FALSE(table.Excess().has_value());
}

TEST(HalfOpenTable, WhereAllAreTooManyTheHostWithTheMostPays) {
  HalfOpenTable table({4, 4});
  table.Add("quiet");
  const Id first = table.Add("loud");
  table.Add("loud");
  table.Add("loud");
  table.Add("new");
  EXPECT_EQ(table.Excess(), first);
}

TEST(HalfOpenTable, OfHostsWithAsManyTheOneThatHasWaitedLongestPays) {
  HalfOpenTable table({3, 3});
  const Id oldest = table.Add("z");
  for (const char* host : {"a", "y", "b"}) table.Add(host);
  EXPECT_EQ(table.Excess(), oldest);
}

TEST(HalfOpenTable, NextIsThereAlsoWithinTheLimits) {
  HalfOpenTable table({10, 10});
  EXPECT_FALSE(table.Next().has_value());
  const Id only = table.Add("a");
  EXPECT_EQ(table.Next(), only);
  table.Remove(only);
  table.Remove(only);  // the second call has no effect
  EXPECT_FALSE(table.Next().has_value());
  EXPECT_EQ(table.size(), 0u);
}

// Computes the result of Next() by looking at each entry.
absl::optional<Id> Slow(const std::map<Id, std::string>& all) {
  std::map<std::string, std::vector<Id>> hosts;
  for (const auto& each : all) hosts[each.second].push_back(each.first);
  absl::optional<Id> next;
  size_t most = 0;
  for (const auto& host : hosts) {
    const Id oldest = host.second.front();
    if (host.second.size() > most ||
        (host.second.size() == most && oldest < *next)) {
      most = host.second.size();
      next = oldest;
    }
  }
  return next;
}

TEST(HalfOpenTable, IsLikeAListThatIsSearched) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  do {
    const size_t hosts = 1 + random() % 8;
    HalfOpenTable table({1 + random() % 16, 1 + random() % 16});
    std::map<Id, std::string> all;
    for (int step = 0; step < 200; ++step) {
      if (random() % 3 != 0) {
        const std::string host = std::to_string(random() % hosts);
        all[table.Add(host)] = host;
      } else if (!all.empty()) {
        auto gone = all.begin();
        std::advance(gone, random() % all.size());
        table.Remove(gone->first);
        all.erase(gone);
      }
      ASSERT_EQ(table.Next(), Slow(all));
      while (const absl::optional<Id> excess = table.Excess()) {
        ASSERT_EQ(excess, Slow(all));
        table.Remove(*excess);
        all.erase(*excess);
      }
      ASSERT_LE(table.size(), table.limits().in_all);
      ASSERT_EQ(table.size(), all.size());
    }
  } while (std::chrono::steady_clock::now() < end);
}

TEST(HalfOpenTable, FewDescriptorsMakeTheLimitsSmaller) {
  const pid_t child = fork();
  if (child == 0) {
    const rlimit few = {160, 160};
    if (setrlimit(RLIMIT_NOFILE, &few) != 0) _exit(1);
    const auto limits = HalfOpenTable::WithinDescriptors({1024, 256});
    const auto small = HalfOpenTable::WithinDescriptors({8, 2});
    _exit(limits.in_all == 40 && limits.of_host == 10 && small.in_all == 8 &&
                  small.of_host == 2
              ? 0
              : 2);
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace progress
}  // namespace penstock
