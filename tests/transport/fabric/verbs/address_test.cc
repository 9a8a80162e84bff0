// Tests addresses, and the text by which a peer learns them.

#include "transport/fabric/verbs/formats/address.h"

#include <netinet/in.h>
#include <sys/un.h>

#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace penstock {
namespace fabric {
namespace verbs {
namespace {

TEST(AddressTest, TextOfBothFamiliesIsRead) {
  const Address v4 = Address::Parse("10.9.0.1", 4242).value();
  EXPECT_FALSE(v4.is_v6());
  EXPECT_EQ(v4.port(), 4242);
  EXPECT_EQ(v4.Text(), "10.9.0.1");
  const Address v6 = Address::Parse("fd00::1", 65535).value();
  EXPECT_TRUE(v6.is_v6());
  EXPECT_EQ(v6.port(), 65535);
  EXPECT_EQ(v6.Text(), "fd00::1");
}

TEST(AddressTest, NamesAndHalfAddressesAreRejected) {
  for (const char* text : {"", " ", "localhost", "10.9.0", "10.9.0.1 ",
                           "10.9.0.256", "fe80::1%eth0", "[::1]", ":::"}) {
    EXPECT_EQ(Address::Parse(text, 1).status().code(),
              absl::StatusCode::kInvalidArgument)
        << text;
  }
}

TEST(AddressTest, NothingMayFollowAZeroByte) {
  EXPECT_FALSE(Address::Parse(absl::string_view("10.9.0.1\0x", 10), 1).ok());
  EXPECT_FALSE(ParseOffer(absl::string_view("10.9.0.1\0 1", 11)).ok());
}

TEST(AddressTest, PortIsSetInBothFamilies) {
  for (const char* text : {"10.9.0.1", "fd00::1"}) {
    Address address = Address::Parse(text, 1).value();
    address.set_port(0x1234);
    EXPECT_EQ(address.port(), 0x1234);
    EXPECT_EQ(address.Text(), text);
  }
}

TEST(AddressTest, GidIsTheAddressInSixteenBytes) {
  EXPECT_EQ(absl::BytesToHexString(Address::Parse("10.9.0.1", 1)->AsGid()),
            "00000000000000000000ffff0a090001");
  EXPECT_EQ(absl::BytesToHexString(Address::Parse("fd00::1", 1)->AsGid()),
            "fd000000000000000000000000000001");
}

TEST(AddressTest, OtherFamiliesAreAnError) {
  sockaddr_storage address = {};
  address.ss_family = AF_UNIX;
  const sockaddr& generic = reinterpret_cast<const sockaddr&>(address);
  EXPECT_EQ(Address::From(generic).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(AddressText(generic), "?");
}

TEST(OfferTest, GoldenText) {
  EXPECT_EQ(MakeOffer({Address::Parse("10.9.0.1", 4791).value(),
                       Address::Parse("fd00::1", 1).value()}),
            "10.9.0.1 4791\nfd00::1 1\n");
}

TEST(OfferTest, ParsingGivesBackWhatWasMade) {
  const std::string offer = "10.9.0.1 4791\nfd00::1 1\n255.255.255.255 65535\n";
  const absl::StatusOr<std::vector<Address>> addresses = ParseOffer(offer);
  ASSERT_TRUE(addresses.ok()) << addresses.status();
  EXPECT_EQ(addresses->size(), 3u);
  EXPECT_EQ(MakeOffer(*addresses), offer);
}

TEST(OfferTest, HostileTextIsRejected) {
  for (const char* offer : {"",
                            "\n",
                            "\n\n\n",
                            "10.9.0.1",
                            "10.9.0.1 ",
                            "10.9.0.1 0",
                            "10.9.0.1 65536",
                            "10.9.0.1 -1",
                            "10.9.0.1 4294967297",
                            "10.9.0.1 1 ",
                            "10.9.0.1  1",
                            " 10.9.0.1 1",
                            "10.9.0.1\t1",
                            "name 1",
                            "10.9.0.1 1x",
                            "10.9.0.1 1\nrubbish\n",
                            "10.9.0.1 1\r\n10.9.0.2\r\n",
                            "10.9.0.1 1\n10.9.0.2 0\n",
                            "fe80::1%eth0 1",
                            "[fd00::1] 1"}) {
    EXPECT_EQ(ParseOffer(offer).status().code(),
              absl::StatusCode::kInvalidArgument)
        << absl::CEscape(offer);
  }
  EXPECT_FALSE(ParseOffer(std::string(1 << 20, 'x')).ok());
}

TEST(OfferTest, NoMoreThanABoundedNumberIsTaken) {
  std::string offer;
  for (size_t i = 0; i < kMaxOffered; ++i) {
    absl::StrAppend(&offer, "10.9.0.", i, " 1\n");
  }
  ASSERT_TRUE(ParseOffer(offer).ok());
  EXPECT_EQ(ParseOffer(offer)->size(), kMaxOffered);
  EXPECT_FALSE(ParseOffer(offer + "10.9.1.1 1\n").ok());
}

TEST(InterfaceTest, AddressesHereAreOfUseElsewhere) {
  const absl::StatusOr<std::vector<Address>> addresses = InterfaceAddresses();
  ASSERT_TRUE(addresses.ok()) << addresses.status();
  for (const Address& address : *addresses) {
    EXPECT_NE(address.Text(), "127.0.0.1");
    EXPECT_NE(address.Text(), "::1");
    EXPECT_NE(address.Text().substr(0, 4), "fe80");
    EXPECT_EQ(address.port(), 0);
  }
}

}  // namespace
}  // namespace verbs
}  // namespace fabric
}  // namespace penstock
