#include "transport/protocol/send_log.h"

#include <string>

#include "gtest/gtest.h"

namespace penstock {
namespace protocol {
namespace {

class SendLogTest : public ::testing::Test {
 protected:
  SendLogTest() {
    log_.Add(2, "first");
    log_.Add(5, "second");
    log_.Add(6, "third!");
  }
  SendLog log_;
};

TEST_F(SendLogTest, CountsItsBytes) {
  EXPECT_EQ(log_.bytes(), 17u);
  EXPECT_FALSE(log_.empty());
  EXPECT_TRUE(SendLog().empty());
  EXPECT_EQ(SendLog().bytes(), 0u);
}

TEST_F(SendLogTest, KeepsWhatHasNotArrivedInFull) {
  log_.Acknowledge(1);
  EXPECT_EQ(log_.bytes(), 17u);
  log_.Acknowledge(4);  // half of the second
  EXPECT_EQ(log_.bytes(), 12u);
  log_.Acknowledge(5);
  EXPECT_EQ(log_.bytes(), 6u);
}

TEST_F(SendLogTest, OneAcknowledgementDropsAllUpToIt) {
  log_.Acknowledge(6);
  EXPECT_TRUE(log_.empty());
  EXPECT_EQ(log_.bytes(), 0u);
}

TEST_F(SendLogTest, OldOrWildAcknowledgementsDoNoHarm) {
  log_.Acknowledge(5);
  log_.Acknowledge(2);
  log_.Acknowledge(0);
  EXPECT_EQ(log_.bytes(), 6u);
  log_.Acknowledge(~uint64_t{0});
  EXPECT_TRUE(log_.empty());
  log_.Acknowledge(~uint64_t{0});
}

TEST_F(SendLogTest, WhatIsLeftIsTakenOldestFirst) {
  log_.Acknowledge(2);
  EXPECT_EQ(log_.TakeOldest(), "second");
  EXPECT_EQ(log_.bytes(), 6u);
  EXPECT_EQ(log_.TakeOldest(), "third!");
  EXPECT_TRUE(log_.empty());
  EXPECT_EQ(log_.bytes(), 0u);
}

}  // namespace
}  // namespace protocol
}  // namespace penstock
