#include "transport/wire/hello.h"

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "tests/transport/wire/wire_test_util.h"

namespace penstock {
namespace wire {
namespace {

Hello TwoOffers() {
  Hello hello;
  hello.token = "0123456789abcdef";
  hello.stream_window = 0x00400000;
  hello.max_streams = 100;
  hello.offers = {{"shm", true, "@name"}, {"verbs", false, "no device"}};
  return hello;
}

constexpr char kTwoOffers[] =
    "1000 30313233343536373839616263646566 00004000 64000000 02"
    "01 03 73686d 0500 406e616d65"
    "00 05 7665726273 0900 6e6f20646576696365";

bool IsMalformed(const std::string& bytes) {
  return absl::IsInvalidArgument(ParseHello(AsSpan(bytes)).status());
}

TEST(HelloWire, GoldenBytes) {
  EXPECT_EQ(EncodeHello(TwoOffers()), FromHex(kTwoOffers));
  const std::string bytes = FromHex(kTwoOffers);
  absl::StatusOr<Hello> parsed = ParseHello(AsSpan(bytes));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->token, "0123456789abcdef");
  EXPECT_EQ(parsed->stream_window, 0x00400000u);
  EXPECT_EQ(parsed->max_streams, 100u);
  ASSERT_EQ(parsed->offers.size(), 2u);
  EXPECT_EQ(parsed->offers[0].fabric, "shm");
  EXPECT_TRUE(parsed->offers[0].usable);
  EXPECT_EQ(parsed->offers[0].data, "@name");
  EXPECT_EQ(parsed->offers[1].fabric, "verbs");
  EXPECT_FALSE(parsed->offers[1].usable);
  EXPECT_EQ(parsed->offers[1].data, "no device");
}

TEST(HelloWire, ConnectingSideHasNoToken) {
  Hello hello;
  hello.stream_window = 1;
  EXPECT_EQ(EncodeHello(hello), FromHex("0000 01000000 ffffffff 00"));
  EXPECT_TRUE(ParseHello(AsSpan(EncodeHello(hello))).ok());
}

TEST(HelloWire, CutAnywhereIsRejected) {
  const std::string bytes = FromHex(kTwoOffers);
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_TRUE(IsMalformed(bytes.substr(0, size))) << size;
  }
}

TEST(HelloWire, FieldsOfLaterVersionsAreIgnored) {
  EXPECT_TRUE(ParseHello(AsSpan(FromHex(kTwoOffers) + "more")).ok());
}

TEST(HelloWire, TokenHasItsLengthOrNone) {
  for (size_t size = 0; size < 40; ++size) {
    Hello hello = TwoOffers();
    hello.token = std::string(size, 't');
    EXPECT_EQ(IsMalformed(EncodeHello(hello)), size != 0 && size != 16) << size;
  }
}

TEST(HelloWire, WindowIsWithinItsBounds) {
  constexpr uint32_t kMost = 64 * 1024 * 1024;
  for (const uint32_t window : {0u, 1u, kMost, kMost + 1, UINT32_MAX}) {
    Hello hello = TwoOffers();
    hello.stream_window = window;
    EXPECT_EQ(IsMalformed(EncodeHello(hello)), window == 0 || window > kMost)
        << window;
  }
}

TEST(HelloWire, LimitsOfOffersHold) {
  for (int over : {0, 1}) {
    Hello many = TwoOffers();
    many.offers.resize(8 + over, many.offers[0]);
    EXPECT_EQ(IsMalformed(EncodeHello(many)), over == 1);
    Hello long_name = TwoOffers();
    long_name.offers[1].fabric = std::string(15 + over, 'n');
    EXPECT_EQ(IsMalformed(EncodeHello(long_name)), over == 1);
    Hello long_data = TwoOffers();
    long_data.offers[1].data = std::string(1024 + over, 'd');
    EXPECT_EQ(IsMalformed(EncodeHello(long_data)), over == 1);
  }
  Hello nameless = TwoOffers();
  nameless.offers[0].fabric.clear();
  EXPECT_TRUE(IsMalformed(EncodeHello(nameless)));
}

TEST(HelloWire, DamageIsRejectedOrStaysWithinTheLimits) {
  Mutator random(5);
  int accepted = 0;
  for (int i = 0; i < 20000; ++i) {
    const std::string bytes = random.Mutate(FromHex(kTwoOffers));
    absl::StatusOr<Hello> parsed = ParseHello(AsSpan(bytes));
    if (!parsed.ok()) continue;
    ++accepted;
    EXPECT_LE(parsed->offers.size(), 8u);
    EXPECT_GT(parsed->stream_window, 0u);
    for (const FabricOffer& offer : parsed->offers) {
      EXPECT_LE(offer.fabric.size(), 15u);
      EXPECT_LE(offer.data.size(), 1024u);
    }
    // Encodes the parsed hello again, which must give the same bytes.
    const std::string again = EncodeHello(*parsed);
    absl::StatusOr<Hello> reparsed = ParseHello(AsSpan(again));
    ASSERT_TRUE(reparsed.ok());
    EXPECT_EQ(EncodeHello(*reparsed), again);
  }
  EXPECT_GT(accepted, 0);
}

}  // namespace
}  // namespace wire
}  // namespace penstock
