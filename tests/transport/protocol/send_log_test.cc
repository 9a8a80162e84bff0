#include "transport/protocol/send_log.h"

#include <string>

#include "gtest/gtest.h"

namespace penstock {
namespace protocol {
namespace {

constexpr size_t kSize = 100;

class SendLogTest : public ::testing::Test {
 protected:
  SendLogTest() : log_(&buffers_) {
    log_.Add(2, std::string(kSize, '1'));
    log_.Add(5, std::string(kSize, '2'));
    log_.Add(6, std::string(kSize, '3'));
  }
  base::BufferPool buffers_;
  SendLog log_;
};

TEST_F(SendLogTest, CountsItsBytes) {
  EXPECT_EQ(log_.bytes(), 3 * kSize);
  EXPECT_FALSE(log_.empty());
  const SendLog fresh(&buffers_);
  EXPECT_TRUE(fresh.empty());
  EXPECT_EQ(fresh.bytes(), 0u);
}

TEST_F(SendLogTest, KeepsWhatHasNotArrivedInFull) {
  log_.Acknowledge(1);
  EXPECT_EQ(log_.bytes(), 3 * kSize);
  log_.Acknowledge(4);  // half of the second batch
  EXPECT_EQ(log_.bytes(), 2 * kSize);
  log_.Acknowledge(5);
  EXPECT_EQ(log_.bytes(), kSize);
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
  EXPECT_EQ(log_.bytes(), kSize);
  log_.Acknowledge(~uint64_t{0});
  EXPECT_TRUE(log_.empty());
  log_.Acknowledge(~uint64_t{0});
}

TEST_F(SendLogTest, WhatIsLeftIsTakenOldestFirst) {
  log_.Acknowledge(2);
  EXPECT_EQ(log_.TakeOldest(), std::string(kSize, '2'));
  EXPECT_EQ(log_.bytes(), kSize);
  EXPECT_EQ(log_.TakeOldest(), std::string(kSize, '3'));
  EXPECT_TRUE(log_.empty());
  EXPECT_EQ(log_.bytes(), 0u);
}

TEST_F(SendLogTest, ManyShortOnesAreJoined) {
  log_.Acknowledge(6);
  for (size_t i = 1; i < SendLog::kMaxApart; ++i) log_.Add(6, "apart");
  log_.Add(7, "first");
  log_.Add(9, "second");
  log_.Add(10, std::string(SendLog::kMaxJoinedBytes - 11, '!'));
  log_.Add(12, "next");
  log_.Acknowledge(9);  // but not all of the joined batch
  EXPECT_EQ(log_.bytes(), SendLog::kMaxJoinedBytes + 4);
  EXPECT_EQ(log_.TakeOldest().substr(0, 12), "firstsecond!");
  EXPECT_EQ(log_.bytes(), 4u);
  log_.Acknowledge(12);
  EXPECT_TRUE(log_.empty());
}

TEST_F(SendLogTest, GivesBackMemory) {
  const std::string text(700, 'x');
  const auto buffer_comes_back = [this] {
    return buffers_.Take().capacity() == 700;
  };
  for (size_t i = 3; i < SendLog::kMaxApart; ++i) log_.Add(7, text);
  EXPECT_FALSE(buffer_comes_back());
  log_.Add(8, text);  // joined to the previous batch
  EXPECT_TRUE(buffer_comes_back());
  log_.Acknowledge(8);
  log_.Add(9, text);
  while (buffer_comes_back()) {
  }
  log_.Acknowledge(9);
  EXPECT_TRUE(buffer_comes_back());
}

}  // namespace
}  // namespace protocol
}  // namespace penstock
