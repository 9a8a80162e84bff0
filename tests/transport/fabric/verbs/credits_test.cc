// Tests two sides that send at random. They must never send more than the other
// side has receives, and never run out of credits forever.

#include "transport/fabric/verbs/formats/credits.h"

#include <deque>
#include <random>

#include "gtest/gtest.h"

namespace penstock {
namespace fabric {
namespace verbs {
namespace {

// Two sides with an ordered link in each direction. In the worst case, which
// this test uses, a packet takes a receive of the other side as soon as it
// leaves.
class Link {
 public:
  Link(uint16_t a, uint16_t b) : sides_{Side(a, b), Side(b, a)} {}

  bool Send(int from) {
    if (!sides_[from].credits.MaySend()) return false;
    Leave(from);
    return true;
  }
  // Delivers one packet, and posts its buffer again. Returns false if no packet
  // is under way.
  bool Deliver(int to) {
    Side& side = sides_[to];
    if (side.inbox.empty()) return false;
    const uint16_t granted = side.inbox.front();
    side.inbox.pop_front();
    EXPECT_TRUE(side.credits.OnGranted(granted).ok());
    ++side.posted;
    side.credits.OnReceived();
    return true;
  }
  // Grants credits, as the end of a Poll() does. Returns false if there is
  // nothing to grant.
  bool Grant(int from) {
    const Credits& credits = sides_[from].credits;
    if (!credits.MustGrant() || !credits.MaySend()) return false;
    Leave(from);
    return true;
  }
  // Delivers all packets, one after another. Returns false if this never ends.
  bool Settle() {
    for (int round = 0; round < 1000; ++round) {
      bool any = false;
      for (int to : {0, 1}) {
        while (Deliver(to)) any = true;
        if (Grant(to)) any = true;
      }
      if (!any) return true;
    }
    return false;
  }
  bool MaySend(int from) const { return sides_[from].credits.MaySend(); }

 private:
  struct Side {
    Side(uint16_t own, uint16_t peers) : credits(own, peers), posted(own) {}
    Credits credits;
    int posted;
    std::deque<uint16_t> inbox;
  };

  void Leave(int from) {
    Side& to = sides_[1 - from];
    EXPECT_GT(to.posted, 0) << "more under way than receives are posted";
    --to.posted;
    to.inbox.push_back(sides_[from].credits.TakeForSend());
  }

  Side sides_[2];
};

TEST(CreditsTest, RandomTrafficNeitherOverrunsNorRunsDry) {
  for (int seed = 0; seed < 500; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](int n) { return static_cast<int>(random() % n); };
    Link link(static_cast<uint16_t>(4 + below(20)),
              static_cast<uint16_t>(4 + below(20)));
    // Lets the sides send at different rates.
    const int share = 1 + below(9);
    for (int step = 0; step < 2000; ++step) {
      const int side = below(10) < share ? 0 : 1;
      const int what = below(3);
      if (what == 0) {
        (void)link.Send(side);
      } else if (what == 1) {
        (void)link.Deliver(side);
      } else {
        (void)link.Grant(side);
      }
    }
    ASSERT_TRUE(link.Settle()) << "packets about credits for ever: " << seed;
    EXPECT_TRUE(link.MaySend(0) && link.MaySend(1)) << "stuck: " << seed;
  }
}

TEST(CreditsTest, SidesThatBothSendAllTheyCanGoOn) {
  for (uint16_t receives = 4; receives < 40; ++receives) {
    Link link(receives, receives);
    for (int round = 0; round < 100; ++round) {
      int sent = 0;
      for (int side : {0, 1}) {
        while (link.Send(side)) ++sent;
      }
      ASSERT_GT(sent, 0) << "both are dry, receives: " << receives;
      for (int side : {0, 1}) {
        while (link.Deliver(side)) {
        }
      }
    }
  }
}

TEST(CreditsTest, OneWayTrafficGoesOnWithoutAnythingToSayBack) {
  Link link(16, 16);
  int sent = 0;
  for (int round = 0; round < 100; ++round) {
    while (link.Send(0)) ++sent;
    ASSERT_TRUE(link.Settle());
  }
  EXPECT_GE(sent, 1400);
}

TEST(CreditsTest, LastCreditIsForAPacketThatGrants) {
  Credits credits(4, 2);
  EXPECT_EQ(credits.TakeForSend(), 0);
  EXPECT_FALSE(credits.MaySend());
  credits.OnReceived();
  ASSERT_TRUE(credits.MaySend());
  EXPECT_EQ(credits.TakeForSend(), 1);
  credits.OnReceived();
  EXPECT_FALSE(credits.MaySend()) << "none is left";
}

TEST(CreditsTest, OwedIsGrantedOnce) {
  Credits credits(8, 8);
  credits.OnReceived();
  credits.OnReceived();
  EXPECT_EQ(credits.TakeForSend(), 2);
  EXPECT_EQ(credits.TakeForSend(), 0);
}

TEST(CreditsTest, HalfOfTheReceivesIsWorthAPacket) {
  Credits credits(8, 8);
  for (int i = 0; i < 3; ++i) credits.OnReceived();
  EXPECT_FALSE(credits.MustGrant());
  credits.OnReceived();
  EXPECT_TRUE(credits.MustGrant());
  (void)credits.TakeForSend();
  EXPECT_FALSE(credits.MustGrant());
}

TEST(CreditsTest, GrantOfWhatWasNeverTakenIsDataLoss) {
  Credits credits(4, 4);
  EXPECT_EQ(credits.OnGranted(1).code(), absl::StatusCode::kDataLoss);
  EXPECT_TRUE(credits.OnGranted(0).ok());
  (void)credits.TakeForSend();
  (void)credits.TakeForSend();
  for (const int hostile : {3, 4, 0x7fff, 0xfffe, 0xffff}) {
    EXPECT_FALSE(credits.OnGranted(static_cast<uint16_t>(hostile)).ok())
        << hostile;
  }
  EXPECT_TRUE(credits.OnGranted(2).ok());
  EXPECT_FALSE(credits.OnGranted(1).ok());
}

TEST(CreditsTest, GreatestNumberOfReceivesDoesNotOverflow) {
  Credits credits(16, 0xffff);
  EXPECT_FALSE(credits.OnGranted(1).ok());
  (void)credits.TakeForSend();
  EXPECT_FALSE(credits.OnGranted(2).ok());
  EXPECT_TRUE(credits.OnGranted(1).ok());
}

}  // namespace
}  // namespace verbs
}  // namespace fabric
}  // namespace penstock
