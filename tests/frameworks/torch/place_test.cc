#include "frameworks/torch/place.h"

#include <cstdlib>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace pytorch {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(PlaceTest, TextKeepsAll) {
  const Place place{"kernel/net/user", "node1", "[fd00::1]", "10.0.0.1"};
  const auto parsed = ParsePlace(ToText(place));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->host, place.host);
  EXPECT_EQ(parsed->name, place.name);
  EXPECT_EQ(parsed->own_address, place.own_address);
  EXPECT_EQ(parsed->store_address, place.store_address);
}

TEST(PlaceTest, TextOfAnotherVersionIsRefused) {
  for (const std::string& text :
       {std::string(), std::string("kernel\nnet\n0\nname"),
        ToText(Place()) + "\nmore"}) {
    EXPECT_THAT(ParsePlace(text).status().ToString(),
                HasSubstr("another version of Penstock"));
  }
}

TEST(PlaceTest, RanksAreOnOneHostIfTheyShareMemory) {
  const Place a{"a", "", "", ""};
  const Place b{"b", "", "", ""};
  EXPECT_TRUE(AreOnOneHost({a, a}));
  EXPECT_FALSE(AreOnOneHost({a, b}));
  EXPECT_FALSE(AreOnOneHost({Place(), Place()})) << "unknown hosts may differ";
  EXPECT_TRUE(AreOnOneHost({Place()}));
}

TEST(PlaceTest, RanksOnTheStoresHostGetItsAddress) {
  // Maps the store host's own name to 127.0.1.1, as Debian does.
  const Place leader{"a", "node1", "127.0.0.1", "127.0.1.1"};
  const Place other{"b", "node2", "10.0.0.2", "10.0.0.1"};
  const auto addresses = AddressesOf({leader, leader, other});
  ASSERT_TRUE(addresses.ok()) << addresses.status();
  EXPECT_THAT(*addresses, ElementsAre("10.0.0.1", "10.0.0.1", "10.0.0.2"));
}

TEST(PlaceTest, LoopbackServesIfAllShareIt) {
  const Place one{"kernel/net/1", "node", "127.0.0.1", "127.0.0.1"};
  const Place another_user{"kernel/net/2", "node", "127.0.0.1", "127.0.0.1"};
  const auto addresses = AddressesOf({one, another_user});
  ASSERT_TRUE(addresses.ok()) << addresses.status();
  EXPECT_THAT(*addresses, ElementsAre("127.0.0.1", "127.0.0.1"));
}

TEST(PlaceTest, RouteToTheStoreGivesTheAddresses) {
  ASSERT_EQ(unsetenv("GLOO_SOCKET_IFNAME"), 0);
  const auto place = PlaceOfProcess("127.0.0.1");
  ASSERT_TRUE(place.ok()) << place.status();
  EXPECT_EQ(place->own_address, "127.0.0.1");
  EXPECT_EQ(place->store_address, "127.0.0.1");
  EXPECT_NE(place->host, "");
}

TEST(PlaceTest, InterfaceCanBeNamed) {
  ASSERT_EQ(setenv("GLOO_SOCKET_IFNAME", "lo", 1), 0);
  EXPECT_EQ(PlaceOfProcess("")->own_address, "127.0.0.1");
  ASSERT_EQ(setenv("GLOO_SOCKET_IFNAME", "no-such-one", 1), 0);
  const absl::Status refused = PlaceOfProcess("127.0.0.1").status();
  EXPECT_THAT(std::string(refused.message()), HasSubstr("no-such-one"));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("there are lo"));
}

}  // namespace
}  // namespace pytorch
}  // namespace penstock
