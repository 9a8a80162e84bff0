#include "transport/session/path_negotiator.h"

#include <string>
#include <vector>

#include "absl/types/optional.h"
#include "gtest/gtest.h"
#include "transport/wire/hello.h"

namespace penstock {
namespace session {
namespace {

wire::FabricOffer Usable(const std::string& fabric, const std::string& data) {
  wire::FabricOffer offer;
  offer.fabric = fabric;
  offer.usable = true;
  offer.data = data;
  return offer;
}

wire::FabricOffer Unusable(const std::string& fabric,
                           const std::string& reason) {
  wire::FabricOffer offer = Usable(fabric, reason);
  offer.usable = false;
  return offer;
}

TEST(PathNegotiator, TriesWhatBothOfferInItsOwnOrder) {
  PathNegotiator negotiator(
      {Usable("b", "mine"), Usable("c", "mine"), Usable("a", "mine")});
  negotiator.OnPeerOffers({Usable("a", "theirs a"), Usable("b", "theirs b")});
  EXPECT_TRUE(negotiator.HasCommonFabric());
  absl::optional<wire::FabricOffer> offer = negotiator.Next();
  ASSERT_TRUE(offer.has_value());
  EXPECT_EQ(offer->fabric, "b");
  EXPECT_EQ(offer->data, "theirs b");
  EXPECT_EQ(negotiator.current(), "b");
  offer = negotiator.Next();
  ASSERT_TRUE(offer.has_value());
  EXPECT_EQ(offer->fabric, "a");
  EXPECT_EQ(offer->data, "theirs a");
  EXPECT_FALSE(negotiator.Next().has_value());
  EXPECT_EQ(negotiator.current(), "a");
}

TEST(PathNegotiator, NothingIsTriedWithoutAnOfferOfBoth) {
  PathNegotiator negotiator({Usable("a", ""), Unusable("b", "broken")});
  negotiator.OnPeerOffers({Unusable("a", "off"), Usable("b", "")});
  EXPECT_FALSE(negotiator.HasCommonFabric());
  EXPECT_FALSE(negotiator.Next().has_value());
}

TEST(PathNegotiator, ReasonsNameEachFabric) {
  PathNegotiator negotiator(
      {Unusable("a", "no device"), Usable("b", ""), Usable("c", "")});
  negotiator.OnPeerOffers({Usable("a", ""), Unusable("c", "switched off")});
  EXPECT_EQ(negotiator.Reason(),
            "a: no device; b: the peer does not offer it; c: at the peer: "
            "switched off");
}

TEST(PathNegotiator, ReasonWithoutAnOfferSaysSo) {
  PathNegotiator negotiator({});
  negotiator.OnPeerOffers({Usable("a", "")});
  EXPECT_FALSE(negotiator.HasCommonFabric());
  EXPECT_EQ(negotiator.Reason(), "no other fabric is enabled here");
}

TEST(PathNegotiator, NoReasonWhileAllIsWell) {
  PathNegotiator negotiator({Usable("a", "")});
  EXPECT_EQ(negotiator.Reason(), "");
  negotiator.OnPeerOffers({Usable("a", "")});
  EXPECT_EQ(negotiator.Reason(), "");
}

TEST(PathNegotiator, FailuresAddUp) {
  PathNegotiator negotiator({Usable("a", ""), Usable("b", "")});
  negotiator.OnPeerOffers({Usable("a", ""), Usable("b", "")});
  negotiator.Next();
  negotiator.OnFailure(metrics::Reason::kSetupFailed, "refused");
  negotiator.Next();
  negotiator.OnFailure(metrics::Reason::kSetupFailed, "timed out");
  EXPECT_EQ(negotiator.Reason(), "a: refused; b: timed out");
  EXPECT_FALSE(negotiator.Next().has_value());
  EXPECT_TRUE(negotiator.HasCommonFabric());
}

// Tests a lost path whose loss the peer then reports as a failure. The loss
// stays the reported cause until the next attempt.
TEST(PathNegotiator, ALossStaysOneUntilTheNextAttempt) {
  PathNegotiator negotiator({Usable("a", "")});
  negotiator.OnPeerOffers({Usable("a", "")});
  negotiator.Next();
  negotiator.OnFailure(metrics::Reason::kLost, "lost: torn down");
  negotiator.OnFailure(metrics::Reason::kSetupFailed, "the peer says: gone");
  EXPECT_EQ(negotiator.cause(), metrics::Reason::kLost);
  negotiator.Restart();
  negotiator.OnFailure(metrics::Reason::kSetupFailed, "refused");
  EXPECT_EQ(negotiator.cause(), metrics::Reason::kSetupFailed);
}

TEST(PathNegotiator, FailureOfNoAttemptNamesNoFabric) {
  PathNegotiator negotiator({Usable("a", "")});
  negotiator.OnPeerOffers({Usable("a", "")});
  negotiator.OnFailure(metrics::Reason::kSetupFailed, "nobody came");
  EXPECT_EQ(negotiator.Reason(), "nobody came");
}

// Tests a text of the peer with a forged log line, and commands to a terminal.
TEST(PathNegotiator, WhatAPeerSaysIsPrintableAndShort) {
  const std::string text = "down\n2026-01-01 error penstock[1]: \x1b[2J";
  PathNegotiator negotiator({Usable("a", ""), Usable("b", "")});
  negotiator.OnPeerOffers({Unusable("a", text), Usable("b", "")});
  EXPECT_EQ(negotiator.Reason(),
            "a: at the peer: down\\x0a2026-01-01 error penstock[1]: \\x1b[2J");
  negotiator.Next();
  negotiator.OnFailure(metrics::Reason::kSetupFailed,
                       "the peer says: " + std::string(16000, '\n'));
  EXPECT_EQ(negotiator.Reason().find('\n'), std::string::npos);
  EXPECT_LT(negotiator.Reason().size(), 1024u);
}

TEST(PathNegotiator, ReasonsDoNotGrowForEver) {
  PathNegotiator negotiator({Usable("a", "")});
  negotiator.OnPeerOffers({Usable("a", "")});
  negotiator.Next();
  for (int i = 0; i < 1000; ++i)
    negotiator.OnFailure(metrics::Reason::kSetupFailed, "lost: by the peer");
  EXPECT_LT(negotiator.Reason().size(), 2048u);
}

TEST(PathNegotiator, NothingIsTriedBeforeThePeersOffers) {
  PathNegotiator negotiator({Usable("a", "")});
  EXPECT_FALSE(negotiator.HasCommonFabric());
}

}  // namespace
}  // namespace session
}  // namespace penstock
