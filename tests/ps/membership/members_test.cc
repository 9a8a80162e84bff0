// Tests names, targets and the order of servers, without etcd.

#include "ps/membership/members.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "ps/membership/agreements.h"
#include "ps/membership/keys.h"
#include "ps/membership/target.h"

namespace penstock::ps::membership {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

std::string Text(const absl::Status& status) { return status.ToString(); }

v1::Server MakeServer(const std::string& name, uint32_t servers,
                      const std::string& address = "") {
  v1::Server server;
  server.set_name(name);
  server.set_address(address.empty() ? name + ":7000" : address);
  server.set_incarnation(1);
  server.set_servers(servers);
  return server;
}

etcd::Values Registered(const std::vector<v1::Server>& servers) {
  etcd::Values values;
  for (const v1::Server& server : servers) {
    const std::string key = "t/" + ServerKey(server.name());
    values[key].set_key(key);
    values[key].set_value(server.SerializeAsString());
  }
  return values;
}

TEST(IsBeforeTest, NumbersCountAsNumbers) {
  EXPECT_TRUE(IsBefore("ps-2", "ps-10"));
  EXPECT_FALSE(IsBefore("ps-10", "ps-2"));
  EXPECT_TRUE(IsBefore("a:9", "a:10"));
  EXPECT_TRUE(IsBefore("ps", "ps-0"));
  EXPECT_TRUE(IsBefore("a10", "b2"));
  EXPECT_TRUE(IsBefore("ps-1a", "ps-1b"));
}

TEST(IsBeforeTest, NoTwoNamesAreEqual) {
  const std::vector<std::string> names = {
      "ps-1", "ps-01", "ps-001", "ps-0", "ps-00", "1", "01", "a1b01", "a01b1"};
  for (const std::string& a : names) {
    for (const std::string& b : names) {
      EXPECT_EQ(IsBefore(a, b) + IsBefore(b, a), a == b ? 0 : 1)
          << a << " " << b;
    }
  }
}

TEST(CompleteServersTest, ServersComeInOrder) {
  const auto servers = CompleteServers(
      Registered({MakeServer("ps-10", 2), MakeServer("ps-9", 2)}), "t/");
  ASSERT_TRUE(servers.ok()) << servers.status();
  ASSERT_TRUE(servers->has_value());
  EXPECT_EQ((**servers)[0].name(), "ps-9");
  EXPECT_EQ((**servers)[1].name(), "ps-10");
}

TEST(CompleteServersTest, MissingServersAreWaitedFor) {
  const auto none = CompleteServers({}, "t/");
  ASSERT_TRUE(none.ok());
  EXPECT_FALSE(none->has_value());
  const auto one = CompleteServers(Registered({MakeServer("a", 2)}), "t/");
  ASSERT_TRUE(one.ok());
  EXPECT_FALSE(one->has_value());
}

TEST(CompleteServersTest, DisagreementIsAnErrorThatNamesBoth) {
  const absl::Status numbers =
      CompleteServers(Registered({MakeServer("a", 2), MakeServer("b", 3)}),
                      "t/")
          .status();
  EXPECT_TRUE(absl::IsFailedPrecondition(numbers));
  EXPECT_THAT(Text(numbers),
              AllOf(HasSubstr("a (a:7000)"), HasSubstr("b (b:7000)"),
                    HasSubstr("2 and 3")));
  EXPECT_THAT(
      Text(CompleteServers(Registered({MakeServer("a", 1), MakeServer("b", 1)}),
                           "t/")
               .status()),
      HasSubstr("two of 2 servers"));
  EXPECT_THAT(Text(CompleteServers(Registered({MakeServer("a", 2, "h:1"),
                                               MakeServer("b", 2, "h:1")}),
                                   "t/")
                       .status()),
              HasSubstr("one address"));
}

TEST(CompleteServersTest, OtherValuesAreRefused) {
  etcd::Values garbage;
  garbage["t/servers/a"].set_value("\xff\xff");
  EXPECT_TRUE(
      absl::IsFailedPrecondition(CompleteServers(garbage, "t/").status()));
  // A server that has registered under another server's name.
  etcd::Values moved;
  moved["t/servers/b"].set_value(MakeServer("a", 1).SerializeAsString());
  EXPECT_TRUE(
      absl::IsFailedPrecondition(CompleteServers(moved, "t/").status()));
}

TEST(ServerOptionsTest, WrongNamesAndNumbersAreRefused) {
  EXPECT_TRUE(ServerOptions(nullptr, MakeServer("ps-0.ps:7000", 2)).ok());
  for (const v1::Server& server :
       {MakeServer("", 1), MakeServer("a/b", 1), MakeServer("a b", 1),
        MakeServer(std::string(254, 'a'), 1), MakeServer("a", 0),
        MakeServer("a", kMaxServers + 1),
        MakeServer("a", 1, std::string(513, 'a'))}) {
    EXPECT_TRUE(
        absl::IsInvalidArgument(ServerOptions(nullptr, server).status()))
        << server.ShortDebugString();
  }
}

TEST(ParseTargetTest, EndpointsAndPrefix) {
  const auto target = ParseTarget("etcd://a:1,b,[::1]:3,[::1]/team/digits");
  ASSERT_TRUE(target.ok()) << target.status();
  EXPECT_THAT(target->endpoints,
              ElementsAre("a:1", "b:2379", "[::1]:3", "[::1]:2379"));
  EXPECT_EQ(target->prefix, "team/digits");
  EXPECT_EQ(ParseTarget("etcd://a")->prefix, kDefaultPrefix);
}

TEST(ParseTargetTest, WrongTargetsAreRefused) {
  for (const char* text :
       {"", "a:1", "etcd://", "etcd:///p", "etcd://a,", "etcd://:2379/p",
        "etcd://a/", "etcd://a/p/", "etcd://a//p", "etcd://a/p q",
        "etcd://::1/p", "etcd://a:/p", "etcd://a:65536", "etcd://[a",
        "etcd://http://a"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseTarget(text).status())) << text;
  }
}

TEST(NewestViewTest, ViewsNeverGoBackAndNeverChange) {
  NewestView newest;
  v1::View view;
  view.set_number(5);
  view.set_decision("a");
  EXPECT_TRUE(newest.Take(view).ok());
  EXPECT_TRUE(newest.Take(view).ok());
  v1::View other = view;
  other.set_decision("b");
  EXPECT_TRUE(absl::IsDataLoss(newest.Take(other)));
  other.set_number(4);
  EXPECT_TRUE(absl::IsDataLoss(newest.Take(other)));
  EXPECT_TRUE(absl::IsDataLoss(newest.Take(v1::View())));
  EXPECT_EQ(newest.view().decision(), "a");
  other.set_number(7);
  EXPECT_TRUE(newest.Take(other).ok());
}

}  // namespace
}  // namespace penstock::ps::membership
